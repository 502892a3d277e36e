// Verdicts and the comparison of steps.
#include "detrun/compare.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>

using namespace detrun;

namespace {

StepRecord step(std::uint64_t index, std::int32_t token, std::uint8_t hash = 1) {
  StepRecord record{};
  record.index = index;
  record.token = token;
  record.logits_xxh3.fill(hash);
  record.margin_bits = 0x3f800000U;
  record.logprob_bits = 0xbf800000U;
  record.piece = "x";
  return record;
}

}  // namespace

TEST_CASE("verdict names and exit codes are those of the manual") {
  CHECK(verdict_name(Verdict::kReproduced) == "REPRODUCED");
  CHECK(verdict_name(Verdict::kDiverged) == "DIVERGED");
  CHECK(verdict_name(Verdict::kInconclusive) == "INCONCLUSIVE");
  CHECK(verdict_name(Verdict::kTampered) == "TAMPERED");
  CHECK(verdict_name(Verdict::kInternal) == "ERROR");
  CHECK(static_cast<int>(verdict_exit_code(Verdict::kReproduced)) == 0);
  CHECK(static_cast<int>(verdict_exit_code(Verdict::kDiverged)) == 1);
  CHECK(static_cast<int>(verdict_exit_code(Verdict::kInconclusive)) == 3);
  CHECK(static_cast<int>(verdict_exit_code(Verdict::kTampered)) == 4);
  CHECK(static_cast<int>(verdict_exit_code(Verdict::kInternal)) == 5);
}

TEST_CASE("the worse of two verdicts wins in the order 4, 5, 1, 3, 0") {
  const std::array<Verdict, 5> worst_first = {Verdict::kTampered, Verdict::kInternal,
                                              Verdict::kDiverged, Verdict::kInconclusive,
                                              Verdict::kReproduced};
  for (std::size_t i = 0; i < worst_first.size(); ++i) {
    for (std::size_t j = 0; j < worst_first.size(); ++j) {
      CHECK(worst(worst_first.at(i), worst_first.at(j)) == worst_first.at(std::min(i, j)));
    }
  }
}

TEST_CASE("equal steps are equal and counted") {
  StepComparer comparer;
  CHECK(comparer.equal());
  CHECK(comparer.compare(step(0, 5), step(0, 5)));
  CHECK(comparer.compare(step(1, 6), step(1, 6)));
  CHECK(comparer.equal());
  CHECK(comparer.steps_checked() == 2);
  CHECK(comparer.describe().empty());
}

TEST_CASE("a logits difference is remembered and the comparison goes on to the first token") {
  StepComparer comparer;
  CHECK(comparer.compare(step(11, 5), step(11, 5)));
  CHECK(comparer.compare(step(12, 5, 1), step(12, 5, 2)));
  CHECK(comparer.compare(step(13, 5, 1), step(13, 5, 3)));
  CHECK_FALSE(comparer.compare(step(14, 5, 1), step(14, 9, 2)));
  CHECK_FALSE(comparer.equal());
  CHECK(comparer.first_logits_difference() == 12);
  CHECK(comparer.first_token_difference() == 14);
  CHECK(comparer.recorded_token() == 5);
  CHECK(comparer.replayed_token() == 9);
  CHECK(comparer.steps_checked() == 4);
  CHECK(comparer.describe() ==
        "logits differ at step 12, token first differs at step 14 (recorded 5, replayed 9)");
}

TEST_CASE("every bit of the hash counts") {
  for (std::size_t byte = 0; byte < 16; ++byte) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      StepRecord changed = step(3, 5);
      changed.logits_xxh3.at(byte) ^= static_cast<std::uint8_t>(1U << bit);
      StepComparer comparer;
      CHECK(comparer.compare(step(3, 5), changed));
      CHECK(comparer.first_logits_difference() == 3);
    }
  }
}

TEST_CASE("logits that differ with equal tokens are a difference") {
  StepComparer comparer;
  CHECK(comparer.compare(step(4, 5, 1), step(4, 5, 2)));
  CHECK_FALSE(comparer.equal());
  CHECK_FALSE(comparer.first_token_difference());
  CHECK(comparer.describe() == "logits differ at step 4, tokens are equal");
}

TEST_CASE("a recorded token that its own logits did not choose is named") {
  StepComparer comparer;
  CHECK_FALSE(comparer.compare(step(2, 5), step(2, 7)));
  CHECK_FALSE(comparer.first_logits_difference());
  CHECK(comparer.describe() ==
        "token first differs at step 2 (recorded 5, replayed 7) although the logits are equal");
}

TEST_CASE("margin and log probability are compared where the logits are equal") {
  StepRecord margin = step(6, 5);
  margin.margin_bits ^= 1U;
  StepComparer first;
  CHECK(first.compare(step(6, 5), margin));
  CHECK(first.first_value_difference() == 6);
  CHECK_FALSE(first.equal());
  CHECK(first.describe() ==
        "margin or log probability differs at step 6 although the logits are equal, tokens are "
        "equal");
  StepRecord logprob = step(6, 5);
  logprob.logprob_bits ^= 0x80000000U;
  StepComparer second;
  CHECK(second.compare(step(6, 5), logprob));
  CHECK(second.first_value_difference() == 6);
  // Other logits have other margins: that is no difference of its own.
  StepComparer third;
  margin.logits_xxh3.fill(9);
  CHECK(third.compare(step(6, 5), margin));
  CHECK_FALSE(third.first_value_difference());
}

TEST_CASE("the text of a piece is no part of the comparison") {
  StepRecord other = step(0, 5);
  other.piece = "y";
  StepComparer comparer;
  CHECK(comparer.compare(step(0, 5), other));
  CHECK(comparer.equal());
}

TEST_CASE("a replay that goes on where the recording ended is a token difference") {
  StepComparer comparer;
  CHECK(comparer.compare(step(0, 5), step(0, 5)));
  comparer.length_differs(1, std::nullopt, 8);
  CHECK_FALSE(comparer.equal());
  CHECK(comparer.first_token_difference() == 1);
  CHECK_FALSE(comparer.recorded_token());
  CHECK(comparer.replayed_token() == 8);
  CHECK(comparer.describe() ==
        "the recording ends before step 1, the replay does not (recorded none, replayed 8)");
}

TEST_CASE("a recording that goes on where the replay ended is a token difference") {
  StepComparer comparer;
  comparer.length_differs(0, 4, std::nullopt);
  CHECK(comparer.first_token_difference() == 0);
  CHECK(comparer.describe() ==
        "the replay ends before step 0, the recording does not (recorded 4, replayed none)");
}

TEST_CASE("the first difference stays the first") {
  StepComparer comparer;
  CHECK_FALSE(comparer.compare(step(1, 5, 1), step(1, 6, 2)));
  CHECK_FALSE(comparer.compare(step(2, 5, 1), step(2, 7, 3)));
  comparer.length_differs(3, 1, std::nullopt);
  CHECK(comparer.first_logits_difference() == 1);
  CHECK(comparer.first_token_difference() == 1);
  CHECK(comparer.replayed_token() == 6);
}
