// The pool: every item exactly once, whoever is asleep; control registers; start and stop.
#include "backend/thread_pool.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>
#include <vector>

#include "detrun/backend.h"
#include "detrun/error.h"
#include "fp_control_support.h"

namespace {

using detrun::ThreadPool;

TEST_CASE("every item of every job is done exactly once") {
  for (std::uint32_t n_threads = 1; n_threads <= 4; ++n_threads) {
    ThreadPool pool(n_threads);
    CHECK(pool.n_threads() == n_threads);
    std::vector<std::uint32_t> done(300);
    for (std::uint32_t job = 1; job <= 2000; ++job) {
      const std::uint32_t n_items = job % 300;
      pool.run(n_items, [&](std::uint32_t item, std::uint32_t thread) {
        done[item] += thread < n_threads ? 1 : 1000000;
      });
    }
    // Item i is done in every job with job % 300 > i.
    for (std::uint32_t i = 0; i < 300; ++i) {
      std::uint32_t expected = 0;
      for (std::uint32_t job = 1; job <= 2000; ++job) expected += job % 300 > i ? 1 : 0;
      CHECK(done[i] == expected);
    }
  }
}

TEST_CASE("a thread that is held up is relieved of the rest of its share") {
  for (std::uint32_t n_threads = 2; n_threads <= 4; ++n_threads) {
    ThreadPool pool(n_threads);
    for (const std::uint32_t held : {0U, 7U, 15U}) {  // the first or last item of some share
      std::atomic<std::uint32_t> others{0};
      bool relieved = false;
      pool.run(16, [&](std::uint32_t item, std::uint32_t) {
        if (item != held) {
          ++others;
          return;
        }
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (others != 15 && std::chrono::steady_clock::now() < give_up) {
          std::this_thread::yield();
        }
        relieved = others == 15;
      });
      CHECK(relieved);
    }
  }
}

TEST_CASE("jobs after a pause find the sleeping workers") {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> sum{0};
    pool.run(50, [&](std::uint32_t item, std::uint32_t) { sum += static_cast<int>(item); });
    CHECK(sum == 1225);
  }
}

TEST_CASE("pools can be made and dropped without a job, and threads can outnumber cores") {
  for (int i = 0; i < 20; ++i) {
    const ThreadPool pool(1 + static_cast<std::uint32_t>(i) % 9);
    CHECK(pool.n_threads() >= 1);
  }
  ThreadPool many(static_cast<std::uint32_t>(detrun::allowed_cpus().size()) * 4);
  CHECK(many.pinned_cpus().empty());
  std::atomic<int> n{0};
  for (int job = 0; job < 50; ++job) many.run(40, [&](std::uint32_t, std::uint32_t) { ++n; });
  CHECK(n == 2000);
}

TEST_CASE("the caller's own affinity is left alone") {
  const auto before = detrun::allowed_cpus();
  const ThreadPool pool(static_cast<std::uint32_t>(before.size()));
  CHECK(detrun::allowed_cpus() == before);
  CHECK(pool.pinned_cpus().size() <= before.size() - 1);
}

#if defined(DETRUN_KNOWN_FP_CONTROL)
TEST_CASE("items run under the contract's floating-point control on every thread") {
  constexpr unsigned kForeign = support::kForeignControls[0];
  support::ForeignFpControl foreign(kForeign);  // inherited by the workers
  ThreadPool pool(4);
  std::vector<unsigned> seen(400);
  std::set<std::uint32_t> threads;
  for (int job = 0; job < 50; ++job) {
    std::vector<std::uint32_t> by(400);
    pool.run(400, [&](std::uint32_t item, std::uint32_t thread) {
      seen[item] = support::fp_control();
      by[item] = thread;
    });
    threads.insert(by.begin(), by.end());
    for (const unsigned control : seen) CHECK(control == support::kContractControl);
    CHECK(support::fp_control() == kForeign);
  }
  CHECK(threads.size() >= 1);
}
#endif

}  // namespace
