// Attention of tiles, and of blocks that are merged later: every instruction set against the
// reference's one-row form, bit for bit, for many counts of rows and heads, at every kind of edge.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "inputs.h"
#include "kernels/contract.h"
#include "kernels/cpu/attention_slots.h"

namespace {

using detrun::CpuMemory;
using parity::Inputs;
using namespace detrun::kernels;

constexpr std::uint32_t kPositions = 260;

struct Cache {
  Cache(std::uint32_t dim, bool is_f16, Inputs& inputs)
      : head_dim(dim), stride((dim + 7) / 8 * 8), f16(is_f16) {
    for (CpuMemory* part : {&k, &v}) {
      *part = CpuMemory(kPositions * stride * element(), "test");
      for (std::uint32_t p = 0; p < kPositions; ++p) {
        const std::vector<float> row = inputs.plain(dim);
        if (f16) {
          scalar::kOps.kv_write_f16(row.data(), dim, part->as<std::uint16_t>() + p * stride);
        } else {
          std::memcpy(part->as<float>() + p * stride, row.data(), dim * sizeof(float));
        }
      }
    }
  }
  std::size_t element() const { return f16 ? 2 : 4; }
  std::uint32_t head_dim;
  std::uint64_t stride;
  bool f16;
  CpuMemory k, v;
};

/// Rows and heads of a tile whose first row is at position `pos0`; window 0: none.
struct Shape {
  std::uint32_t n_rows, n_heads, pos0;
  std::uint32_t window = 0;
  float softcap = 0.0f;
  bool sinks = false;
};

/// The tile lies in rows of heads of which one, at the end, is not its own.
struct Problem {
  Problem(const Cache& of, const Shape& s, Inputs& inputs)
      : cache(of), shape(s), row_floats(std::uint64_t{s.n_heads + 1} * of.head_dim) {
    // Small scores let every position weigh in.
    q = inputs.plain(s.n_rows * row_floats);
    for (float& x : q) x *= 0.125f;
    sinks = inputs.plain(s.n_heads);
  }
  /// `out` starts as a value that no attention has.
  AttentionTileArgs args(const CpuOps& ops, std::vector<float>& out, CpuMemory& scratch) const {
    out.assign(q.size(), kUntouched);
    scratch = CpuMemory(ops.attention_tile_scratch_floats(cache.head_dim) * sizeof(float), "test");
    std::memset(scratch.data(), 0xff, scratch.size());  // never read before written
    return {
        .q = q.data(),
        .row_floats = row_floats,
        .n_rows = shape.n_rows,
        .n_heads = shape.n_heads,
        .k = cache.k.data(),
        .v = cache.v.data(),
        .stride = cache.stride,
        .head_dim = cache.head_dim,
        .n_visible = shape.pos0 + 1,
        .window = shape.window,
        .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(cache.head_dim))),
        .softcap = shape.softcap,
        .sinks = shape.sinks ? sinks.data() : nullptr,
        .scratch = scratch.as<float>(),
        .out = out.data(),
    };
  }
  static constexpr float kUntouched = 12345.0f;
  const Cache& cache;
  Shape shape;
  std::uint64_t row_floats;
  std::vector<float> q, sinks;
};

std::vector<float> by_rows(const Problem& problem) {
  std::vector<float> out;
  CpuMemory scratch;
  const AttentionTileArgs args = problem.args(scalar::kOps, out, scratch);
  for_each_slot(args, problem.cache.f16 ? scalar::kOps.attention_f16 : scalar::kOps.attention_f32);
  return out;
}

std::vector<float> by_tile(const CpuOps& ops, const Problem& problem) {
  std::vector<float> out;
  CpuMemory scratch;
  const AttentionTileArgs args = problem.args(ops, out, scratch);
  (problem.cache.f16 ? ops.attention_tile_f16 : ops.attention_tile_f32)(&args);
  return out;
}

