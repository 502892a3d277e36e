// Cores for jobs: disjoint, all threads given out, nobody without one.
#include "run/core_share.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "detrun/backend.h"

namespace detrun {
namespace {

TEST_CASE("jobs get disjoint cores where there are enough") {
  const std::vector<std::uint32_t> cpus = {0, 2, 3, 5, 8, 9, 11};
  for (std::uint32_t threads = 0; threads <= 7; ++threads) {
    for (std::uint32_t jobs = 1; jobs <= 7; ++jobs) {
      CAPTURE(threads);
      CAPTURE(jobs);
      const std::vector<CoreShare> shares = share_cores(cpus, threads, jobs);
      REQUIRE(shares.size() == jobs);
      std::set<std::uint32_t> used;
      std::uint32_t total = 0;
      for (const CoreShare& share : shares) {
        CHECK(share.threads >= 1);
        CHECK(share.cpus.size() == share.threads);
        total += share.threads;
        for (const std::uint32_t cpu : share.cpus) CHECK(used.insert(cpu).second);
      }
      CHECK(total == std::max(threads == 0 ? 7U : threads, jobs));
      CHECK(shares.front().threads - shares.back().threads <= 1);
    }
  }
}

TEST_CASE("more threads than cores are not pinned") {
  for (const CoreShare& share : share_cores({0, 1}, 6, 3)) {
    CHECK(share.threads == 2);
    CHECK(share.cpus.empty());
  }
  for (const CoreShare& share : share_cores({0, 1}, 0, 5)) {
    CHECK(share.threads == 1);
    CHECK(share.cpus.empty());
  }
  CHECK(share_cores({}, 0, 1).front().threads == 1);
}

TEST_CASE("a thread keeps to its cores and takes no other thread with it") {
  const std::vector<std::uint32_t> all = allowed_cpus();
  REQUIRE_FALSE(all.empty());
  std::vector<std::uint32_t> there, inherited;
  std::thread thread([&] {
    keep_on_cpus({all.back()});
    there = allowed_cpus();
    std::thread([&] { inherited = allowed_cpus(); }).join();
  });
  thread.join();
  CHECK(there == std::vector<std::uint32_t>{all.back()});
  CHECK(inherited == there);
  CHECK(allowed_cpus() == all);
  keep_on_cpus({});
  CHECK(allowed_cpus() == all);
}

}  // namespace
}  // namespace detrun
