// The determinism matrix of detrun-numerics(7) on trained weights: the fixture models and, where
// they are, the published ones of ../shared/models. One reference run of each model (scalar, one
// thread, token by token); every other cell must give its logits of every row and its KV cache,
// bit for bit. Compilers, optimization levels and AArch64 have scripts of their own (tests/cross).
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "detrun/backend.h"
#include "detrun/model.h"
#include "tests/unit/model/run_tiny.h"

using namespace detrun;
using namespace detrun::test;

namespace {

const std::string kFixtures = std::string(DETRUN_SOURCE_DIR) + "/fixtures/models/";
const std::string kShared = std::string(DETRUN_SOURCE_DIR) + "/../shared/models/";

const std::vector<std::string>& models() {
  static const std::vector<std::string> paths = {
      kFixtures + "detrun-decisions-f16.gguf",    kFixtures + "detrun-decisions-q8_0.gguf",
      kFixtures + "detrun-decisions-q4_k_m.gguf", kShared + "stories260K-f32.gguf",
      kShared + "stories260K-f16.gguf",           kShared + "stories260K-q8_0.gguf",
      kShared + "stories260K-q4_0.gguf",
  };
  return paths;
}

/// A model file with weights for every instruction set, each bound once.
class Subject {
 public:
  explicit Subject(const std::string& path, LoadMethod method = LoadMethod::kMap)
      : file_(ModelFile::open(path, method)) {}

  Backend& backend(const std::string& isa, std::uint32_t threads) {
    auto& backend = backends_[{isa, threads}];
    if (!backend) backend = make_cpu_backend({threads, isa});
    return *backend;
  }
  const Model& model(const std::string& isa) {
    auto& model = models_[isa];
    if (!model) model = Model::load(*file_, backend(isa, 1));
    return *model;
  }
  std::unique_ptr<Context> context(const std::string& isa, std::uint32_t threads,
                                   std::uint32_t chunk, KvType kv) {
    const Model& bound = model(isa);  // first: it may make the backend
    return Context::create(bound, backend(isa, threads), kTokens, kv, chunk);
  }
  Outcome run(const std::string& isa, std::uint32_t threads, std::uint32_t chunk, KvType kv,
              const Ids& tokens) {
    return feed(*context(isa, threads, chunk, kv), model(isa).spec(), tokens, chunk);
  }

 private:
  std::unique_ptr<ModelFile> file_;
  std::map<std::pair<std::string, std::uint32_t>, std::unique_ptr<Backend>> backends_;
  std::map<std::string, std::unique_ptr<Model>> models_;
};

/// Where two outcomes differ first, for a message; empty when they do not.
std::string difference(const Outcome& a, const Outcome& b, std::uint32_t n_vocab) {
  if (a == b) return {};
  if (a.logits.size() != b.logits.size()) return "another number of logits";
  for (std::size_t i = 0; i < a.logits.size(); ++i) {
    if (a.logits[i] == b.logits[i]) continue;
    return "logits of row " + std::to_string(i / n_vocab) + ", id " + std::to_string(i % n_vocab);
  }
  return "the KV cache";
}

template <class Body>
void for_each_model(Body&& body) {
  std::size_t n_run = 0;
  for (const std::string& path : models()) {
    if (!std::filesystem::exists(path)) {
      std::printf("SKIPPED: %s is not there\n", path.c_str());
      continue;
    }
    CAPTURE(path);
    Subject subject(path);
    const std::uint32_t n_vocab = subject.model("scalar").spec().n_vocab;
    body(path, subject, random_tokens(kTokens, n_vocab), n_vocab);
    ++n_run;
  }
  CHECK(n_run >= 3);  // the project's own are always there
}

}  // namespace

TEST_CASE("instruction sets, threads and chunks have no influence on logits and KV cache") {
  for_each_model([](const std::string&, Subject& subject, const Ids& tokens,
                    std::uint32_t n_vocab) {
    for (const KvType kv : {KvType::kF16, KvType::kF32}) {
      const Outcome reference = subject.run("scalar", 1, 1, kv, tokens);
      check_alive(reference, 8);  // tokens that training never saw have equal rows
      const auto check = [&](const std::string& isa, std::uint32_t threads, std::uint32_t chunk) {
        CAPTURE(isa);
        CAPTURE(threads);
        CAPTURE(chunk);
        const Outcome outcome = subject.run(isa, threads, chunk, kv, tokens);
        CHECK(difference(outcome, reference, n_vocab) == "");
      };
      for (const std::string& isa : available_cpu_isas()) {
        if (isa == "scalar") {  // the reference is slow: its splits once
          check(isa, 3, 64);
          continue;
        }
        for (const std::uint32_t chunk : {1U, 2U, 3U, 7U, 8U, 63U, 64U, 65U, 512U, kTokens}) {
          check(isa, chunk % 2 + 1, chunk);
        }
        for (std::uint32_t threads = 3; threads <= 8; ++threads) {
          check(isa, threads, threads % 2 == 0 ? 1 : kTokens);
        }
      }
    }
  });
}

TEST_CASE("a reused context, a second pass and a read file give the bits of a fresh mapped one") {
  for_each_model(
      [](const std::string& path, Subject& subject, const Ids& tokens, std::uint32_t n_vocab) {
        const std::string isa = available_cpu_isas()[0];
        const ModelSpec& spec = subject.model(isa).spec();
        const Outcome fresh = subject.run(isa, 2, 64, KvType::kF16, tokens);

        const auto context = subject.context(isa, 2, 64, KvType::kF16);
        feed(*context, spec, random_tokens(kTokens, n_vocab, 99), 64);
        for (int pass = 0; pass < 2; ++pass) {
          CAPTURE(pass);
          context->reset();
          CHECK(difference(feed(*context, spec, tokens, 64), fresh, n_vocab) == "");
        }
        Subject read(path, LoadMethod::kRead);
        CHECK(difference(read.run(isa, 2, 64, KvType::kF16, tokens), fresh, n_vocab) == "");
      });
}
