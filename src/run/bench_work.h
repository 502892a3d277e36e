// The model of a `bench` and the kinds of work that are timed on it. Each function does one
// measurement. Inside of bench.cpp, which says how often and in which order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "detrun/engine.h"
#include "detrun/ledger.h"
#include "detrun/run.h"
#include "run/bench_measure.h"
#include "run/bench_model.h"
#include "run/bench_trace.h"
#include "run/late_facts.h"
#include "run/loaded_model.h"

namespace detrun {

inline constexpr std::uint32_t kBenchPromptTokens = 8;  ///< before decode, record and replay
inline constexpr std::uint32_t kBenchRows = 512;        ///< of prefill and replay_parallel
inline constexpr std::uint32_t kBenchFewRows = 128;     ///< of prefill_128

/// One timed measurement.
struct Timed {
  std::uint64_t rows = 0;
  double seconds = 0, cpu_share = 0;
};

/// A loaded model with a context, ready for any of the kinds of work.
class BenchWork {
 public:
  /// Loads, measuring how long that takes (load_s, sha256_s, memory and the model's facts go to
  /// `report`). Errors as record's.
  BenchWork(const BenchOptions& options, const std::atomic<bool>& cancel, Observer& observer,
            BenchReport& report);

  /// `n` steps after a short prompt, nothing but forward passes. The prompt is not counted.
  Timed decode();
  /// A prompt of `rows` tokens, the logits of its last one.
  Timed prefill(std::uint32_t rows);
  /// A whole run of `n` steps into a ledger on disk, or without one.
  Timed record(bool with_ledger);
  /// The run made by `make_recorded`, again: its first `n` steps one by one, or all at once. Error
  /// kInternal when a logit differs.
  Timed replay_step();
  Timed replay_parallel();

  /// Makes the run that is replayed: about kBenchRows rows with its prompt. False: the model ends
  /// before its second step.
  bool make_recorded(bool whole);

  /// Notes the products of `work`, for `repeat_products`.
  template <class Work>
  MatmulTrace trace(Work&& work) {
    MatmulTrace trace;
    backend_->note_in(&trace);
    work();
    backend_->note_in(nullptr);
    return trace;
  }
  /// Seconds that the products alone take.
  double repeat_products(const MatmulTrace& trace);

  std::uint32_t n_threads() const { return backend_->info().n_threads; }
  std::unique_ptr<Ceilings> make_ceilings() const { return backend_->make_ceilings(); }
  const BackendInfo& backend_info() const { return backend_->info(); }
  /// Bytes of the cache that a step of decode reads on average.
  std::uint64_t cache_bytes_per_step() const;

 private:
  std::string make_synthetic(const BenchOptions& options, Observer& observer, BenchReport& report);
  void load(const std::string& path, const BenchOptions& options, Observer& observer,
            BenchReport& report);
  std::vector<std::int32_t> tokens(std::uint32_t count) const;
  std::vector<StepRecord> generate_steps(std::uint32_t prompt_tokens, std::uint64_t n_steps);

  const BenchOptions& options_;
  const std::atomic<bool>& cancel_;
  std::unique_ptr<SyntheticModel> synthetic_;
  std::unique_ptr<TracingBackend> backend_;
  LoadedModel model_;
  std::unique_ptr<LateFacts> late_;
  std::optional<ProductPlan> plan_;
  std::unique_ptr<Context> context_;
  std::vector<float> logits_;
  TemporaryFolder folder_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<std::int32_t> recorded_prompt_;
  std::vector<StepRecord> recorded_;
};

}  // namespace detrun
