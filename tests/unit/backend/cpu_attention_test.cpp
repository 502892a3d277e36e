// However attention is cut into jobs, the bits are those of one row and one head at a time: every
// instruction set, counts of threads that the kv heads do and do not share out evenly, a context
// long enough that blocks are split, more heads than a tile takes.
#include "backend/cpu_attention.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu_select.h"
#include "kernels/cpu/attention_slots.h"
#include "tests/parity/inputs.h"

namespace {

using namespace detrun;
using namespace detrun::kernels;

constexpr std::uint32_t kContext = 1400;

struct Case {
  std::uint32_t n_heads, n_kv_heads, head_dim;
  KvType type;
};

/// A cache of two layers whose second is full, and q for some rows.
struct Layer {
  explicit Layer(const Case& c)
      : params{c.n_heads, c.n_kv_heads, c.head_dim, 0.17f},
        kv({c.type, 2, kContext, c.n_kv_heads, c.head_dim}),
        inputs(c.n_heads * 1000 + c.head_dim) {
    for (const auto part : {CpuKvCache::Part::kK, CpuKvCache::Part::kV}) {
      for (std::uint32_t i = 0; i < c.n_kv_heads * kContext; ++i) {
        const std::vector<float> x = inputs.plain(c.head_dim);
        void* to = kv.at(part, 1, i % c.n_kv_heads, i / c.n_kv_heads);
        if (c.type == KvType::kF16) {
          scalar::kOps.kv_write_f16(x.data(), c.head_dim, static_cast<std::uint16_t*>(to));
        } else {
          scalar::kOps.kv_write_f32(x.data(), c.head_dim, static_cast<float*>(to));
        }
      }
    }
  }
  std::vector<float> queries(std::uint32_t rows) {
    std::vector<float> q = inputs.plain(std::size_t{rows} * params.n_heads * params.head_dim);
    for (float& x : q) x *= 0.25f;
    return q;
  }

  AttentionParams params;
  CpuKvCache kv;
  parity::Inputs inputs;
};

std::vector<float> by_heads(const Layer& layer, const std::vector<float>& q, std::uint32_t rows,
                            std::uint32_t pos0) {
  const AttentionParams& params = layer.params;
  const std::uint32_t group = params.n_heads / params.n_kv_heads;
  std::vector<float> out(q.size());
  CpuMemory scratch(scalar::kOps.attention_scratch_floats(params.head_dim) * sizeof(float), "test");
  for (std::uint32_t i = 0; i < rows * params.n_heads; ++i) {
    const std::uint32_t kv_head = i % params.n_heads / group;
    const AttentionArgs args{
        .q = q.data() + std::size_t{i} * params.head_dim,
        .k = layer.kv.at(CpuKvCache::Part::kK, 1, kv_head, 0),
        .v = layer.kv.at(CpuKvCache::Part::kV, 1, kv_head, 0),
        .stride = layer.kv.stride(),
        .head_dim = params.head_dim,
        .n_visible = pos0 + i / params.n_heads + 1,
        .first_visible = 0,
        .scale = params.scale,
        .softcap = 0.0f,
        .sink = nullptr,
        .scratch = scratch.as<float>(),
        .out = out.data() + std::size_t{i} * params.head_dim,
    };
    const bool f16 = layer.kv.shape().type == KvType::kF16;
    (f16 ? scalar::kOps.attention_f16 : scalar::kOps.attention_f32)(&args);
  }
  return out;
}

void check(const Case& c, std::uint32_t rows, std::uint32_t pos0) {
  CAPTURE(c.n_heads);
  CAPTURE(c.n_kv_heads);
  CAPTURE(rows);
  CAPTURE(pos0);
  Layer layer(c);
  const std::vector<float> q = layer.queries(rows);
  std::vector<float> expected;
  {
    const FpControlScope fp_control;
    expected = by_heads(layer, q, rows, pos0);
  }
  for (const CpuOps* ops : available_cpu_ops()) {
    for (const std::uint32_t n_threads : {1u, 2u, 3u, 5u}) {
      CAPTURE(std::string(ops->name));
      CAPTURE(n_threads);
      ThreadPool pool(n_threads);
      CpuAttention attention(*ops, pool);
      attention.reserve(c.head_dim);
      std::vector<float> out(q.size(), 12345.0f);
      attention.run({layer.kv, 1, layer.params, rows, pos0, q.data(), out.data()});
      CHECK_SAME_BITS(out, expected, expected.size());
    }
  }
}

TEST_CASE("attention of a long context has one set of bits for every count of threads") {
  for (const KvType type : {KvType::kF16, KvType::kF32}) {
    for (const std::uint32_t pos0 : {1023u, 1024u, 1087u, 1088u, 1399u}) {
      check({6, 2, 16, type}, 1, pos0);
    }
    check({9, 3, 20, type}, 1, 1100);
    check({4, 1, 16, type}, 1, 1300);
    check({5, 5, 16, type}, 1, 1300);  // one head a kv head
  }
}

TEST_CASE("attention of a chunk has one set of bits for every count of threads") {
  for (const std::uint32_t rows : {2u, 5u, 17u, 70u}) {
    check({6, 2, 16, KvType::kF16}, rows, 60);
    check({3, 3, 8, KvType::kF32}, rows, 0);
  }
}

TEST_CASE("more heads than a tile takes share a kv head") {
  const std::uint32_t heads = kAttentionTileSlots + 5;
  check({heads, 1, 8, KvType::kF16}, 1, 70);
  check({heads, 1, 8, KvType::kF16}, 3, 63);
  check({heads, 1, 8, KvType::kF32}, 1, 1100);
}

TEST_CASE("a short context, which no thread is woken for, has the same bits") {
  check({2, 1, 8, KvType::kF16}, 1, 0);
  check({2, 2, 8, KvType::kF32}, 2, 1);
}

}  // namespace
