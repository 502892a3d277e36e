// The step loop on scripted logits: every stop reason and their order, prefill chunks, tokens,
// logits that are not finite, and what a step holds.
#include <doctest/doctest.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <atomic>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "detrun/error.h"
#include "detrun/sampler.h"
#include "tests/unit/engine/fakes.h"

using namespace detrun;
using namespace detrun::test;
using Ids = std::vector<std::int32_t>;

namespace {

/// One run on fakes, with everything a test may want to vary.
struct Run {
  explicit Run(Ids prompt, std::optional<std::uint64_t> max_steps = std::nullopt,
               std::uint32_t n_ctx = 100, std::uint32_t max_rows = 16)
      : context(n_ctx, max_rows), request{std::move(prompt), max_steps} {}

  StopReason go() {
    return generate(context, model, tokenizer, request, cancel, sink,
                    [this](std::uint64_t done, std::uint64_t total) {
                      progress.emplace_back(done, total);
                      if (on_progress) on_progress();
                    });
  }

  FakeModel model;
  FakeTokenizer tokenizer;
  FakeContext context;
  GenerateRequest request;
  std::atomic<bool> cancel = false;
  CollectingSink sink;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> progress;
  std::function<void()> on_progress;
};

std::string message_of(Run& run, ExitCode expected_kind) {
  try {
    run.go();
  } catch (const Error& error) {
    CHECK(error.kind() == expected_kind);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an end token is a step and ends the run") {
  Run run({4});
  CHECK(run.go() == StopReason::kEnd);
  CHECK(run.sink.tokens() == Ids{5, 6, 7});
  CHECK(run.sink.text() == "fg");
  CHECK(run.context.seen == Ids{4, 5, 6});
}

TEST_CASE("max_steps ends the run after that many steps") {
  Run run({0}, 3);
  CHECK(run.go() == StopReason::kLength);
  CHECK(run.sink.tokens() == Ids{1, 2, 3});
}

TEST_CASE("max_steps zero computes nothing") {
  Run run({0, 1, 2}, 0);
  CHECK(run.go() == StopReason::kLength);
  CHECK(run.context.calls.empty());
  CHECK(run.sink.steps.empty());
  CHECK(run.progress.empty());
}

TEST_CASE("a full context ends the run after the step that its last position chose") {
  Run run({0, 1}, std::nullopt, 4);
  CHECK(run.go() == StopReason::kContext);
  CHECK(run.context.seen == Ids{0, 1, 2, 3});
  CHECK(run.sink.tokens() == Ids{2, 3, 4});
}

TEST_CASE("a prompt that fills the context still chooses one token") {
  Run run({0, 1, 2}, std::nullopt, 3);
  CHECK(run.go() == StopReason::kContext);
  CHECK(run.sink.tokens() == Ids{3});
}

TEST_CASE("the order of stop reasons is sink, end, length, cancel, context") {
  const auto prepare = [](std::size_t first_ignored) {
    auto run = std::make_unique<Run>(
        first_ignored <= 1 ? Ids{6} : Ids{1},
        first_ignored <= 2 ? std::optional<std::uint64_t>(1) : std::nullopt, 1);
    if (first_ignored == 0) run->sink.stop_after = 1;
    if (first_ignored <= 3) run->sink.on_each = [r = run.get()] { r->cancel = true; };
    return run;
  };
  CHECK(prepare(0)->go() == StopReason::kSink);
  CHECK(prepare(1)->go() == StopReason::kEnd);
  CHECK(prepare(2)->go() == StopReason::kLength);
  CHECK(prepare(3)->go() == StopReason::kCancelled);
  CHECK(prepare(4)->go() == StopReason::kContext);
}

TEST_CASE("the prompt is fed in chunks of the context and only its last row has logits") {
  Run run({0, 1, 2, 3, 0, 1, 2}, 1, 100, 3);
  CHECK(run.go() == StopReason::kLength);
  using Calls = std::vector<std::pair<std::size_t, std::uint32_t>>;
  CHECK(run.context.calls == Calls{{3, 0}, {3, 0}, {1, 1}});
  CHECK(run.progress ==
        std::vector<std::pair<std::uint64_t, std::uint64_t>>{{3, 7}, {6, 7}, {7, 7}});
  CHECK(run.sink.tokens() == Ids{3});
}

TEST_CASE("cancelling before or during prefill gives no step") {
  Run before({0, 1});
  before.cancel = true;
  CHECK(before.go() == StopReason::kCancelled);
  CHECK(before.context.calls.empty());

  Run during({0, 1, 2, 3}, std::nullopt, 100, 2);
  during.on_progress = [&during] { during.cancel = true; };
  CHECK(during.go() == StopReason::kCancelled);
  CHECK(during.context.seen == Ids{0, 1});
  CHECK(during.sink.steps.empty());
}

TEST_CASE("cancelling between steps keeps the steps so far") {
  Run run({0});
  run.sink.on_each = [&run] { run.cancel = run.sink.steps.size() == 2; };
  CHECK(run.go() == StopReason::kCancelled);
  CHECK(run.sink.tokens() == Ids{1, 2});
}

TEST_CASE("a step holds index, choice, hash, margin, log probability and bytes") {
  Run run({0}, 2);
  run.go();
  REQUIRE(run.sink.steps.size() == 2);
  std::vector<float> logits(kFakeVocab, 0.0F);
  logits[2] = 1.0F;
  const Choice choice = choose_greedy(logits);
  const StepRecord& step = run.sink.steps[1];
  CHECK(step.index == 1);
  CHECK(step.token == 2);
  CHECK(step.logits_xxh3 == hash_logits(logits));
  CHECK(step.margin_bits == choice.margin_bits);
  CHECK(step.logprob_bits == choice.logprob_bits);
  CHECK(step.piece == "c");
}

TEST_CASE("the logits hash covers every bit of every logit, signed zeros included") {
  std::vector<float> logits(300, 0.25F);
  const Xxh3Digest base = hash_logits(logits);
  for (const std::size_t i : {0U, 1U, 150U, 299U}) {
    const float kept = logits[i];
    logits[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(kept) ^ 1U);
    CHECK(hash_logits(logits) != base);
    logits[i] = kept;
  }
  CHECK(hash_logits(std::vector<float>{0.0F}) != hash_logits(std::vector<float>{-0.0F}));
  // XXH3-128, seed 0, of the four bytes 00 00 80 3f, canonical form: from a C program of five
  // lines.
  CHECK(to_hex(hash_logits(std::vector<float>{1.0F})) == "e6f9acca6893caeb591ef4e963e120d4");
}

TEST_CASE("logits that are not finite are an error naming the step, which is not delivered") {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    Run run({0});
    run.context.script = [bad](std::uint32_t position, std::span<float> logits) {
      if (position == 3) logits[5] = bad;
    };
    const std::string message = message_of(run, ExitCode::kInternal);
    CHECK(message.find("step 2") != std::string::npos);
    CHECK(message.find("token id 5") != std::string::npos);
    CHECK(run.sink.tokens() == Ids{1, 2});
  }
}

#if defined(__x86_64__)
TEST_CASE("a thread with subnormals switched off makes the same choice") {
  const auto steps_with = [](unsigned control) {
    Run run({0}, 1);
    run.context.script = [control](std::uint32_t, std::span<float> logits) {
      for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = i == 5 ? 4e-40F : 1e-40F;
      _mm_setcsr(control);  // as a shared object that is loaded in mid-run does it
    };
    const unsigned kept = _mm_getcsr();
    run.go();
    const unsigned left = _mm_getcsr();
    _mm_setcsr(kept);
    CHECK((left & ~0x3fU) == control);
    return run.sink.steps;
  };
  const auto normal = steps_with(0x1f80);
  const auto flushed = steps_with(0x9fc0);      // FTZ and DAZ
  const auto toward_zero = steps_with(0x7f80);  // another rounding
  CHECK(normal[0].token == 5);
  for (const auto& steps : {flushed, toward_zero}) {
    CHECK(steps[0].token == normal[0].token);
    CHECK(steps[0].margin_bits == normal[0].margin_bits);
    CHECK(steps[0].logprob_bits == normal[0].logprob_bits);
    CHECK(steps[0].logits_xxh3 == normal[0].logits_xxh3);
  }
}
#endif

TEST_CASE("an error of the forward pass gets the step in front and keeps kind and hint") {
  Run run({0}, 5);
  run.context.on_forward = [&run] {
    if (run.context.position() == 3) throw Error(ExitCode::kInternal, "layer 1: bad", "do that");
  };
  try {
    run.go();
    CHECK(false);
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "step 2: layer 1: bad");
    CHECK(error.kind() == ExitCode::kInternal);
    CHECK(error.hint() == "do that");
  }
  CHECK(run.sink.tokens() == Ids{1, 2});
}

