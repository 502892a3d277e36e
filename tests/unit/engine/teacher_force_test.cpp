// teacher_force beside generate: whatever was recorded and whatever fails, a consumer that stops at
// the first difference sees the same steps, the same end and the same error from both, for every
// chunk.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/engine/fakes.h"

using namespace detrun;
using namespace detrun::test;
using Ids = std::vector<std::int32_t>;

namespace {

/// Wide enough that blocks of 64 rows are read by a thread of their own.
constexpr std::uint32_t kVocab = 300;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

/// What a run may meet. Tokens count upwards from the prompt's last one, so that 200 steps from
/// token 8 on do not reach the end token.
struct Case {
  Ids prompt = {3, 2, 1, 9, 8};
  Ids recorded = {};
  std::optional<std::uint64_t> max_steps = std::nullopt;
  std::uint32_t n_ctx = 400;
  std::optional<std::size_t> fails_at = std::nullopt, head_fails_at = std::nullopt;
  std::size_t not_finite_at = kNowhere;  ///< position whose row holds a NaN
  std::size_t end_at = kNowhere;         ///< position that chooses the end token
  std::size_t cancel_after = kNowhere;   ///< steps
};

struct Outcome {
  std::string end;  ///< stop reason or error with kind and hint
  std::vector<StepRecord> steps;
  Ids fed;
  std::size_t n_calls = 0;
  std::size_t rows_max = 0;
};

/// Stops where a comparison with the recorded tokens stops.
class StopAtDifference final : public StepSink {
 public:
  StopAtDifference(const Case& scene, std::atomic<bool>& cancel) : scene_(scene), cancel_(cancel) {}
  bool on_step(const StepRecord& step) override {
    steps.push_back(step);
    if (steps.size() == scene_.cancel_after) cancel_ = true;
    return step.index < scene_.recorded.size() && scene_.recorded[step.index] == step.token;
  }
  std::vector<StepRecord> steps;

 private:
  const Case& scene_;
  std::atomic<bool>& cancel_;
};

enum class How { kStep, kParallel };

Outcome run(const Case& scene, How how, std::uint32_t chunk, std::size_t block_rows = 64) {
  const FakeModel model(kVocab);
  const FakeTokenizer tokenizer(kVocab);
  FakeContext context(scene.n_ctx, std::min(chunk, scene.n_ctx), kVocab);
  context.block_rows = block_rows;
  context.fails_at = scene.fails_at;
  context.head_fails_at = scene.head_fails_at;
  context.script = [&scene](std::uint32_t seen, std::span<float> logits) {
    if (seen - 1 == scene.not_finite_at) logits[5] = std::nanf("");
    if (seen - 1 == scene.end_at) logits[kFakeEnd] = 2.0F;
  };
  std::atomic<bool> cancel = false;
  StopAtDifference sink(scene, cancel);
  const GenerateRequest request{scene.prompt, scene.max_steps};
  Outcome outcome;
  try {
    const StopReason reason =
        how == How::kStep
            ? generate(context, model, tokenizer, request, cancel, sink)
            : teacher_force(context, model, tokenizer, request, scene.recorded, cancel, sink);
    outcome.end = stop_reason_name(reason);
  } catch (const Error& error) {
    outcome.end = "error " + std::to_string(static_cast<int>(error.kind())) + ": " + error.what() +
                  " | " + error.hint();
  }
  outcome.steps = sink.steps;
  outcome.fed = context.seen;
  outcome.n_calls = context.calls.size();
  for (const auto& [tokens, rows] : context.calls) {
    outcome.rows_max = std::max(outcome.rows_max, tokens);
  }
  return outcome;
}

bool same_steps(const std::vector<StepRecord>& a, const std::vector<StepRecord>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const StepRecord& x, const StepRecord& y) {
                      return x.index == y.index && x.token == y.token &&
                             x.logits_xxh3 == y.logits_xxh3 && x.margin_bits == y.margin_bits &&
                             x.logprob_bits == y.logprob_bits && x.piece == y.piece;
                    });
}

/// Both ways, for every chunk; returns what they have in common.
Outcome check_equal(const Case& scene) {
  Outcome common;
  for (const std::uint32_t chunk : {1U, 2U, 3U, 7U, 64U, 65U, 512U}) {
    CAPTURE(chunk);
    const Outcome step = run(scene, How::kStep, chunk);
    for (const std::size_t block_rows : {64U, 5U}) {
      const Outcome parallel = run(scene, How::kParallel, chunk, block_rows);
      CHECK(parallel.end == step.end);
      CHECK(parallel.steps.size() == step.steps.size());
      CHECK(same_steps(parallel.steps, step.steps));
      CHECK(parallel.rows_max <= chunk);
    }
    common = step;
  }
  return common;
}

