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

/// Random weights may choose any token; none of them ends the run.
class EndlessTokenizer final : public FakeTokenizer {
 public:
  bool is_end(std::int32_t) const override { return false; }
};

}  // namespace

TEST_CASE("after its first step a run allocates nothing") {
  for (const std::uint32_t type : {gguf::kTensorF32, gguf::kTensorQ8_0}) {
    for (const std::uint32_t threads : {1U, 2U}) {
      const TempFolder folder;
      const TinyShape shape = {.n_ff = 256, .n_vocab = kFakeVocab, .type = type};
      const auto file = ModelFile::open(folder.write("m.gguf", tiny_llama(shape).bytes()));
      const auto backend = make_cpu_backend({threads, ""});
      const auto model = Model::load(*file, *backend);
      const auto context = Context::create(*model, *backend, 256, KvType::kF16, 8);
      const EndlessTokenizer tokenizer;
      const std::atomic<bool> cancel = false;
      const GenerateRequest request{{1, 2, 3}, std::nullopt};
      CountingSink sink(200);
      CHECK(generate(*context, *model, tokenizer, request, cancel, sink) == StopReason::kSink);
      CHECK(sink.counts().front() > 0);
      CHECK(sink.counts().back() == sink.counts().at(1));
    }
  }
}
