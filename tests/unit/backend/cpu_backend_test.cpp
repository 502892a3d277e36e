// The backend through its front door: one layer of a made-up model, the same bits for every
// instruction set, number of threads, chunk and control register; refusals that name their cause.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "../../parity/inputs.h"
#include "backend/thread_pool.h"
#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/error.h"
#include "fp_control_support.h"

namespace {

using namespace detrun;
using parity::Inputs;

// Wide enough that matmuls are worth several threads; 9 query heads on 3 kv heads.
constexpr std::uint32_t kDim = 288;
constexpr std::uint32_t kHeads = 9, kKvHeads = 3, kHeadDim = 32;
constexpr std::uint32_t kHidden = 352;
constexpr std::uint32_t kVocab = 61;
constexpr std::uint32_t kTokens = 70;  // more than one block of 64 positions

/// The weights of one layer; every matrix of another type.
struct Layer {
  explicit Layer(Backend& backend, std::uint64_t seed = 1) : inputs(seed) {
    embedding = load(backend, "embedding", QType::kQ8_0, kDim, kVocab);
    q = load(backend, "q", QType::kF16, kDim, kHeads * kHeadDim);
    k = load(backend, "k", QType::kQ8_0, kDim, kKvHeads * kHeadDim);
    v = load(backend, "v", QType::kBF16, kDim, kKvHeads * kHeadDim);
    out = load(backend, "out", QType::kF32, kHeads * kHeadDim, kDim);
    gate = load(backend, "gate", QType::kQ8_0, kDim, kHidden);
    up = load(backend, "up", QType::kF16, kDim, kHidden);
    down = load(backend, "down", QType::kQ8_0, kHidden, kDim);
    norm = backend.new_buffer(kDim);
    backend.upload(*norm, inputs.plain(kDim));
  }
  std::unique_ptr<Weight> load(Backend& backend, const char* name, QType type, std::uint64_t k_len,
                               std::uint64_t n) {
    const auto bytes = inputs.matrix(static_cast<std::uint32_t>(type), k_len, n);
    return backend.load_weight({name, type, k_len, n, bytes});
  }
  Inputs inputs;
  std::unique_ptr<Weight> embedding, q, k, v, out, gate, up, down;
  std::unique_ptr<Buffer> norm;
};

struct Run {
  std::vector<float> logits;  // (kTokens, kVocab)
  std::vector<std::byte> kv;
};

/// The tokens through the layer in chunks.
Run forward(Backend& backend, std::uint32_t chunk, KvType kv_type, RopePairs pairs) {
  const Layer layer(backend);
  std::vector<float> cos(kTokens * kHeadDim / 2);
  std::vector<float> sin(cos.size());
  make_rope_tables({kHeadDim, 10000.0, {}}, kTokens, cos, sin);
  const auto cos_buffer = backend.new_buffer(cos.size());
  const auto sin_buffer = backend.new_buffer(sin.size());
  backend.upload(*cos_buffer, cos);
  backend.upload(*sin_buffer, sin);
  const RopeParams rope{pairs, kHeadDim, cos_buffer.get(), sin_buffer.get()};
  const auto cache = backend.new_kv_cache({kv_type, 2, kTokens, kKvHeads, kHeadDim});
  const auto buffer = [&](std::uint32_t width) {
    return backend.new_buffer(std::uint64_t{chunk} * width);
  };
  const auto x = buffer(kDim), h = buffer(kDim), q = buffer(kHeads * kHeadDim);
  const auto k = buffer(kKvHeads * kHeadDim), v = buffer(kKvHeads * kHeadDim);
  const auto a = buffer(kHeads * kHeadDim), gate = buffer(kHidden), up = buffer(kHidden);
  const auto logits = buffer(kVocab);
  Run run;
  for (std::uint32_t pos = 0; pos < kTokens; pos += chunk) {
    const std::uint32_t rows = std::min(chunk, kTokens - pos);
    std::vector<std::int32_t> tokens;
    for (std::uint32_t r = 0; r < rows; ++r) {
      tokens.push_back(static_cast<std::int32_t>((pos + r) * 7 % kVocab));
    }
    backend.embed(*layer.embedding, tokens, *x);
    backend.rmsnorm(*x, *layer.norm, 1e-5f, rows, kDim, *h);
    const MatmulTask qkv[] = {
        {layer.q.get(), q.get()}, {layer.k.get(), k.get()}, {layer.v.get(), v.get()}};
    backend.matmul(qkv, *h, rows);
    backend.rope(*q, rope, rows, kHeads, kHeadDim, pos);
    backend.rope(*k, rope, rows, kKvHeads, kHeadDim, pos);
    backend.rmsnorm(*q, *layer.norm, 1e-5f, rows * kHeads, kHeadDim, *q);
    backend.rmsnorm(*k, *layer.norm, 1e-5f, rows * kKvHeads, kHeadDim, *k);
    backend.rmsnorm(*v, *layer.norm, 1e-5f, rows * kKvHeads, kHeadDim, *v);
    backend.kv_write(*cache, 1, *k, *v, rows, pos);
    backend.attention(*q, *cache, 1, {kHeads, kKvHeads, kHeadDim, 0.1767767f}, rows, pos, *a);
    const MatmulTask out{layer.out.get(), h.get()};
    backend.matmul({&out, 1}, *a, rows);
    backend.add(*x, *h, std::uint64_t{rows} * kDim);
    backend.rmsnorm(*x, *layer.norm, 1e-5f, rows, kDim, *h);
    const MatmulTask gate_up[] = {{layer.gate.get(), gate.get()}, {layer.up.get(), up.get()}};
    backend.matmul(gate_up, *h, rows);
    backend.silu_mul(*gate, *up, std::uint64_t{rows} * kHidden);
    const MatmulTask down{layer.down.get(), h.get()};
    backend.matmul({&down, 1}, *gate, rows);
    backend.add(*x, *h, std::uint64_t{rows} * kDim);
    backend.rmsnorm(*x, *layer.norm, 1e-5f, rows, kDim, *h);
    const MatmulTask head{layer.embedding.get(), logits.get()};
    backend.matmul({&head, 1}, *h, rows);
    run.logits.resize(run.logits.size() + rows * kVocab);
    backend.download(*logits, 0, std::span(run.logits).last(rows * kVocab));
  }
  for (std::uint32_t pos = 0; pos < kTokens; ++pos) {
    const auto bytes = cache->snapshot(1, pos);
    run.kv.insert(run.kv.end(), bytes.begin(), bytes.end());
  }
  return run;
}

void check_same(const Run& found, const Run& expected) {
  CHECK_SAME_BITS(found.logits, expected.logits, expected.logits.size() * 9 / 10);
  CHECK(found.kv == expected.kv);
}

TEST_CASE("every instruction set, thread count and chunk gives the same logits and cache") {
  for (const KvType kv_type : {KvType::kF16, KvType::kF32}) {
    for (const RopePairs pairs : {RopePairs::kAdjacent, RopePairs::kHalves}) {
      const Run expected = forward(*make_cpu_backend({1, "scalar"}), 1, kv_type, pairs);
      for (const std::string& isa : available_cpu_isas()) {
        for (std::uint32_t n_threads = 1; n_threads <= 4; ++n_threads) {
          CAPTURE(isa);
          CAPTURE(n_threads);
          const auto backend = make_cpu_backend({n_threads, isa});
          CHECK(backend->info().isa == isa);
          CHECK(backend->info().n_threads == n_threads);
          const std::uint32_t chunk = std::array{1u, 3u, 7u, kTokens}[n_threads - 1];
          check_same(forward(*backend, chunk, kv_type, pairs), expected);
          if (kv_type == KvType::kF16) check_same(forward(*backend, 64, kv_type, pairs), expected);
        }
      }
    }
  }
}

#if defined(DETRUN_KNOWN_FP_CONTROL)
TEST_CASE("a foreign floating-point control changes no bit and is back after every call") {
  const Run expected =
      forward(*make_cpu_backend({1, "scalar"}), 5, KvType::kF16, RopePairs::kAdjacent);
  for (const unsigned control : support::kForeignControls) {
    for (const std::string& isa : available_cpu_isas()) {
      support::ForeignFpControl foreign(control);
      const auto backend = make_cpu_backend({3, isa});
      CHECK(backend->info().fp_control_found == control);
      check_same(forward(*backend, 5, KvType::kF16, RopePairs::kAdjacent), expected);
      CHECK(support::fp_control() == control);
    }
  }
  CHECK(make_cpu_backend({1, ""})->info().fp_control_found == support::kContractControl);
}
#endif

std::string refusal(ExitCode kind, const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return std::string(error.what()) + " / " + error.hint();
  }
  FAIL("expected an Error");
  return {};
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("a weight that is not finite is refused with tensor, row and element") {
  const auto backend = make_cpu_backend({2, ""});
  struct Case {
    QType type;
    std::size_t offset;  // of the value or scale of row 41, element 64
    std::vector<std::uint8_t> bytes;
  };
  const std::uint64_t at = 41 * 96 + 64;
  const Case cases[] = {{QType::kF32, at * 4, {0, 0, 0xc0, 0x7f}},
                        {QType::kF16, at * 2, {0, 0xfc}},
                        {QType::kBF16, at * 2, {0x80, 0x7f}},
                        {QType::kQ8_0, at / 32 * 34, {0, 0x7c}}};
  for (const Case& c : cases) {
    Inputs inputs(5);
    auto bytes = inputs.matrix(static_cast<std::uint32_t>(c.type), 96, 77);
    const WeightView view{"blk.3.ffn_up.weight", c.type, 96, 77, bytes};
    CHECK(backend->load_weight(view) != nullptr);
    std::memcpy(bytes.data() + c.offset, c.bytes.data(), c.bytes.size());
    const std::string text = refusal(ExitCode::kUsage, [&] { backend->load_weight(view); });
    CHECK_MESSAGE(has(text, "blk.3.ffn_up.weight"), text);
    CHECK_MESSAGE(has(text, "row 41 at element 64"), text);
  }
}

TEST_CASE("a weight of an unsupported type or a wrong size is refused by name") {
  const auto backend = make_cpu_backend({1, ""});
  const std::vector<std::byte> bytes(144 * 4);
  const auto load = [&](QType type, std::uint64_t k, std::uint64_t n) {
    return refusal(ExitCode::kUsage, [&] { backend->load_weight({"t.w", type, k, n, bytes}); });
  };
  CHECK(has(load(QType::kIQ2_S, 256, 4), "IQ2_S"));
  CHECK(has(load(QType::kQ8_0, 48, 2), "t.w"));
  CHECK(has(load(QType::kF32, 0, 1), "t.w"));
  CHECK(has(load(QType::kF32, 4, 0), "t.w"));
  CHECK(has(load(QType::kF32, 12, 13), "expected 13 rows of 48"));
  CHECK(has(load(QType::kF32, std::numeric_limits<std::uint64_t>::max(), 1), "t.w"));
}

TEST_CASE("an activation that is not finite ends a matmul with its name and row") {
  for (const std::string& isa : available_cpu_isas()) {
    const auto backend = make_cpu_backend({2, isa});
    Layer layer(*backend);
    const auto x = backend->new_buffer(3 * kDim);
    const auto y = backend->new_buffer(3 * kHidden);
    std::vector<float> values(3 * kDim, 1.0f);
    values[kDim + 5] = std::numeric_limits<float>::quiet_NaN();
    backend->upload(*x, values);
    for (const auto& [weight, name] :
         {std::pair{layer.gate.get(), "gate"}, {layer.up.get(), "up"}}) {
      const MatmulTask task{weight, y.get()};
      const std::string text = refusal(ExitCode::kInternal, [&] {
        backend->matmul({&task, 1}, *x, 3);
      });
      CHECK_MESSAGE(has(text, "matmul"), text);
      CHECK_MESSAGE(has(text, name), text);
      CHECK_MESSAGE(has(text, "row 1 of 3"), text);
    }
  }
}

TEST_CASE("a sum of squares that is not finite ends a norm instead of giving zeros") {
  for (const std::string& isa : available_cpu_isas()) {
    const auto backend = make_cpu_backend({2, isa});
    std::vector<float> values(3 * 40, 1.0f);
    values[2 * 40 + 39] = 0x1p64f;  // finite itself
    const auto x = backend->new_buffer(values.size());
    const auto weight = backend->new_buffer(40);
    backend->upload(*x, values);
    backend->upload(*weight, std::vector<float>(40, 1.0f));
    try {
      backend->rmsnorm(*x, *weight, 1e-5f, 3, 40, *x);
      FAIL("no error on " << isa);
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kInternal);
      CHECK(std::string(error.what()).find("rmsnorm: the sum of squares of row 2 of 3") == 0);
    }
  }
}

