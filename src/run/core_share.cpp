// See core_share.h.
#include "run/core_share.h"

#include <sched.h>

#include <algorithm>

namespace detrun {

std::vector<CoreShare> share_cores(const std::vector<std::uint32_t>& cpus, std::uint32_t threads,
                                   std::uint32_t jobs) {
  const auto n_cpus = static_cast<std::uint32_t>(cpus.size());
  const std::uint32_t usual = std::max(1U, n_cpus);
  const std::uint32_t total = std::max(threads == 0 ? usual : threads, jobs);
  std::vector<CoreShare> shares(jobs);
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < jobs; ++i) {
    shares[i].threads = total / jobs + (i < total % jobs ? 1 : 0);
    if (total > n_cpus) continue;
    shares[i].cpus.assign(cpus.begin() + next, cpus.begin() + next + shares[i].threads);
    next += shares[i].threads;
  }
  return shares;
}

void keep_on_cpus(const std::vector<std::uint32_t>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace detrun
