// Claiming: the low half of a share's `claim` counts the items nobody has taken; taking one
// decrements it by compare-exchange. The high half is the job's number, so a late worker cannot
// take an item of the next job with what it read of the last. A claimed item keeps its job alive
// until it is counted as done; the caller counts its own items itself.
#include "backend/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "detrun/backend.h"
#include "detrun/error.h"

namespace detrun {
namespace {

// About 200 microseconds: longer than what is done between two tokens, because waking a sleeper
// costs tens of them; short enough not to take a core from others. Then the thread sleeps.
constexpr std::uint32_t kSpins = 12000;
constexpr std::uint64_t kItemsMask = 0xffffffffu;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

bool pin(std::thread& thread, std::uint32_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(thread.native_handle(), sizeof set, &set) == 0;
}

}  // namespace

std::vector<std::uint32_t> allowed_cpus() {
  std::vector<std::uint32_t> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) {  // more cores than the set has room for
    for (std::uint32_t cpu = 0; cpu < std::max(1u, std::thread::hardware_concurrency()); ++cpu) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

ThreadPool::ThreadPool(std::uint32_t n_threads) : shares_(n_threads) {
  DETRUN_CHECK(n_threads >= 1);
  const std::vector<std::uint32_t> cpus = allowed_cpus();
  spins_ = n_threads <= cpus.size() ? kSpins : 0;
  try {
    start_workers(n_threads - 1);
  } catch (const std::system_error& error) {
    stop_workers();
    throw_internal("cannot start " + std::to_string(n_threads) + " threads: " + error.what(),
                   "use fewer --threads");
  }
  if (n_threads != cpus.size()) return;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (pin(workers_[i], cpus[i + 1])) pinned_cpus_.push_back(cpus[i + 1]);
  }
}

ThreadPool::~ThreadPool() { stop_workers(); }

void ThreadPool::start_workers(std::uint32_t n_workers) {
  workers_.reserve(n_workers);
  for (std::uint32_t i = 0; i < n_workers; ++i) {
    workers_.emplace_back([this, i] { worker_loop(i + 1); });
  }
}

void ThreadPool::stop_workers() {
  stopping_.store(true, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

/// Takes items of the share until none is left; how many this thread did.
std::uint32_t ThreadPool::work_on(Share& share, std::uint32_t thread) {
  std::uint32_t n_done = 0;
  std::uint64_t claim = share.claim.load(std::memory_order_acquire);
  while ((claim & kItemsMask) != 0) {
    if (!share.claim.compare_exchange_weak(claim, claim - 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
      continue;
    }
    const Job& job = share.job;
    job.call(job.context, share.end - static_cast<std::uint32_t>(claim & kItemsMask), thread);
    ++n_done;
    --claim;
  }
  return n_done;
}

/// The thread's own share, then what is left of the others'. Returns the number of items not
/// reported.
std::uint32_t ThreadPool::work(std::uint32_t thread, bool report) {
  const FpControlScope fp_control;
  std::uint32_t n_done = 0;
  for (std::uint32_t i = 0; i < n_threads(); ++i) {
    n_done += work_on(shares_[(thread + i) % n_threads()], thread);
    if (!report || n_done == 0) continue;
    report_done(n_done);
    n_done = 0;
  }
  return n_done;
}

void ThreadPool::report_done(std::uint32_t n_items) {
  done_.fetch_add(n_items, std::memory_order_acq_rel);
  done_.notify_one();
}

/// False when the pool is to stop. Before a worker sleeps it says so and looks once more, while a
/// caller first gives out items and then looks for sleepers: one of both sees the other.
bool ThreadPool::wait_for_share(std::uint32_t thread) {
  const auto has_items = [this, thread](std::memory_order order) {
    return (shares_[thread].claim.load(order) & kItemsMask) != 0;
  };
  for (std::uint32_t i = 0; i < spins_; ++i) {
    if (has_items(std::memory_order_relaxed)) return true;
    if (stopping_.load(std::memory_order_relaxed)) return false;
    relax();
  }
  const std::uint32_t seen = wake_.load(std::memory_order_acquire);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  const bool stopping = stopping_.load(std::memory_order_seq_cst);
  if (!stopping && !has_items(std::memory_order_seq_cst)) {
    wake_.wait(seen, std::memory_order_acquire);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return !stopping;
}

void ThreadPool::worker_loop(std::uint32_t thread) {
  while (wait_for_share(thread)) work(thread, true);
}

void ThreadPool::wait_until_done(std::uint32_t n_items) {
  std::uint32_t done = done_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < spins_ && done != n_items; ++i) {
    relax();
    done = done_.load(std::memory_order_acquire);
  }
  while (done != n_items) {
    done_.wait(done, std::memory_order_acquire);
    done = done_.load(std::memory_order_acquire);
  }
}

void ThreadPool::run_job(const Job& job) {
  if (job.n_items == 0) return;
  if (workers_.empty() || job.n_items == 1) {
    const FpControlScope fp_control;
    for (std::uint32_t item = 0; item < job.n_items; ++item) job.call(job.context, item, 0);
    return;
  }
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t number = std::uint64_t{++job_number_} << 32;
  for (std::uint32_t thread = 0; thread < n_threads(); ++thread) {
    Share& share = shares_[thread];
    const auto end_of = [&job, this](std::uint64_t n) {
      return static_cast<std::uint32_t>(n * job.n_items / n_threads());
    };
    share.job = job;
    share.end = end_of(thread + 1);
    share.claim.store(number | (share.end - end_of(thread)), std::memory_order_seq_cst);
  }
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    wake_.fetch_add(1, std::memory_order_release);
    wake_.notify_all();
  }
  wait_until_done(job.n_items - work(0, false));
}

}  // namespace detrun
