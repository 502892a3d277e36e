// A published model by others (stories260K): the program writes its author's story, from every
// tensor type, and its logits are those of an independent implementation in binary64.
// Runs when ../shared/models is there; says so when it is not.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "detrun/backend.h"
#include "detrun/engine.h"
#include "tests/unit/model/reference_llama.h"

using namespace detrun;
using namespace detrun::test;

namespace {

const std::string kFolder = std::string(DETRUN_SOURCE_DIR) + "/../shared/models/";
constexpr std::int32_t kBos = 1;

/// The beginning as the model's author shows it.
constexpr std::string_view kBeginning =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big, red ball. She wanted to play with it, but it was too high.\n"
    "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do. "
    "She said, \"I want to play with your ball, but I can't find it.\"";

bool skipped(const std::string& name) {
  if (std::filesystem::exists(kFolder + name)) return false;
  std::printf("SKIPPED: %s is not there\n", (kFolder + name).c_str());
  return true;
}

class Collect final : public StepSink {
 public:
  bool on_step(const StepRecord& step) override {
    steps.push_back(step);
    text += step.piece;
    return true;
  }
  std::vector<StepRecord> steps;
  std::string text;
};

struct Session {
  Session(const std::string& name, const CpuOptions& options, KvType kv, std::uint32_t max_rows)
      : file(ModelFile::open(kFolder + name)),
        tokenizer(Tokenizer::create(*file)),
        backend(make_cpu_backend(options)),
        model(Model::load(*file, *backend)),
        context(Context::create(*model, *backend, 512, kv, max_rows)) {}

  Collect generate_steps(const std::vector<std::int32_t>& prompt, std::uint64_t n) {
    context->reset();
    Collect collect;
    const std::atomic<bool> cancel = false;
    CHECK(generate(*context, *model, *tokenizer, {prompt, n}, cancel, collect) ==
          StopReason::kLength);
    return collect;
  }

  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Context> context;
};

bool same_steps(const std::vector<StepRecord>& a, const std::vector<StepRecord>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const StepRecord& x, const StepRecord& y) {
                      return x.index == y.index && x.token == y.token &&
                             x.logits_xxh3 == y.logits_xxh3 && x.margin_bits == y.margin_bits &&
                             x.logprob_bits == y.logprob_bits && x.piece == y.piece;
                    });
}

}  // namespace

TEST_CASE("the published model tells the story of Lily, from every supported type") {
  for (const std::string name : {"stories260K-f32.gguf", "stories260K-f16.gguf",
                                 "stories260K-q8_0.gguf", "stories260K-q4_0.gguf"}) {
    if (skipped(name)) continue;
    CAPTURE(name);
    Session session(name, {1, ""}, KvType::kF16, 64);
    const Collect run = session.generate_steps({kBos}, 200);
    CHECK(run.steps.size() == 200);
    // 8- and 4-bit weights may take another turn later in the story, not in its first sentence.
    const std::size_t n = name.find("-q") != std::string::npos ? 53 : kBeginning.size();
    CHECK(run.text.substr(0, n) == kBeginning.substr(0, n));
  }
}

TEST_CASE("threads and instruction sets write the same steps on trained weights") {
  for (const std::string name :
       {"stories260K-f32.gguf", "stories260K-q8_0.gguf", "stories260K-q4_0.gguf"}) {
    if (skipped(name)) continue;
    CAPTURE(name);
    Session session(name, {1, "scalar"}, KvType::kF16, 64);
    const Collect base = session.generate_steps({kBos}, 120);
    for (const std::string& isa : available_cpu_isas()) {
      for (const std::uint32_t threads : {1U, 2U, 3U}) {
        Session other(name, {threads, isa}, KvType::kF16, 7);
        CHECK(same_steps(other.generate_steps({kBos}, 120).steps, base.steps));
        CHECK(same_steps(other.generate_steps({kBos}, 120).steps, base.steps));
      }
    }
  }
}

TEST_CASE("chunks of any size give the steps that were made one by one, over a long story") {
  for (const std::string name : {"stories260K-f32.gguf", "stories260K-f16.gguf",
                                 "stories260K-q8_0.gguf", "stories260K-q4_0.gguf"}) {
    if (skipped(name)) continue;
    CAPTURE(name);
    const std::vector<std::int32_t> prompt = {kBos, 403, 407, 261, 378};
    Session session(name, {1, ""}, KvType::kF16, 64);
    const Collect base = session.generate_steps(prompt, 400);
    REQUIRE(base.steps.size() == 400);
    std::vector<std::int32_t> tokens;
    for (const StepRecord& step : base.steps) tokens.push_back(step.token);
    for (const std::uint32_t chunk : {1U, 2U, 3U, 7U, 64U, 65U, 512U}) {
      CAPTURE(chunk);
      Session other(name, {2, ""}, KvType::kF16, chunk);
      Collect forced;
      const std::atomic<bool> cancel = false;
      CHECK(teacher_force(*other.context, *other.model, *other.tokenizer, {prompt, 400}, tokens,
                          cancel, forced) == StopReason::kLength);
      CHECK(same_steps(forced.steps, base.steps));
    }
  }
}

TEST_CASE("a run that starts with the tokens of another continues it, bit for bit") {
  const std::string name = "stories260K-q8_0.gguf";
  if (skipped(name)) return;
  Session session(name, {1, ""}, KvType::kF16, 16);
  const Collect whole = session.generate_steps({kBos}, 120);
  std::vector<std::int32_t> prompt = {kBos};
  for (std::size_t i = 0; i < 75; ++i) prompt.push_back(whole.steps[i].token);
  const Collect rest = session.generate_steps(prompt, 45);
  REQUIRE(rest.steps.size() == 45);
  for (std::size_t i = 0; i < 45; ++i) {
    CHECK(rest.steps[i].logits_xxh3 == whole.steps[75 + i].logits_xxh3);
    CHECK(rest.steps[i].token == whole.steps[75 + i].token);
  }
}

TEST_CASE("logits are those of an independent implementation in binary64") {
  const std::string name = "stories260K-f32.gguf";
  if (skipped(name) || skipped("stories260K.bin")) return;
  Session session(name, {1, ""}, KvType::kF32, 64);
  ReferenceLlama reference = read_stories260k(kFolder + "stories260K.bin");
  std::vector<float> logits(512);
  std::int32_t token = kBos;
  double worst = 0;
  for (int position = 0; position < 200; ++position) {
    session.context->forward(std::span(&token, 1), 1, logits);
    const std::vector<double> expected = reference.forward(token);
    REQUIRE(expected.size() == logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      worst = std::max(worst, std::fabs(expected[i] - logits[i]));
    }
    const auto choice = std::max_element(expected.begin(), expected.end()) - expected.begin();
    CHECK(choice == std::max_element(logits.begin(), logits.end()) - logits.begin());
    token = static_cast<std::int32_t>(choice);
  }
  // Binary32 against binary64 through five layers: measured 1e-5.
  CHECK(worst < 1e-4);
  CHECK(worst > 0);
}