/// The tokens that the fakes choose of their own.
Ids honest(std::size_t n) {
  Ids tokens;
  for (std::size_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(9 + i));
  return tokens;
}

}  // namespace

TEST_CASE("the recorded steps of a run come out of chunks as they came out one by one") {
  const Outcome outcome = check_equal({.recorded = honest(200), .max_steps = 200});
  CHECK(outcome.end == "length");
  CHECK(outcome.steps.size() == 200);
  CHECK(outcome.steps.back().token == 208);
}

TEST_CASE("prompt and steps share chunks: as few passes as there are chunks") {
  const Case scene{.recorded = honest(200), .max_steps = 200};
  const Outcome parallel = run(scene, How::kParallel, 64);
  CHECK(parallel.n_calls == 4);  // 5 + 199 tokens
  CHECK(parallel.fed == run(scene, How::kStep, 64).fed);
}

TEST_CASE("no position behind the last step is computed, and none is left out") {
  const Case end{.recorded =
                     [] {
                       Ids tokens = honest(30);
                       tokens.push_back(kFakeEnd);
                       tokens.resize(40, 4);
                       return tokens;
                     }(),
                 .end_at = 34};
  CHECK(check_equal(end).end == "end");
  CHECK(run(end, How::kParallel, 512).fed.size() == 5 + 30);
  const Case one_more{.recorded = honest(30)};
  CHECK(check_equal(one_more).end == "closed");
  CHECK(check_equal(one_more).steps.size() == 31);
  CHECK(run(one_more, How::kParallel, 512).fed.size() == 5 + 30);
  const Case full{.recorded = honest(30), .n_ctx = 20};
  CHECK(check_equal(full).end == "context");
  CHECK(run(full, How::kParallel, 512).fed.size() == 20);
}

TEST_CASE("no step at all: nothing recorded, nothing asked for, a context full of prompt") {
  CHECK(check_equal({}).steps.size() == 1);
  CHECK(check_equal({.max_steps = 0}).steps.empty());
  CHECK(check_equal({.max_steps = 0}).end == "length");
  CHECK(check_equal({.recorded = honest(3), .n_ctx = 5}).end == "context");
  CHECK(check_equal({.recorded = honest(3), .n_ctx = 4}).end.starts_with("error 2"));
  CHECK(check_equal({.prompt = {}}).end.starts_with("error 2"));
  CHECK(check_equal({.prompt = {1, -1}}).end.starts_with("error 2"));
}

TEST_CASE("a changed token is found at its step, for every step and any value") {
  for (const std::int32_t forged : {4, kFakeEnd, -1, 300, std::numeric_limits<std::int32_t>::max(),
                                    std::numeric_limits<std::int32_t>::min()}) {
    for (const std::size_t at : {0U, 1U, 2U, 9U, 18U, 19U}) {
      CAPTURE(forged);
      CAPTURE(at);
      Case scene{.recorded = honest(20), .max_steps = 20};
      scene.recorded[at] = forged;
      const Outcome outcome = check_equal(scene);
      CHECK(outcome.end == "closed");
      CHECK(outcome.steps.size() == at + 1);
    }
  }
}

TEST_CASE("steps cut off and surplus steps are found for every way a run can end") {
  for (const std::size_t kept : {0U, 1U, 2U, 10U, 11U, 12U, 13U, 24U}) {
    CAPTURE(kept);
    CHECK(check_equal({.recorded = honest(kept), .max_steps = 12}).steps.size() ==
          std::min<std::size_t>(kept + 1, 12));
    CHECK(check_equal({.recorded = honest(kept), .n_ctx = 16}).steps.size() ==
          std::min<std::size_t>(kept + 1, 12));
    Case end{.recorded = honest(kept), .end_at = 15};
    if (kept > 11) end.recorded[11] = kFakeEnd;
    CHECK(check_equal(end).steps.size() == std::min<std::size_t>(kept + 1, 12));
  }
}

TEST_CASE("a position that cannot be computed is named by its step as one by one") {
  for (const std::size_t at : {0U, 3U, 4U, 5U, 6U, 11U, 62U, 63U, 64U, 65U, 66U, 73U, 74U}) {
    CAPTURE(at);
    Case layer{.recorded = honest(70), .max_steps = 70};
    layer.fails_at = at;
    const Outcome outcome = check_equal(layer);
    const std::size_t step = at < 5 ? 0 : at - 4;
    CHECK(outcome.steps.size() == std::min<std::size_t>(step, 70));
    const std::string named = "error 5: step " + std::to_string(step) + ": layer 1: row ";
    CHECK(outcome.end.starts_with(step < 70 ? named : "length"));
    Case head{.recorded = honest(70), .max_steps = 70};
    head.head_fails_at = at;
    CHECK(check_equal(head).steps.size() == (at < 4 ? 70 : std::min<std::size_t>(step, 70)));
  }
}

