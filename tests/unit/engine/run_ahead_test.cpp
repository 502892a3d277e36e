// generate with a vocabulary so large that rows are hashed beside the next forward pass: steps,
// ends and errors are those of a small one, and the first step does not wait.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/engine/fakes.h"

using namespace detrun;
using namespace detrun::test;
using Ids = std::vector<std::int32_t>;

namespace {

constexpr std::uint32_t kLarge = 20'000;

/// The same run twice: a vocabulary that is hashed in passing, and one that is hashed beside.
struct Scene {
  Ids prompt = {10};
  std::optional<std::uint64_t> max_steps = std::nullopt;
  std::uint32_t n_ctx = 100;
  std::optional<std::size_t> fails_at = std::nullopt;
  std::size_t not_finite_at = 1000, end_at = 1000, stop_after = 1000, cancel_after = 1000;
};

struct Outcome {
  std::string end;
  Ids tokens;
  std::string text;
  std::size_t seen_at_first_step = 0, seen = 0;
};

Outcome run(const Scene& scene, std::uint32_t n_vocab) {
  const FakeModel model(n_vocab);
  const FakeTokenizer tokenizer(n_vocab);
  FakeContext context(scene.n_ctx, 16, n_vocab);
  context.fails_at = scene.fails_at;
  context.script = [&scene](std::uint32_t seen, std::span<float> logits) {
    if (seen - 1 == scene.not_finite_at) logits[3] = HUGE_VALF;
    if (seen - 1 == scene.end_at) logits[kFakeEnd] = 2.0F;
  };
  std::atomic<bool> cancel = false;
  Outcome outcome;
  CollectingSink sink;
  sink.stop_after = scene.stop_after;
  sink.on_each = [&] {
    if (sink.steps.size() == 1) outcome.seen_at_first_step = context.seen.size();
    if (sink.steps.size() == scene.cancel_after) cancel = true;
  };
  try {
    outcome.end = stop_reason_name(
        generate(context, model, tokenizer, {scene.prompt, scene.max_steps}, cancel, sink));
  } catch (const Error& error) {
    outcome.end = error.what();
  }
  outcome.tokens = sink.tokens();
  outcome.text = sink.text();
  outcome.seen = context.seen.size();
  return outcome;
}

Outcome check_equal(const Scene& scene) {
  const Outcome small = run(scene, 64);
  const Outcome large = run(scene, kLarge);
  CHECK(large.end == small.end);
  CHECK(large.tokens == small.tokens);
  CHECK(large.text == small.text);
  CHECK(large.seen_at_first_step == small.seen_at_first_step);
  return large;
}

}  // namespace

TEST_CASE("every end is the same, and no pass is computed behind one that the token decides") {
  const Outcome length = check_equal({.max_steps = 5});
  CHECK(length.end == "length");
  CHECK(length.tokens == Ids{11, 12, 13, 14, 15});
  CHECK(length.seen == 5);
  const Outcome end = check_equal({.end_at = 4});
  CHECK(end.end == "end");
  CHECK(end.tokens == Ids{11, 12, 13, 14, 7});
  CHECK(end.seen == 5);
  const Outcome context = check_equal({.n_ctx = 6});
  CHECK(context.end == "context");
  CHECK(context.tokens.size() == 6);
  for (const std::size_t after : {1U, 2U, 7U}) {
    CHECK(check_equal({.stop_after = after}).end == "closed");
    CHECK(check_equal({.stop_after = after}).tokens.size() == after);
    CHECK(check_equal({.cancel_after = after}).end == "cancelled");
    CHECK(check_equal({.cancel_after = after}).tokens.size() == after);
  }
}

TEST_CASE("the first step is delivered before the pass behind it") {
  CHECK(check_equal({.prompt = {1, 2, 10}, .max_steps = 4}).seen_at_first_step == 3);
}

TEST_CASE("logits that are not finite are an error behind all steps before them") {
  for (std::size_t at = 0; at < 6; ++at) {
    const Outcome outcome = check_equal({.not_finite_at = at});
    CHECK(outcome.end.find("logits of step " + std::to_string(at)) != std::string::npos);
    CHECK(outcome.end.find("token id 3") != std::string::npos);
    CHECK(outcome.tokens.size() == at);
  }
}

TEST_CASE("a pass that fails comes behind the step before it, and does not come when that stops") {
  for (std::size_t at = 1; at < 6; ++at) {
    const Outcome outcome = check_equal({.fails_at = at});
    CHECK(outcome.end.starts_with("step " + std::to_string(at) + ": layer 1"));
    CHECK(outcome.tokens.size() == at);
    CHECK(check_equal({.fails_at = at, .stop_after = at}).end == "closed");
    CHECK(check_equal({.fails_at = at, .cancel_after = at}).end == "cancelled");
  }
}