TEST_CASE("an empty prompt is refused") {
  Run run({});
  CHECK(message_of(run, ExitCode::kUsage).find("no tokens") != std::string::npos);
}

TEST_CASE("a prompt longer than the context is refused with both lengths") {
  Run run({0, 1, 2, 3}, 5, 3);
  const std::string message = message_of(run, ExitCode::kUsage);
  CHECK(message.find("4 tokens") != std::string::npos);
  CHECK(message.find("holds 3") != std::string::npos);
  CHECK(run.context.calls.empty());
}

TEST_CASE("ids outside the vocabulary are refused by place and value, never a crash") {
  for (const std::int32_t bad : {-1, 8, 2147483647}) {
    Run prompt({0, bad});
    CHECK(message_of(prompt, ExitCode::kUsage) == "prompt token 1 is id " + std::to_string(bad) +
                                                      ", the model's vocabulary has ids 0 to 7");
    CHECK(prompt.context.calls.empty());
  }
}

TEST_CASE("stop reasons have the names of the ledger") {
  CHECK(stop_reason_name(StopReason::kEnd) == "end");
  CHECK(stop_reason_name(StopReason::kLength) == "length");
  CHECK(stop_reason_name(StopReason::kContext) == "context");
  CHECK(stop_reason_name(StopReason::kCancelled) == "cancelled");
  CHECK(stop_reason_name(StopReason::kSink) == "closed");
}
