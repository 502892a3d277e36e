// One run from its first entry to its seal, and what the runs of one command share. Knows nothing
// of where prompts come from.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "detrun/engine.h"
#include "detrun/run.h"
#include "run/late_facts.h"
#include "run/loaded_model.h"
#include "run/prompt.h"
#include "run/run_store.h"

namespace detrun {

/// Error kUsage naming what no run can be recorded with.
void check_record_options(const RecordOptions& options);

/// The model of a command, loaded once, with its digests on their way. Members in order of
/// construction: what comes later uses what comes before.
struct RecordEngine {
  /// `before_weights` is called when all else is there, or went wrong: what it throws comes first.
  /// `observer` sees the weights come.
  RecordEngine(
      const RecordOptions& options, Observer& observer,
      const std::function<void()>& before_weights = [] {});

  std::unique_ptr<Backend> backend;
  LoadedModel model;
  std::unique_ptr<LateFacts> late;
  double load_s = 0;
};

/// Stores and shows each step. Nothing is shown before the run stands in the store.
class RecordSteps final : public StepSink {
 public:
  using Clock = std::chrono::steady_clock;

  /// `prompt`: its bytes as the model sees them.
  RecordSteps(RunStore& store, LateFields& late, Observer& observer, std::string prompt)
      : store_(store), late_(late), observer_(observer), prompt_(std::move(prompt)) {}

  bool on_step(const StepRecord& step) override;
  /// Waits until the run stands in the store, then shows its number and the prompt; once. The first
  /// step calls it, at the latest.
  void open();

  std::uint64_t n_steps() const { return n_steps_; }
  /// When the prompt was done, and when its first step could be shown: then, or now.
  Clock::time_point prompt_done_at() const {
    return n_steps_ == 0 ? Clock::now() : prompt_done_at_;
  }
  Clock::time_point opened_at() const { return n_steps_ == 0 ? Clock::now() : opened_at_; }

 private:
  RunStore& store_;
  LateFields& late_;
  Observer& observer_;
  std::string prompt_;
  bool opened_ = false;
  std::uint64_t n_steps_ = 0;
  Clock::time_point prompt_done_at_, opened_at_;
};

class Recording {
 public:
  Recording(RunStore& store, LateFacts& late, Observer& observer)
      : Recording(store, LateFields(late), observer) {}
  /// `late`: what the run's entry does not hold yet.
  Recording(RunStore& store, const LateFields& late, Observer& observer)
      : store_(store), late_(late), observer_(observer) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Everything that can go wrong in a run that was entered goes wrong in here: the run is then
  /// sealed as failed, where that is possible, and the Error is thrown on. Once.
  RecordReport run(Context& context, const LoadedModel& model, const GenerateRequest& request,
                   const std::atomic<bool>& cancel);

  /// After an Error: the run was sealed as failed, and the ledger goes on working.
  bool sealed() const { return sealed_; }

 private:
  void run_to_end(Context& context, const LoadedModel& model, const GenerateRequest& request,
                  const std::atomic<bool>& cancel, RecordReport& report);
  std::optional<Sha256Digest> seal(const std::string& status, const std::string& stop_reason,
                                   const std::string& error);
  void seal_failed(const std::string& message);

  RunStore& store_;
  LateFields late_;
  Observer& observer_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool sealed_ = false;
};

}  // namespace detrun
