// The forward pass on tiny random models: chunks, threads, instruction sets, load method and the
// history of a context have no influence on any bit of logits or KV cache, and the logits are those
// of an independent implementation.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "detrun/error.h"
#include "tests/unit/model/reference_llama.h"
#include "tests/unit/model/run_tiny.h"

using namespace detrun;
using namespace detrun::test;

namespace {

struct NamedShape {
  const char* name;
  TinyShape shape;
};

const std::vector<NamedShape>& shapes() {
  static const std::vector<NamedShape> all = {
      {"F32, heads 9/3 of 64, odd widths",
       {.n_layers = 2,
        .n_embd = 45,
        .n_ff = 77,
        .n_vocab = 61,
        .n_heads = 9,
        .n_kv_heads = 3,
        .head_dim = 64,
        .rope_dim = 64}},
      {"F16, heads 4/2 of 4, tied",
       {.n_layers = 3,
        .n_embd = 16,
        .n_ff = 40,
        .n_vocab = 33,
        .n_heads = 4,
        .n_kv_heads = 2,
        .head_dim = 4,
        .rope_dim = 4,
        .tied = true,
        .type = gguf::kTensorF16}},
      {"Q8_0, heads 4/2 of 16", {.n_layers = 2, .n_vocab = 64, .type = gguf::kTensorQ8_0}},
      {"BF16, heads 6/6 of 8, half of a head rotated, tied",
       {.n_layers = 2,
        .n_embd = 48,
        .n_ff = 64,
        .n_vocab = 50,
        .n_heads = 6,
        .n_kv_heads = 6,
        .head_dim = 8,
        .rope_dim = 4,
        .tied = true,
        .type = gguf::kTensorBF16}},
      {"Q8_0 with F16 rows that no block divides, heads 8/1 of 8",
       {.n_layers = 2,
        .n_embd = 64,
        .n_ff = 44,
        .n_vocab = 80,
        .n_heads = 8,
        .n_kv_heads = 1,
        .head_dim = 8,
        .rope_dim = 8,
        .type = gguf::kTensorQ8_0,
        .ffn_down_type = gguf::kTensorF16}},
  };
  return all;
}

}  // namespace

TEST_CASE("prefill in any chunk is decode one by one: logits and KV cache, bit for bit") {
  for (const NamedShape& named : shapes()) {
    CAPTURE(named.name);
    const TinyShape& shape = named.shape;
    const Loaded loaded(tiny_llama(shape).bytes());
    const Ids tokens = random_tokens(kTokens, shape.n_vocab);
    for (const KvType kv : {KvType::kF16, KvType::kF32}) {
      const Outcome whole = run(loaded, tokens, kTokens, kv);
      check_alive(whole);
      for (const std::uint32_t chunk : {1U, 2U, 3U, 7U, 8U, 63U, 64U, 65U}) {
        CAPTURE(chunk);
        const Outcome chunked = run(loaded, tokens, chunk, kv);
        CHECK(chunked.logits == whole.logits);
        CHECK(chunked.kv == whole.kv);
      }
    }
  }
}

TEST_CASE("logits are those of an independent implementation in binary64, in every shape") {
  std::vector<TinyShape> all;
  for (const NamedShape& named : shapes()) {
    all.push_back(named.shape);
    all.back().type = gguf::kTensorF32;
    all.back().ffn_down_type = gguf::kTensorF32;
  }
  for (const TinyShape& shape : all) {
    CAPTURE(shape.n_heads);
    CAPTURE(shape.n_kv_heads);
    const std::uint32_t pairs = shape.rope_dim / 2;
    for (const bool with_factors : {false, true}) {
      TinyFile file = tiny_llama(shape);
      ReferenceShape r;
      r.dim = static_cast<int>(shape.n_embd), r.hidden = static_cast<int>(shape.n_ff);
      r.layers = static_cast<int>(shape.n_layers), r.heads = static_cast<int>(shape.n_heads);
      r.kv_heads = static_cast<int>(shape.n_kv_heads), r.head = static_cast<int>(shape.head_dim);
      r.rope = static_cast<int>(shape.rope_dim), r.vocab = static_cast<int>(shape.n_vocab);
      if (with_factors) {
        for (std::uint32_t i = 0; i < pairs; ++i)
          r.factors.push_back(1.0F + 0.7F * static_cast<float>(i));
        file.tensors.push_back(
            {"rope_freqs.weight", gguf::kTensorF32, {pairs}, bytes_of(r.factors)});
      }
      ReferenceWeights weights;
      for (const TinyFile::Tensor& tensor : file.tensors) {
        std::vector<float>& values = weights[tensor.name];
        values.resize(tensor.data.size() / 4);
        std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
      }
      ReferenceLlama reference(r, weights);
      const Loaded loaded(file.bytes());
      const Ids tokens = random_tokens(80, shape.n_vocab);
      const Outcome found = run(loaded, tokens, 80, KvType::kF32);
      double worst = 0, largest = 0;
      for (std::size_t row = 0; row < tokens.size(); ++row) {
        const std::vector<double> expected = reference.forward(tokens[row]);
        REQUIRE(expected.size() == shape.n_vocab);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const float x = std::bit_cast<float>(found.logits[row * shape.n_vocab + i]);
          worst = std::max(worst, std::fabs(expected[i] - x));
          largest = std::max(largest, std::fabs(expected[i]));
        }
      }
      // Binary32 against binary64: a few hundred roundings of 6e-8 on values of about `largest`.
      CHECK(largest > 0.5);
      CHECK(worst < 2e-5 * largest);
      CHECK(worst > 0);
    }
  }
}

