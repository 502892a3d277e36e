// Steps that are replayed as graphs, on the emulated device: the bits and the errors of the same
// steps launched one by one, and of the scalar CPU; and that a graph is used where one is promised.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "backend/cuda/cuda_attention.h"
#include "cuda_support.h"
#include "detrun/error.h"

using namespace detrun;
using namespace detrun::test;

namespace {

constexpr TinyShape kShape = {.n_layers = 2,
                              .n_embd = 32,
                              .n_ff = 40,
                              .n_vocab = 33,
                              .n_heads = 2,
                              .n_kv_heads = 1,
                              .head_dim = 16,
                              .rope_dim = 16};

enum class Where { kCpu, kLaunches, kGraphs };

std::unique_ptr<Backend> backend_for(Where where) {
  if (where == Where::kCpu) return make_cpu_backend({1, "scalar"});
  return make_cuda_backend({.graph = where == Where::kGraphs});
}

/// A tiny model on a backend, opened from its bytes.
struct Setup {
  Setup(Where where, const std::string& bytes)
      : file(ModelFile::open(folder.write("m.gguf", bytes), LoadMethod::kMap)),
        backend(backend_for(where)),
        model(Model::load(*file, *backend)) {}
  std::unique_ptr<Context> context(std::uint32_t n_ctx, KvType kv = KvType::kF16) const {
    return Context::create(*model, *backend, n_ctx, kv, 64);
  }
  TempFolder folder;
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

/// The next tokens of a context; the logits of the last `logit_rows` go to `outcome`.
void step(Context& context, const Setup& setup, const Ids& tokens, std::uint32_t rows,
          std::uint32_t logit_rows, Outcome& outcome) {
  std::vector<float> logits(std::size_t{logit_rows} * setup.model->spec().n_vocab);
  context.forward(std::span(tokens).subspan(context.position(), rows), logit_rows, logits);
  for (const float x : logits) outcome.logits.push_back(std::bit_cast<std::uint32_t>(x));
}

void prefill_to(Context& context, const Setup& setup, const Ids& tokens, std::uint32_t position,
                Outcome& outcome) {
  while (context.position() < position) {
    const std::uint32_t rows = std::min(64U, position - context.position());
    step(context, setup, tokens, rows, 0, outcome);
  }
}

/// Decodes around every border of a block of 64 positions, prefill between.
Outcome around_borders(const Setup& setup, std::uint32_t n_ctx, KvType kv) {
  const Ids tokens = random_tokens(n_ctx, setup.model->spec().n_vocab);
  const auto context = setup.context(n_ctx, kv);
  Outcome outcome;
  for (std::uint32_t border = 64; border < n_ctx; border += 64) {
    prefill_to(*context, setup, tokens, border - 4, outcome);
    while (context->position() < std::min(border + 4, n_ctx)) {
      step(*context, setup, tokens, 1, 1, outcome);
    }
  }
  outcome.kv = kv_bytes(*context, setup.model->spec());
  return outcome;
}

/// What body(setup) gives must be the same wherever it runs; returns the graphs launched.
template <class Body>
std::uint64_t check_same_everywhere(const std::string& bytes, Body&& body) {
  const auto expected = body(Setup(Where::kCpu, bytes));
  std::uint64_t before = emulation::graphs_launched();
  CHECK(body(Setup(Where::kLaunches, bytes)) == expected);
  CHECK(emulation::graphs_launched() == before);
  CHECK(body(Setup(Where::kGraphs, bytes)) == expected);
  return emulation::graphs_launched() - before;
}

class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);  // NOLINT(concurrency-mt-unsafe): tests have one thread here
  }
  ~EnvironmentVariable() { unsetenv(name_); }  // NOLINT(concurrency-mt-unsafe)
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("a decoding step replayed as a graph has the bits of its launches and of the CPU") {
  constexpr std::uint32_t kCtx = 300;  // five blocks: grids of 0, 2, 4 and all 5
  const std::string bytes = tiny_llama(kShape).bytes();
  for (const KvType kv : {KvType::kF16, KvType::kF32}) {
    const std::uint64_t instantiated = emulation::graphs_instantiated();
    Outcome last;
    const std::uint64_t launched = check_same_everywhere(bytes, [&](const Setup& setup) {
      last = around_borders(setup, kCtx, kv);
      return last;
    });
    check_alive(last, 8);
    // 32 steps in all; the first of every grid is launched the ordinary way.
    CHECK(launched == 32 - 4);
    CHECK(emulation::graphs_instantiated() - instantiated == 4);
  }
}