/// Blocks in runs of `run`, the last run first, then merged.
std::vector<float> by_blocks(const CpuOps& ops, const Problem& problem, std::uint32_t run) {
  std::vector<float> out;
  CpuMemory scratch;
  const Shape& shape = problem.shape;
  const AttentionTileArgs args = problem.args(ops, out, scratch);
  const std::uint32_t head_dim = problem.cache.head_dim;
  const std::uint64_t state = attention_state_floats(head_dim);
  const std::uint32_t n_blocks = (shape.pos0 + shape.n_rows - 1) / kKvBlock + 1;
  const std::uint64_t per_block = std::uint64_t{shape.n_rows} * shape.n_heads * state;
  CpuMemory states(n_blocks * per_block * sizeof(float), "test");
  std::memset(states.data(), 0xff, states.size());
  const auto blocks = problem.cache.f16 ? ops.attention_blocks_f16 : ops.attention_blocks_f32;
  for (std::uint32_t b1 = n_blocks; b1 != 0;) {
    const std::uint32_t b0 = (b1 - 1) / run * run;
    blocks(&args, b0, b1, states.as<float>() + b0 * per_block);
    b1 = b0;
  }
  for (std::uint64_t at = 0; at < n_blocks * per_block; at += state) {
    float* const one = states.as<float>() + at;
    if (one[1] != 0.0f) continue;  // nothing is visible: m and o mean nothing
    std::memset(one, 0xff, sizeof(float));
    std::memset(one + 8, 0xff, (state - 8) * sizeof(float));
  }
  for (std::uint32_t slot = 0; slot < shape.n_rows * shape.n_heads; ++slot) {
    const std::uint32_t head = slot % shape.n_heads;
    const AttentionMergeArgs merge{
        .states = states.as<float>() + slot * state,
        .step = per_block,
        .n_blocks = n_blocks,
        .head_dim = head_dim,
        .sink = shape.sinks ? &problem.sinks[head] : nullptr,
        .scratch = scratch.as<float>(),
        .out = out.data() + slot / shape.n_heads * problem.row_floats + head * head_dim,
    };
    ops.attention_merge(&merge);
  }
  return out;
}

void check(const Problem& problem, bool blocks_too) {
  const Shape& shape = problem.shape;
  CAPTURE(shape.n_rows);
  CAPTURE(shape.n_heads);
  CAPTURE(shape.pos0);
  CAPTURE(shape.window);
  CAPTURE(shape.softcap);
  CAPTURE(shape.sinks);
  const std::vector<float> expected = by_rows(problem);
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    CHECK_SAME_BITS(by_tile(*ops, problem), expected, expected.size());
    for (const std::uint32_t run : {1u, 2u, 3u}) {
      if (blocks_too) CHECK_SAME_BITS(by_blocks(*ops, problem, run), expected, expected.size());
    }
  }
}

// Before, at and behind the edges of blocks and of eights.
constexpr std::uint32_t kStarts[] = {0, 1, 7, 58, 62, 63, 64, 65, 71, 120, 127, 128, 129, 190};
constexpr std::uint32_t kRows[] = {1, 2, 3, 5, 6, 7, 8, 13, 63, 64, 65};
constexpr std::uint32_t kHeads[] = {1, 3, 4, 8};

/// Calls use(n_rows, n_heads) for all that fit into a tile.
template <class Use>
void for_each_size(Use use) {
  for (const std::uint32_t n_rows : kRows) {
    for (const std::uint32_t n_heads : kHeads) {
      if (n_rows * n_heads <= kAttentionTileSlots) use(n_rows, n_heads);
    }
  }
}

TEST_CASE("a tile has the bits of its rows for every head size, count of rows and of heads") {
  const detrun::FpControlScope fp_control;
  std::size_t turn = 0;
  for (const std::uint32_t dim : {32u, 64u, 80u, 96u, 128u, 256u}) {
    for (const bool f16 : {true, false}) {
      CAPTURE(dim);
      CAPTURE(f16);
      Inputs inputs(dim + (f16 ? 21000 : 20000));
      const Cache cache(dim, f16, inputs);
      for_each_size([&](std::uint32_t n_rows, std::uint32_t n_heads) {
        check({cache, {n_rows, n_heads, kStarts[turn++ % std::size(kStarts)]}, inputs}, false);
      });
    }
  }
}

