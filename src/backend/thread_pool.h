// A fixed set of threads that share the items of one job at a time. It splits outputs only; what an
// item computes never depends on who computes it. Every item runs under the contract's
// floating-point control. The caller works too and waits for items, never for threads: a worker
// that is asleep or has lost its core delays nobody.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace detrun {

/// The smallest index that any thread reported: the same answer whoever was first.
class LeastIndex {
 public:
  void lower(std::uint64_t index) {
    std::uint64_t seen = least_.load(std::memory_order_relaxed);
    while (index < seen && !least_.compare_exchange_weak(seen, index, std::memory_order_relaxed)) {
    }
  }
  bool found() const { return value() != kNone; }
  std::uint64_t value() const { return least_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::atomic<std::uint64_t> least_{kNone};
};

class ThreadPool {
 public:
  /// n_threads counts the calling thread. Workers are pinned, one a core, when every allowed core
  /// gets a thread; the caller's own affinity is left alone (threads it starts would inherit it).
  explicit ThreadPool(std::uint32_t n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t n_threads() const { return static_cast<std::uint32_t>(shares_.size()); }
  /// Cores of the pinned workers; empty when none is pinned.
  const std::vector<std::uint32_t>& pinned_cpus() const { return pinned_cpus_; }

  /// Calls body(item, thread) for every item below n_items; thread < n_threads(). The body must not
  /// throw. Returns when all items are done.
  template <class Body>
  void run(std::uint32_t n_items, Body&& body) {
    const auto call = [](void* context, std::uint32_t item, std::uint32_t thread) {
      (*static_cast<std::remove_reference_t<Body>*>(context))(item, thread);
    };
    run_job({call, &body, n_items});
  }

 private:
  struct Job {
    void (*call)(void* context, std::uint32_t item, std::uint32_t thread);
    void* context;
    std::uint32_t n_items;
  };
  /// A thread's own run of items. A thread begins with its own and then takes from the others', so
  /// that threads meet on a cache line only towards the end of a job.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> claim{0};  ///< job number << 32 | items of it nobody has taken
    Job job{};                            ///< stable while an item of it is taken and not done
    std::uint32_t end = 0;                ///< the items not yet taken are the last before this
  };

  void run_job(const Job& job);
  std::uint32_t work_on(Share& share, std::uint32_t thread);
  std::uint32_t work(std::uint32_t thread, bool report);
  void report_done(std::uint32_t n_items);
  void worker_loop(std::uint32_t thread);
  bool wait_for_share(std::uint32_t thread);
  void wait_until_done(std::uint32_t n_items);
  void start_workers(std::uint32_t n_workers);
  void stop_workers();

  std::vector<Share> shares_;                       ///< one a thread, the caller's first
  std::uint32_t job_number_ = 0;                    ///< the caller's own
  alignas(64) std::atomic<std::uint32_t> done_{0};  ///< items of the job that workers have done
  alignas(64) std::atomic<std::uint32_t> wake_{0};  ///< sleepers wait for it to change
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::uint32_t spins_ = 0;
  std::vector<std::uint32_t> pinned_cpus_;
  std::vector<std::thread> workers_;
};

}  // namespace detrun