TEST_CASE("weights that take quantized activations decode as graphs too") {
  TinyShape shape = kShape;
  shape.n_ff = 64;
  shape.type = gguf::kTensorQ8_0;
  const std::uint64_t launched = check_same_everywhere(
      tiny_llama(shape).bytes(),
      [](const Setup& setup) { return around_borders(setup, 70, KvType::kF16); });
  CHECK(launched == 6);
}

TEST_CASE("the grid of attention is a power of two of blocks, and the cache's blocks at most") {
  const auto blocks = [](std::uint32_t rows, std::uint32_t pos0, std::uint32_t n_ctx) {
    return CudaAttention::grid_blocks(rows, pos0, n_ctx);
  };
  CHECK(blocks(1, 0, 4096) == 0);
  CHECK(blocks(1, 63, 4096) == 0);
  CHECK(blocks(1, 64, 4096) == 2);
  CHECK(blocks(1, 128, 4096) == 4);
  CHECK(blocks(1, 255, 4096) == 4);
  CHECK(blocks(1, 256, 4096) == 8);
  CHECK(blocks(4, 252, 4096) == 4);
  CHECK(blocks(4, 253, 4096) == 8);
  CHECK(blocks(5, 253, 4096) == 0);
  CHECK(blocks(1, 256, 300) == 5);
  constexpr std::uint32_t kMany = 65535 * 64;
  CHECK(blocks(1, kMany - 1, kMany) == 65535);
  CHECK(blocks(1, kMany - 1, 2 * kMany) == 65535);
  CHECK(blocks(1, kMany, 2 * kMany) == 0);
}

TEST_CASE("steps with and without logits are graphs of their own") {
  const std::uint64_t launched =
      check_same_everywhere(tiny_llama(kShape).bytes(), [](const Setup& setup) {
        const Ids tokens = random_tokens(20, setup.model->spec().n_vocab);
        const auto context = setup.context(64);
        Outcome outcome;
        for (std::uint32_t i = 0; i < 20; ++i) {
          step(*context, setup, tokens, 1, i % 3 == 0 ? 0 : 1, outcome);
        }
        outcome.kv = kv_bytes(*context, setup.model->spec());
        return outcome;
      });
  CHECK(launched == 18);
}

TEST_CASE("a decoding step waits for the device once, for its logits and its errors together") {
  const std::string bytes = tiny_llama(kShape).bytes();
  for (const Where where : {Where::kLaunches, Where::kGraphs}) {
    const Setup setup(where, bytes);
    const Ids tokens = random_tokens(20, setup.model->spec().n_vocab);
    const auto context = setup.context(64);
    Outcome outcome;
    step(*context, setup, tokens, 1, 1, outcome);
    for (std::uint32_t i = 1; i < 20; ++i) {
      const std::uint64_t before = emulation::waits();
      step(*context, setup, tokens, 1, i % 2, outcome);
      CHECK(emulation::waits() - before == 1);
    }
  }
}

TEST_CASE("a context that is reset replays its graphs on the new tokens") {
  const std::uint64_t launched =
      check_same_everywhere(tiny_llama(kShape).bytes(), [](const Setup& setup) {
        const auto context = setup.context(80);
        std::vector<Outcome> outcomes;
        for (const unsigned seed : {1U, 2U}) {
          const Ids tokens = random_tokens(68, setup.model->spec().n_vocab, seed);
          Outcome outcome;
          prefill_to(*context, setup, tokens, 60, outcome);
          for (int i = 0; i < 8; ++i) step(*context, setup, tokens, 1, 1, outcome);
          outcome.kv = kv_bytes(*context, setup.model->spec());
          outcomes.push_back(outcome);
          context->reset();
        }
        return outcomes;
      });
  CHECK(launched == 16 - 2);
}

