// Cores for several jobs of one process: disjoint parts of what the process may run on.
#pragma once

#include <cstdint>
#include <vector>

namespace detrun {

/// What one job computes with.
struct CoreShare {
  std::uint32_t threads = 1;
  std::vector<std::uint32_t> cpus;  ///< as many as threads; empty: not pinned
};

/// Splits `threads` (0: one a core) between `jobs` >= 1, at least one thread a job, the first jobs
/// getting what is left over. Where there are cores for all threads, every job has its own.
std::vector<CoreShare> share_cores(const std::vector<std::uint32_t>& cpus, std::uint32_t threads,
                                   std::uint32_t jobs);

/// Keeps the calling thread, and threads it starts from now on, on these cores. Empty: nothing
/// happens. A system that refuses costs speed only.
void keep_on_cpus(const std::vector<std::uint32_t>& cpus);

}  // namespace detrun