TEST_CASE("a tile has the bits of its rows wherever it starts") {
  const detrun::FpControlScope fp_control;
  for (const bool f16 : {true, false}) {
    CAPTURE(f16);
    Inputs inputs(f16 ? 22001 : 22000);
    const Cache cache(64, f16, inputs);
    for (const std::uint32_t pos0 : kStarts) {
      check({cache, {13, 3, pos0}, inputs}, true);
      check({cache, {1, 8, pos0}, inputs}, true);
      check({cache, {65, 1, pos0}, inputs}, false);
    }
  }
}

TEST_CASE("tiles and blocks know windows, soft caps and sinks, and head sizes of any remainder") {
  const detrun::FpControlScope fp_control;
  std::size_t turn = 0;
  constexpr std::uint32_t kWindows[] = {1, 3, 63, 64, 65, 100, 0};
  constexpr float kSoftcaps[] = {0.0f, 0.0f, 2.0f, 0.5f};
  for (const std::uint32_t dim : {2u, 10u, 20u, 72u, 80u}) {
    for (const bool f16 : {true, false}) {
      CAPTURE(dim);
      CAPTURE(f16);
      Inputs inputs(dim + (f16 ? 24000 : 23000));
      const Cache cache(dim, f16, inputs);
      for_each_size([&](std::uint32_t n_rows, std::uint32_t n_heads) {
        const Shape shape{n_rows,
                          n_heads,
                          kStarts[turn % std::size(kStarts)],
                          kWindows[turn / 2 % std::size(kWindows)],
                          kSoftcaps[turn / 3 % std::size(kSoftcaps)],
                          turn % 5 < 2};
        ++turn;
        check({cache, shape, inputs}, n_rows <= 7);
      });
    }
  }
}

TEST_CASE("the most rows and heads that a tile can have, each alone, and numbers between") {
  const detrun::FpControlScope fp_control;
  Inputs inputs(25000);
  const Cache cache(40, true, inputs);
  for (const auto& [n_rows, n_heads] : {std::pair{96u, 1u}, {1u, 96u}, {12u, 8u}, {5u, 19u}}) {
    check({cache, {n_rows, n_heads, 100, 90}, inputs}, true);
  }
}

TEST_CASE("positions that no row of a tile sees do not matter") {
  const detrun::FpControlScope fp_control;
  for (const bool f16 : {true, false}) {
    Inputs inputs(26000);
    Cache cache(48, f16, inputs);
    const Problem problem(cache, {5, 3, 140, 67}, inputs);  // sees 74 .. 144
    const std::vector<float> expected = by_rows(problem);
    const std::size_t bytes = cache.stride * cache.element();
    for (CpuMemory* part : {&cache.k, &cache.v}) {
      std::memset(part->data(), 0xff, 74 * bytes);
      std::memset(part->data() + 145 * bytes, 0xff, (kPositions - 145) * bytes);
    }
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      CHECK_SAME_BITS(by_tile(*ops, problem), expected, expected.size());
      CHECK_SAME_BITS(by_blocks(*ops, problem, 1), expected, expected.size());
    }
  }
}

TEST_CASE("a score of minus infinity weighs nothing beside finite ones, in a tile too") {
  const detrun::FpControlScope fp_control;
  Inputs inputs(27000);
  Cache cache(16, false, inputs);
  for (std::uint32_t d = 0; d < 16; ++d) cache.k.as<float>()[70 * cache.stride + d] = -3e38f;
  Problem problem(cache, {4, 2, 77}, inputs);
  for (float& x : problem.q) x = std::fabs(x) + 8.0f;
  const std::vector<float> expected = by_rows(problem);
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    CHECK_SAME_BITS(by_tile(*ops, problem), expected, expected.size());
    CHECK_SAME_BITS(by_blocks(*ops, problem, 2), expected, expected.size());
  }
}

}  // namespace