TEST_CASE("the last rows have the same logits however many are asked for") {
  const TinyShape& shape = shapes()[2].shape;
  const Loaded loaded(tiny_llama(shape).bytes());
  const Ids tokens = random_tokens(100, shape.n_vocab);
  const auto context = Context::create(*loaded.model, *loaded.backend, kTokens, KvType::kF16, 100);
  const Outcome all = feed(*context, loaded.model->spec(), tokens, 100);
  for (const std::uint32_t rows : {0U, 1U, 2U, 63U, 64U, 65U, 99U}) {
    context->reset();
    std::vector<float> logits(std::size_t{rows} * shape.n_vocab);
    context->forward(tokens, rows, logits);
    const std::size_t skipped = all.logits.size() - logits.size();
    CHECK(std::equal(logits.begin(), logits.end(), all.logits.begin() + static_cast<long>(skipped),
                     all.logits.end(), [](float x, std::uint32_t bits) {
                       return std::bit_cast<std::uint32_t>(x) == bits;
                     }));
  }
}

/// Keeps every block in a place of its own.
class KeepBlocks final : public LogitSink {
 public:
  explicit KeepBlocks(std::size_t n_vocab) : n_vocab_(n_vocab) {}
  std::span<float> room(std::uint32_t n_rows) override {
    CHECK(n_filled == blocks.size());
    if (blocks.size() == fail_at) throw Error(ExitCode::kTampered, "no room");
    return blocks.emplace_back(n_rows * n_vocab_);
  }
  void filled() override { ++n_filled; }

  std::vector<std::vector<float>> blocks;
  std::size_t n_filled = 0;
  std::size_t fail_at = 1000;

 private:
  std::size_t n_vocab_;
};

TEST_CASE("many rows of logits come in blocks of at most 64, in order, each said to be filled") {
  const TinyShape& shape = shapes()[2].shape;
  const Loaded loaded(tiny_llama(shape).bytes());
  const Ids tokens = random_tokens(200, shape.n_vocab);
  const auto context = Context::create(*loaded.model, *loaded.backend, 200, KvType::kF16, 200);
  for (const std::uint32_t rows : {0U, 1U, 64U, 65U, 150U, 200U}) {
    CAPTURE(rows);
    std::vector<float> together(std::size_t{rows} * shape.n_vocab), joined;
    context->reset();
    context->forward(tokens, rows, together);
    context->reset();
    KeepBlocks sink(shape.n_vocab);
    context->forward(tokens, rows, sink);
    CHECK(sink.n_filled == sink.blocks.size());
    for (const std::vector<float>& block : sink.blocks) {
      CHECK(block.size() <= 64 * shape.n_vocab);
      joined.insert(joined.end(), block.begin(), block.end());
    }
    REQUIRE(joined.size() == together.size());
    const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
    CHECK(std::equal(joined.begin(), joined.end(), together.begin(),
                     [&](float a, float b) { return bits(a) == bits(b); }));
  }
}

TEST_CASE("a pass that fails in the head leaves the context where it was") {
  const TinyShape& shape = shapes()[2].shape;
  const Loaded loaded(tiny_llama(shape).bytes());
  const Ids tokens = random_tokens(100, shape.n_vocab);
  const auto context = Context::create(*loaded.model, *loaded.backend, 200, KvType::kF16, 100);
  std::vector<float> expected(shape.n_vocab), found(shape.n_vocab);
  context->forward(tokens, 1, expected);
  context->reset();
  KeepBlocks sink(shape.n_vocab);
  sink.fail_at = 1;
  CHECK_THROWS_AS(context->forward(tokens, 100, sink), Error);
  CHECK(sink.n_filled == 1);
  CHECK(context->position() == 0);
  context->forward(tokens, 1, found);
  CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
}

TEST_CASE("threads have no influence on any bit") {
  for (const NamedShape& named : shapes()) {
    CAPTURE(named.name);
    const TinyShape& shape = named.shape;
    const std::string bytes = tiny_llama(shape).bytes();
    const Ids tokens = random_tokens(70, shape.n_vocab);
    const Outcome one = run(Loaded(bytes, {1, ""}), tokens, 7);
    check_alive(one);
    for (const std::uint32_t threads : {2U, 3U}) {
      CHECK(run(Loaded(bytes, {threads, ""}), tokens, 7) == one);
      CHECK(run(Loaded(bytes, {threads, ""}), tokens, 1) == one);
    }
  }
}