TEST_CASE("K or V that does not fit into f16 is refused with layer, position and the remedy") {
  for (const std::string& isa : available_cpu_isas()) {
    const auto backend = make_cpu_backend({2, isa});
    const auto k = backend->new_buffer(2 * kKvHeads * kHeadDim);
    const auto v = backend->new_buffer(2 * kKvHeads * kHeadDim);
    std::vector<float> values(k->n_floats(), 1.0f);
    backend->upload(*k, values);
    values[kKvHeads * kHeadDim + 40] = -65520.0f;
    backend->upload(*v, values);
    const auto f16 = backend->new_kv_cache({KvType::kF16, 4, 16, kKvHeads, kHeadDim});
    const std::string text =
        refusal(ExitCode::kInternal, [&] { backend->kv_write(*f16, 3, *k, *v, 2, 9); });
    CHECK_MESSAGE(has(text, "layer 3, position 10"), text);
    CHECK_MESSAGE(has(text, "--kv f32"), text);
    const auto f32 = backend->new_kv_cache({KvType::kF32, 4, 16, kKvHeads, kHeadDim});
    backend->kv_write(*f32, 3, *k, *v, 2, 9);
    values[3] = std::numeric_limits<float>::infinity();
    backend->upload(*k, values);
    CHECK(has(refusal(ExitCode::kInternal, [&] { backend->kv_write(*f32, 3, *k, *v, 2, 9); }),
              "position 9 is not finite"));
  }
}

TEST_CASE("the default is one thread a core, and absurd counts are refused") {
  CHECK(make_cpu_backend({})->info().n_threads == allowed_cpus().size());
  CHECK(make_cpu_backend({})->info().name == "cpu");
  CHECK(has(refusal(ExitCode::kUsage, [] { make_cpu_backend({100000, ""}); }), "100000"));
}

TEST_CASE("a buffer whose bytes cannot be counted is out of memory, not small") {
  const auto backend = make_cpu_backend({1, ""});
  for (const std::uint64_t n : {(std::uint64_t{1} << 62) + 1, ~std::uint64_t{0}}) {
    CHECK(has(refusal(ExitCode::kInternal, [&] { backend->new_buffer(n); }), "out of memory"));
  }
}

TEST_CASE("upload and download move exact bits at any offset") {
  const auto backend = make_cpu_backend({1, ""});
  const auto buffer = backend->new_buffer(100);
  CHECK(buffer->n_floats() == 100);
  Inputs inputs(3);
  const std::vector<float> values = inputs.edgy(100);
  backend->upload(*buffer, values);
  std::vector<float> out(30);
  backend->download(*buffer, 70, out);
  CHECK(parity::first_difference(out, std::span(values).last(30)) == -1);
}

}  // namespace
