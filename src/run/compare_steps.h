// A recorded run against its replay, step after step, with progress. Not the comparison of two
// steps, which is the room compare's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detrun/compare.h"
#include "detrun/engine.h"
#include "run/replay_one.h"

namespace detrun {

/// Feeds each replayed step to the comparer; ends the replay where nothing more can be compared.
class CompareSteps final : public StepSink {
 public:
  /// All outlive the object; `what`: of the progress.
  CompareSteps(const std::vector<StepRecord>& recorded, StepComparer& comparer,
               const ReplayScope& scope, std::string what)
      : recorded_(recorded), comparer_(comparer), scope_(scope), what_(std::move(what)) {}

  bool on_step(const StepRecord& step) override;

  std::uint64_t n_replayed() const { return n_replayed_; }
  /// The first step whose tokens are equal and whose text is not, and both texts.
  std::optional<std::uint64_t> first_piece() const { return first_piece_; }
  const std::string& pieces() const { return pieces_; }

 private:
  const std::vector<StepRecord>& recorded_;
  StepComparer& comparer_;
  const ReplayScope& scope_;
  std::string what_;
  std::uint64_t n_replayed_ = 0;
  std::optional<std::uint64_t> first_piece_;
  std::string pieces_;
};

/// For messages: in quotes, with nothing that moves a terminal's cursor.
std::string quoted(const std::string& text);

}  // namespace detrun