TEST_CASE("instruction sets have no influence on any bit") {
  const std::vector<std::string> isas = available_cpu_isas();
  REQUIRE(isas.back() == "scalar");
  if (isas.size() == 1) MESSAGE("this CPU has no instruction set to compare with scalar");
  for (const NamedShape& named : shapes()) {
    CAPTURE(named.name);
    const TinyShape& shape = named.shape;
    const std::string bytes = tiny_llama(shape).bytes();
    const Ids tokens = random_tokens(70, shape.n_vocab);
    const Outcome scalar = run(Loaded(bytes, {1, "scalar"}), tokens, 70);
    check_alive(scalar);
    for (const std::string& isa : isas) {
      CAPTURE(isa);
      CHECK(run(Loaded(bytes, {2, isa}), tokens, 70) == scalar);
      CHECK(run(Loaded(bytes, {1, isa}), tokens, 1) == scalar);
    }
  }
}

TEST_CASE("a mapped file and a read one give the same bits") {
  const TinyShape& shape = shapes()[2].shape;
  const std::string bytes = tiny_llama(shape).bytes();
  const Ids tokens = random_tokens(40, shape.n_vocab);
  const Outcome mapped = run(Loaded(bytes, {1, ""}, LoadMethod::kMap), tokens, 40);
  check_alive(mapped);
  CHECK(run(Loaded(bytes, {1, ""}, LoadMethod::kRead), tokens, 40) == mapped);
}

TEST_CASE("a reset context gives the bits of a fresh one") {
  for (const NamedShape& named : shapes()) {
    CAPTURE(named.name);
    const TinyShape& shape = named.shape;
    const Loaded loaded(tiny_llama(shape).bytes());
    const Ids tokens = random_tokens(50, shape.n_vocab);
    const Outcome fresh = run(loaded, tokens, 8);
    const auto context = Context::create(*loaded.model, *loaded.backend, kTokens, KvType::kF16, 64);
    feed(*context, loaded.model->spec(), random_tokens(kTokens, shape.n_vocab, 99), 64);
    CHECK(context->position() == kTokens);
    context->reset();
    CHECK(context->position() == 0);
    CHECK(feed(*context, loaded.model->spec(), tokens, 8) == fresh);
  }
}

TEST_CASE("two contexts of one model do not touch each other") {
  const TinyShape& shape = shapes()[0].shape;
  const Loaded loaded(tiny_llama(shape).bytes());
  const Ids tokens = random_tokens(20, shape.n_vocab);
  const Outcome alone = run(loaded, tokens, 1);
  const auto a = Context::create(*loaded.model, *loaded.backend, kTokens, KvType::kF16, 4);
  const auto b = Context::create(*loaded.model, *loaded.backend, kTokens, KvType::kF16, 4);
  std::vector<float> logits(shape.n_vocab), ignored(shape.n_vocab);
  Outcome mixed;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    a->forward(std::span(tokens).subspan(i, 1), 1, logits);
    b->forward(std::span(tokens).subspan(tokens.size() - 1 - i, 1), 1, ignored);
    for (const float x : logits) mixed.logits.push_back(std::bit_cast<std::uint32_t>(x));
  }
  mixed.kv = kv_bytes(*a, loaded.model->spec());
  CHECK(mixed == alone);
}

TEST_CASE("every weight matters: changing one value of any tensor changes the logits") {
  const TinyShape shape = {.n_layers = 2, .n_vocab = 40};
  const TinyFile whole = tiny_llama(shape);
  const Ids tokens = random_tokens(12, shape.n_vocab);
  const Outcome base = run(Loaded(whole.bytes()), tokens, 12);
  for (const TinyFile::Tensor& tensor : whole.tensors) {
    CAPTURE(tensor.name);
    TinyFile changed = whole;
    std::string& data = changed.tensor(tensor.name).data;
    const std::uint64_t row =
        tensor.name == "token_embd.weight" ? static_cast<std::uint64_t>(tokens[3]) : 0;
    float value;
    std::memcpy(&value, data.data() + row * tensor.dims[0] * 4, 4);
    patch_le(data, row * tensor.dims[0] * 4, value + 0.25F);
    CHECK(run(Loaded(changed.bytes()), tokens, 12).logits != base.logits);
  }
}

TEST_CASE("metadata that shapes the arithmetic changes the logits") {
  const TinyShape shape = {.n_vocab = 40};
  const Ids tokens = random_tokens(12, shape.n_vocab);
  const Outcome base = run(Loaded(tiny_llama(shape).bytes()), tokens, 12);
  TinyFile theta = tiny_llama(shape);
  theta.f32("llama.rope.freq_base", 500000.0F);
  CHECK(run(Loaded(theta.bytes()), tokens, 12).logits != base.logits);
  TinyFile eps = tiny_llama(shape);
  eps.f32("llama.attention.layer_norm_rms_epsilon", 0.1F);
  CHECK(run(Loaded(eps.bytes()), tokens, 12).logits != base.logits);
  TinyFile factors = tiny_llama(shape);
  factors.tensors.push_back({"rope_freqs.weight",
                             gguf::kTensorF32,
                             {8},
                             bytes_of(std::vector<float>{1, 1, 1, 2, 4, 8, 8, 8})});
  CHECK(run(Loaded(factors.bytes()), tokens, 12).logits != base.logits);
}
