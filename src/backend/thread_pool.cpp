// Claiming: the low half of claims_ counts the items nobody has taken; taking one decrements it by
// compare-exchange. The high half is the job's number, so a late worker cannot take an item of the
// next job with what it read of the last. A claimed item keeps its job alive until pending_ drops.
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

// About 30 microseconds: longer than the serial work between two matmuls of a small model, short
// enough not to take a core from others. Then the thread sleeps.
constexpr std::uint32_t kSpins = 2000;
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
  if (cpus.empty()) cpus.resize(std::max(1u, std::thread::hardware_concurrency()));
  return cpus;
}

ThreadPool::ThreadPool(std::uint32_t n_threads) {
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
  stopping_.store(true, std::memory_order_relaxed);
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::work(std::uint32_t thread) {
  const FpControlScope fp_control;
  std::uint64_t claim = claims_.load(std::memory_order_acquire);
  while ((claim & kItemsMask) != 0) {
    if (!claims_.compare_exchange_weak(claim, claim - 1, std::memory_order_acq_rel)) continue;
    const Job& job = job_;
    job.call(job.context, job.n_items - static_cast<std::uint32_t>(claim & kItemsMask), thread);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
    claim = claims_.load(std::memory_order_acquire);
  }
}

void ThreadPool::worker_loop(std::uint32_t thread) {
  while (true) {
    const std::uint32_t seen = wake_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    work(thread);
    bool woken = false;
    for (std::uint32_t i = 0; i < spins_ && !woken; ++i) {
      relax();
      woken = wake_.load(std::memory_order_relaxed) != seen;
    }
    if (!woken) wake_.wait(seen, std::memory_order_acquire);
  }
}

void ThreadPool::run_job(const Job& job) {
  if (job.n_items == 0) return;
  if (workers_.empty() || job.n_items == 1) {
    const FpControlScope fp_control;
    for (std::uint32_t item = 0; item < job.n_items; ++item) job.call(job.context, item, 0);
    return;
  }
  job_ = job;
  pending_.store(job.n_items, std::memory_order_relaxed);
  const std::uint64_t number = (claims_.load(std::memory_order_relaxed) >> 32) + 1;
  claims_.store(number << 32 | job.n_items, std::memory_order_release);
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_all();
  work(0);
  std::uint32_t left = pending_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < spins_ && left != 0; ++i) {
    relax();
    left = pending_.load(std::memory_order_acquire);
  }
  while (left != 0) {
    pending_.wait(left, std::memory_order_acquire);
    left = pending_.load(std::memory_order_acquire);
  }
}

}  // namespace detrun