TEST_CASE("logits that are not finite are named by their step as one by one") {
  for (const std::size_t at : {4U, 5U, 6U, 7U, 8U, 62U, 63U, 64U, 65U, 66U, 83U, 84U, 85U}) {
    CAPTURE(at);
    const Outcome outcome = check_equal({.recorded = honest(80), .not_finite_at = at});
    CHECK(outcome.steps.size() == std::min<std::size_t>(at - 4, 81));
    CHECK(outcome.end.starts_with(at <= 84 ? "error 5: the logits of step" : "closed"));
  }
}

TEST_CASE("what comes first wins: a changed token before a position that cannot be computed") {
  for (const std::size_t token_at : {0U, 1U, 5U, 6U, 40U}) {
    for (const std::size_t fails_at : {4U, 5U, 9U, 10U, 11U, 44U, 45U, 50U}) {
      CAPTURE(token_at);
      CAPTURE(fails_at);
      for (int kind = 0; kind < 3; ++kind) {
        Case scene{.recorded = honest(50), .max_steps = 50};
        scene.recorded[token_at] = 4;
        if (kind == 0) scene.fails_at = fails_at;
        if (kind == 1) scene.head_fails_at = fails_at;
        if (kind == 2) scene.not_finite_at = fails_at;
        const Outcome outcome = check_equal(scene);
        CHECK((outcome.end == "closed") == (token_at + 5 <= fails_at));
      }
    }
  }
}

TEST_CASE("a run cancelled by its consumer ends after the same step") {
  for (const std::size_t after : {1U, 2U, 63U, 64U, 65U, 100U}) {
    CAPTURE(after);
    const Outcome outcome =
        check_equal({.recorded = honest(100), .max_steps = 100, .cancel_after = after});
    CHECK(outcome.end == (after == 100 ? "length" : "cancelled"));
    CHECK(outcome.steps.size() == after);
  }
}

TEST_CASE("cancelled before it begins, nothing is computed") {
  const FakeModel model(kVocab);
  const FakeTokenizer tokenizer(kVocab);
  FakeContext context(100, 16, kVocab);
  const std::atomic<bool> cancel = true;
  CollectingSink sink;
  CHECK(teacher_force(context, model, tokenizer, {{1, 2}, {}}, honest(3), cancel, sink) ==
        StopReason::kCancelled);
  CHECK(context.calls.empty());
}

TEST_CASE("a consumer that accepts every step still gets none behind the first difference") {
  const FakeModel model(kVocab);
  const FakeTokenizer tokenizer(kVocab);
  const std::atomic<bool> cancel = false;
  for (const std::size_t changed : {3U, 10U}) {
    FakeContext context(100, 16, kVocab);
    CollectingSink sink;
    Ids recorded = honest(10);
    if (changed < 10) recorded[changed] = 4;
    CHECK(teacher_force(context, model, tokenizer, {{8}, {}}, recorded, cancel, sink) ==
          StopReason::kSink);
    CHECK(sink.steps.size() == changed + 1);
  }
}

TEST_CASE("progress tells of the prompt's tokens and of nothing else") {
  const FakeModel model(kVocab);
  const FakeTokenizer tokenizer(kVocab);
  FakeContext context(100, 3, kVocab);
  const std::atomic<bool> cancel = false;
  CollectingSink sink;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  teacher_force(context, model, tokenizer, {{1, 2, 3, 8}, {}}, honest(10), cancel, sink,
                [&](std::uint64_t done, std::uint64_t total) { told.emplace_back(done, total); });
  CHECK(told == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{3, 4}, {4, 4}});
}

TEST_CASE("what the consumer throws comes out as it is") {
  const FakeModel model(kVocab);
  const FakeTokenizer tokenizer(kVocab);
  const std::atomic<bool> cancel = false;
  for (const std::uint32_t chunk : {1U, 4U, 64U}) {
    FakeContext context(100, chunk, kVocab);
    CollectingSink sink;
    sink.on_each = [&] {
      if (sink.steps.size() == 5) throw Error(ExitCode::kTampered, "no more paper");
    };
    std::string message;
    try {
      teacher_force(context, model, tokenizer, {{8}, {}}, honest(20), cancel, sink);
    } catch (const Error& error) {
      message = error.what();
      CHECK(error.kind() == ExitCode::kTampered);
    }
    CHECK(message == "no more paper");
    CHECK(sink.steps.size() == 5);
  }
}
