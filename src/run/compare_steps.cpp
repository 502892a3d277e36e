// See compare_steps.h.
#include "run/compare_steps.h"

#include "detrun/text.h"

namespace detrun {

std::string quoted(const std::string& text) { return "'" + escape_for_terminal(text) + "'"; }

bool CompareSteps::on_step(const StepRecord& step) {
  if (step.index >= recorded_.size() || recorded_[step.index].index != step.index) {
    comparer_.length_differs(step.index, std::nullopt, step.token);
    return false;
  }
  ++n_replayed_;
  const StepRecord& expected = recorded_[step.index];
  if (!comparer_.compare(expected, step)) return false;
  if (!first_piece_ && expected.piece != step.piece) {
    first_piece_ = step.index;
    pieces_ = "recorded " + quoted(expected.piece) + ", replayed " + quoted(step.piece);
  }
  scope_.observer.on_progress(what_, n_replayed_, recorded_.size(), "tokens");
  return true;
}

}  // namespace detrun