TEST_CASE("contexts of one device take turns, and a larger one that comes later harms no graph") {
  const std::string bytes = tiny_llama(kShape).bytes();
  const std::uint64_t launched = check_same_everywhere(bytes, [](const Setup& setup) {
    const Ids tokens = random_tokens(300, setup.model->spec().n_vocab);
    std::vector<Outcome> outcomes(3);
    const auto small = setup.context(70);
    prefill_to(*small, setup, tokens, 64, outcomes[0]);
    for (int i = 0; i < 3; ++i) step(*small, setup, tokens, 1, 1, outcomes[0]);
    const auto large = setup.context(300, KvType::kF32);  // needs more scratch memory
    const auto third = setup.context(300);
    prefill_to(*large, setup, tokens, 130, outcomes[1]);
    prefill_to(*third, setup, tokens, 66, outcomes[2]);
    for (int i = 0; i < 3; ++i) {
      step(*small, setup, tokens, 1, 1, outcomes[0]);
      step(*large, setup, tokens, 1, 1, outcomes[1]);
      step(*third, setup, tokens, 1, 1, outcomes[2]);
    }
    outcomes[0].kv = kv_bytes(*small, setup.model->spec());
    outcomes[1].kv = kv_bytes(*large, setup.model->spec());
    outcomes[2].kv = kv_bytes(*third, setup.model->spec());
    return outcomes;
  });
  // Of 12 steps, four are launched the ordinary way: the first of each context, and the first of
  // the small one after its scratch memory has moved.
  CHECK(launched == 12 - 4);
}

TEST_CASE("a value that is an error inside a graph is reported in the words of the CPU") {
  TinyFile content = tiny_llama(kShape);
  constexpr std::int32_t kBad = 7;
  const float huge = 3.0e38F;
  for (std::size_t i = 0; i < kShape.n_embd; ++i) {
    std::memcpy(content.tensor("token_embd.weight").data.data() +
                    (kBad * kShape.n_embd + i) * sizeof(float),
                &huge, sizeof(huge));
  }
  const std::string bytes = content.bytes();
  std::string text;
  const std::uint64_t launched = check_same_everywhere(bytes, [&](const Setup& setup) {
    Ids tokens = random_tokens(12, kBad);
    const auto context = setup.context(64);
    Outcome outcome;
    for (int i = 0; i < 4; ++i) step(*context, setup, tokens, 1, 1, outcome);
    const std::int32_t good = std::exchange(tokens[4], kBad);
    text.clear();
    try {
      step(*context, setup, tokens, 1, 1, outcome);
    } catch (const Error& error) {
      text = error.with_hint();
    }
    CHECK(context->position() == 4);
    tokens[4] = good;
    for (int i = 4; i < 12; ++i) step(*context, setup, tokens, 1, 1, outcome);
    outcome.kv = kv_bytes(*context, setup.model->spec());
    return std::pair(text, outcome);
  });
  CHECK_MESSAGE(text.find("layer 0: rmsnorm: the sum of squares of row 0 of 1") == 0, text);
  CHECK(launched == 13 - 1);  // of them the one that failed, and was then repeated without a graph
}

TEST_CASE("$CUDA_LAUNCH_BLOCKING turns graphs off, as the option does") {
  CHECK(make_cuda_backend({})->info().graph);
  CHECK(!make_cuda_backend({.graph = false})->info().graph);
  CHECK(!make_cpu_backend({})->info().graph);
  const auto with = [](const char* value) {
    const EnvironmentVariable set("CUDA_LAUNCH_BLOCKING", value);
    return make_cuda_backend({})->info().graph;
  };
  CHECK(!with("1"));
  CHECK(with("0"));
  CHECK(with(""));
  const EnvironmentVariable set("CUDA_LAUNCH_BLOCKING", "1");
  const std::uint64_t before = emulation::graphs_launched();
  around_borders(Setup(Where::kGraphs, tiny_llama(kShape).bytes()), 70, KvType::kF16);
  CHECK(emulation::graphs_launched() == before);
}
