// See replay_jobs.h. Jobs share the weights, which nobody writes once they are loaded, and take
// runs from one list. Each has its own backend on its own cores and its own view of the ledger.
#include "run/replay_jobs.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "detrun/error.h"
#include "run/core_share.h"
#include "run/model_cache.h"
#include "run/replay_one.h"
#include "run/start_thread.h"

namespace detrun {
namespace {

using Clock = std::chrono::steady_clock;

/// How often the progress of the jobs is shown.
constexpr std::chrono::milliseconds kShowTime{100};

ReplayRun failed(const RunRef& ref, Verdict verdict, const std::string& reason) {
  ReplayRun run;
  run.id = ref.id;
  run.number = ref.number;
  run.verdict = verdict;
  run.reason = reason;
  return run;
}

/// An Error that comes out of one run is that run's verdict.
ReplayRun replay_guarded(const ReplayScope& scope, const RunRef& ref) {
  try {
    return replay_one(scope, ref);
  } catch (const Error& error) {
    const std::string reason = error.with_hint();
    switch (error.kind()) {
      case ExitCode::kTampered:
        return failed(ref, Verdict::kTampered, reason);
      case ExitCode::kInconclusive:
      case ExitCode::kUsage:
        return failed(ref, Verdict::kInconclusive, reason);
      default:
        return failed(ref, Verdict::kInternal, reason);
    }
  } catch (const std::exception& error) {
    return failed(ref, Verdict::kInternal, error.what());
  }
}

/// What the model of a run is known by before it is read: its digest or, without one, its path. A
/// run that cannot be read says so itself.
std::string model_of(const Ledger& ledger, const RunRef& ref) {
  try {
    for (const std::string_view name : {field::model_sha256, field::model_path}) {
      const std::optional<FieldValue> value = ledger.field(ref.number, name);
      const auto* blob = value ? std::get_if<Blob>(&*value) : nullptr;
      if (blob != nullptr) return blob->bytes;
    }
  } catch (const Error&) {
    return {};
  }
  return {};
}

/// Indexes of `runs`, those of one model behind each other so that it is loaded once; models in
/// order of their first run.
std::vector<std::size_t> grouped_by_model(const std::vector<RunRef>& runs, const Ledger& ledger) {
  std::map<std::string, std::size_t> rank;
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t next = rank.size();
    order.emplace_back(rank.emplace(model_of(ledger, runs[i]), next).first->second, i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::size_t> indexes;
  for (const auto& [group, index] : order) indexes.push_back(index);
  return indexes;
}

/// Shows the progress of all runs in the place of that of one.
class ManyRuns final : public Observer {
 public:
  ManyRuns(Observer& outer, std::uint64_t total) : outer_(outer), total_(total) {}
  void set_done(std::uint64_t done) {
    done_ = done;
    outer_.on_progress("replaying", done_, total_, "runs");
  }
  void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) override {
    if (unit == "bytes") {  // of a model: its digest, its weights
      outer_.on_progress(what, done, total, unit);
    } else {
      outer_.on_progress("replaying", done_, total_, "runs");
    }
  }

 private:
  Observer& outer_;
  std::uint64_t total_, done_ = 0;
};

/// The list that jobs take runs from, and their results.
class RunList {
 public:
  RunList(const ReplayOptions& options, const std::vector<RunRef>& runs, const Ledger& ledger,
          const std::atomic<bool>& cancel)
      : options_(options), runs_(runs), cancel_(cancel), results_(runs.size()) {
    if (options.fail_fast) {
      for (std::size_t i = 0; i < runs.size(); ++i) order_.push_back(i);
    } else {
      order_ = grouped_by_model(runs, ledger);
    }
  }

  /// Replays the next run; false when there is none left to begin. A cancelled command still has
  /// its first run looked at, which then says that it was cancelled.
  bool replay_next(const ReplayScope& scope) {
    std::size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      if (ended_ || next_ == order_.size() || (cancel_ && next_ > 0)) return false;
      index = order_[next_++];
    }
    const Clock::time_point started = Clock::now();
    ReplayRun run = replay_guarded(scope, runs_[index]);
    run.seconds = std::chrono::duration<double>(Clock::now() - started).count();
    const std::lock_guard lock(mutex_);
    if (options_.fail_fast && run.verdict != Verdict::kReproduced) ended_ = true;
    results_[index] = std::move(run);
    ++n_done_;
    return true;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  std::uint64_t n_done() const {
    const std::lock_guard lock(mutex_);
    return n_done_;
  }

