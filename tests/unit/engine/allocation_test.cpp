// The step loop allocates nothing: every operator new of this program is counted. A program of its
// own, because it replaces the global allocation functions.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "tests/unit/engine/fakes.h"
#include "tests/unit/model/tiny_model.h"

namespace {
std::atomic<std::uint64_t> allocations = 0;
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {  // given by malloc above
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {  // given by malloc above
  std::free(p);
}

using namespace detrun;
using namespace detrun::test;

namespace {

/// Notes the number of allocations at each step, without allocating.
class CountingSink final : public StepSink {
 public:
  explicit CountingSink(std::size_t n) : counts_(n) {}
  bool on_step(const StepRecord& step) override {
    counts_.at(step.index) = allocations.load();
    return step.index + 1 < counts_.size();
  }
  const std::vector<std::uint64_t>& counts() const { return counts_; }

 private:
  std::vector<std::uint64_t> counts_;
};

/// Keeps the tokens.
class TokenSink final : public StepSink {
 public:
  explicit TokenSink(std::size_t n) : n_(n) {}
  bool on_step(const StepRecord& step) override {
    tokens_.push_back(step.token);
    return tokens_.size() < n_;
  }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }

 private:
  std::size_t n_;
  std::vector<std::int32_t> tokens_;
};

/// Random weights may choose any token; none of them ends the run.
class EndlessTokenizer final : public FakeTokenizer {
 public:
  using FakeTokenizer::FakeTokenizer;
  bool is_end(std::int32_t) const override { return false; }
};

/// A tiny model ready to run, eight rows a chunk.
struct Tiny {
  Tiny(const TinyShape& shape, std::uint32_t threads)
      : file(ModelFile::open(folder.write("m.gguf", tiny_llama(shape).bytes()))),
        backend(make_cpu_backend({threads, ""})),
        model(Model::load(*file, *backend)),
        context(Context::create(*model, *backend, 256, KvType::kF16, 8)),
        tokenizer(shape.n_vocab) {}

  StopReason generate(StepSink& sink) const {
    return detrun::generate(*context, *model, tokenizer, request, cancel, sink);
  }

  TempFolder folder;
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Context> context;
  EndlessTokenizer tokenizer;
  std::atomic<bool> cancel = false;
  GenerateRequest request{{1, 2, 3}, std::nullopt};
};

}  // namespace

TEST_CASE("after its first step a run allocates nothing") {
  for (const std::uint32_t type : {gguf::kTensorF32, gguf::kTensorQ8_0}) {
    for (const std::uint32_t threads : {1U, 2U}) {
      for (const std::uint32_t n_vocab : {kFakeVocab, 16'384U}) {  // the latter is read beside
        const Tiny tiny({.n_ff = 256, .n_vocab = n_vocab, .type = type}, threads);
        CountingSink sink(200);
        CHECK(tiny.generate(sink) == StopReason::kSink);
        CHECK(sink.counts().front() > 0);
        CHECK(sink.counts().back() == sink.counts().at(1));
      }
    }
  }
}

TEST_CASE("after its first two chunks a teacher-forced run allocates nothing") {
  for (const std::uint32_t threads : {1U, 2U}) {
    for (const std::uint32_t n_vocab : {kFakeVocab, 4096U}) {  // the latter is read beside
      const Tiny tiny({.n_ff = 256, .n_vocab = n_vocab}, threads);
      TokenSink tokens(201);
      CHECK(tiny.generate(tokens) == StopReason::kSink);
      tiny.context->reset();
      CountingSink sink(200);
      CHECK(teacher_force(*tiny.context, *tiny.model, tiny.tokenizer, tiny.request, tokens.tokens(),
                          tiny.cancel, sink) == StopReason::kSink);
      CHECK(sink.counts().front() > 0);
      CHECK(sink.counts().back() == sink.counts().at(16));
    }
  }
}