  /// With fail_fast, what several jobs replayed behind the first bad run is left out: the result
  /// is that of one job.
  std::vector<std::optional<ReplayRun>> take_results() {
    bool cut = false;
    for (std::optional<ReplayRun>& run : results_) {
      if (cut) run.reset();
      cut = cut || (options_.fail_fast && run && run->verdict != Verdict::kReproduced);
    }
    return std::move(results_);
  }

 private:
  const ReplayOptions& options_;
  const std::vector<RunRef>& runs_;
  const std::atomic<bool>& cancel_;
  std::vector<std::size_t> order_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::size_t next_ = 0;
  std::uint64_t n_done_ = 0;
  bool ended_ = false;
  std::vector<std::optional<ReplayRun>> results_;
};

void replay_in_turn(const ReplayOptions& options, RunList& list, std::size_t n_runs,
                    const Ledger& ledger, const std::atomic<bool>& cancel, Observer& observer) {
  ManyRuns many(observer, n_runs);
  Observer& shown = n_runs > 1 ? static_cast<Observer&>(many) : observer;
  const std::unique_ptr<Backend> backend = open_backend(options.engine);
  ModelCache models(*backend, shown, cancel);
  TestedProducts tested;
  const ReplayScope scope{options, ledger, *backend, models, tested, cancel, shown};
  while (list.replay_next(scope)) {
    if (n_runs > 1) many.set_done(list.n_done());
  }
}

/// Threads that replay until the list is empty. Destroyed, it ends and joins them.
class Jobs {
 public:
  Jobs(const ReplayOptions& options, RunList& list, const Ledger& ledger,
       const std::atomic<bool>& cancel)
      : options_(options),
        list_(list),
        path_(ledger.path()),
        cancel_(cancel),
        loader_(open_backend(options.engine)),
        models_(*loader_, nobody_, cancel) {}
  ~Jobs() {
    list_.end();
    for (std::thread& thread : threads_) thread.join();
  }
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  void start(const std::vector<CoreShare>& shares) {
    n_running_ = shares.size();
    std::size_t n_started = 0;
    try {
      for (const CoreShare& share : shares) {
        threads_.push_back(
            start_thread([&] { return std::thread([this, share] { work(share); }); }));
        ++n_started;
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      n_running_ -= shares.size() - n_started;
      throw;
    }
  }

  /// Waits for all, calling `show` now and then. Throws what a job failed with.
  void wait(const std::function<void()>& show) {
    std::unique_lock lock(mutex_);
    while (n_running_ > 0) {
      idle_.wait_for(lock, kShowTime);
      lock.unlock();
      show();
      lock.lock();
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work(const CoreShare& share) {
    std::exception_ptr error;
    try {
      keep_on_cpus(share.cpus);
      const std::unique_ptr<Ledger> ledger = Ledger::open_for_reading(path_);
      EngineOptions engine = options_.engine;
      engine.threads = share.threads;
      const std::unique_ptr<Backend> backend = open_backend(engine);
      Observer nobody;
      const ReplayScope scope{options_, *ledger, *backend, models_, tested_, cancel_, nobody};
      while (list_.replay_next(scope)) idle_.notify_all();
    } catch (...) {
      error = std::current_exception();
      list_.end();
    }
    const std::lock_guard lock(mutex_);
    if (error && !error_) error_ = error;
    --n_running_;
    idle_.notify_all();
  }

  const ReplayOptions& options_;
  RunList& list_;
  std::string path_;
  const std::atomic<bool>& cancel_;
  Observer nobody_;
  std::unique_ptr<Backend> loader_;  ///< of all threads; idle once the models are loaded
  ModelCache models_;
  TestedProducts tested_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable idle_;
  std::size_t n_running_ = 0;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::vector<std::optional<ReplayRun>> replay_runs(const ReplayOptions& options,
                                                  const std::vector<RunRef>& runs,
                                                  const Ledger& ledger,
                                                  const std::atomic<bool>& cancel,
                                                  Observer& observer) {
  RunList list(options, runs, ledger, cancel);
  const auto n_jobs = static_cast<std::uint32_t>(std::min<std::size_t>(options.jobs, runs.size()));
  if (n_jobs <= 1) {
    replay_in_turn(options, list, runs.size(), ledger, cancel, observer);
  } else {
    Jobs jobs(options, list, ledger, cancel);
    jobs.start(share_cores(allowed_cpus(), options.engine.threads, n_jobs));
    jobs.wait([&] { observer.on_progress("replaying", list.n_done(), runs.size(), "runs"); });
  }
  return list.take_results();
}

}  // namespace detrun
