// See self_test_attention.h. The cache holds two blocks of 64 positions and a rest; the head size
// is no multiple of a register, rows and heads no multiple of a tile.
#include "backend/self_test_attention.h"

#include <array>
#include <span>

#include "backend/cpu_memory.h"
#include "backend/self_test_inputs.h"

namespace detrun {
namespace {

using kernels::CpuOps;

/// K and V of one kv head: two blocks of 64 positions and a rest.
class AttentionInputs {
 public:
  static constexpr std::uint32_t kHeadDim = 20;
  static constexpr std::uint64_t kStride = 24;
  static constexpr std::uint32_t kPositions = 139;
  static constexpr float kScale = 0.223606795f;

  AttentionInputs(const CpuOps& ops, bool f16, Inputs& inputs)
      : k_(kBytes, "the self-test"), v_(kBytes, "the self-test") {
    for (CpuMemory* part : {&k_, &v_}) {
      for (std::uint32_t p = 0; p < kPositions; ++p) {
        const std::vector<float> row = inputs.values(kHeadDim);
        if (f16) {
          ops.kv_write_f16(row.data(), kHeadDim, part->as<std::uint16_t>() + p * kStride);
        } else {
          ops.kv_write_f32(row.data(), kHeadDim, part->as<float>() + p * kStride);
        }
      }
    }
  }
  const void* k() const { return k_.data(); }
  const void* v() const { return v_.data(); }

 private:
  static constexpr std::uint64_t kBytes = kPositions * kStride * sizeof(float);
  CpuMemory k_, v_;
};

}  // namespace

void ask_attention(const CpuOps& ops, AttentionCase c, std::vector<std::byte>& out) {
  constexpr std::uint32_t kHeadDim = AttentionInputs::kHeadDim;
  Inputs inputs(2000);
  const AttentionInputs kv(ops, c.f16, inputs);
  const std::vector<float> q = inputs.values(kHeadDim);
  CpuMemory scratch(ops.attention_scratch_floats(kHeadDim) * sizeof(float), "the self-test");
  std::array<float, kHeadDim> y{};
  const float sink = inputs.value();
  for (const std::uint32_t n : {1u, 63u, 64u, 65u, AttentionInputs::kPositions}) {
    const kernels::AttentionArgs args{
        .q = q.data(),
        .k = kv.k(),
        .v = kv.v(),
        .stride = AttentionInputs::kStride,
        .head_dim = kHeadDim,
        .n_visible = n,
        .first_visible = c.window != 0 && n > c.window ? n - c.window : 0,
        .scale = AttentionInputs::kScale,
        .softcap = c.softcap,
        .sink = c.sink ? &sink : nullptr,
        .scratch = scratch.as<float>(),
        .out = y.data(),
    };
    (c.f16 ? ops.attention_f16 : ops.attention_f32)(&args);
    append<float>(out, y);
  }
}

namespace {

constexpr std::uint32_t kTileRows = 7;
constexpr std::uint32_t kTileHeads = 3;

/// The states of all blocks, in two calls, merged: the same values as the tile's.
void run_split(const CpuOps& ops, bool f16, const kernels::AttentionTileArgs& tile) {
  const std::uint32_t n_blocks = (tile.n_visible + tile.n_rows - 2) / 64 + 1;
  const std::uint64_t state = kernels::attention_state_floats(tile.head_dim);
  const std::uint64_t slots = std::uint64_t{tile.n_rows} * tile.n_heads;
  CpuMemory states(n_blocks * slots * state * sizeof(float), "the self-test");
  const auto blocks = f16 ? ops.attention_blocks_f16 : ops.attention_blocks_f32;
  blocks(&tile, 0, 1, states.as<float>());
  blocks(&tile, 1, n_blocks, states.as<float>() + slots * state);
  for (std::uint32_t row = 0; row < tile.n_rows; ++row) {
    for (std::uint32_t head = 0; head < tile.n_heads; ++head) {
      const kernels::AttentionMergeArgs args{
          .states = states.as<float>() + (std::uint64_t{row} * tile.n_heads + head) * state,
          .step = slots * state,
          .n_blocks = n_blocks,
          .head_dim = tile.head_dim,
          .sink = tile.sinks == nullptr ? nullptr : tile.sinks + head,
          .scratch = tile.scratch,
          .out = tile.out + row * tile.row_floats + std::uint64_t{head} * tile.head_dim,
      };
      ops.attention_merge(&args);
    }
  }
}

}  // namespace

void ask_attention_tile(const CpuOps& ops, AttentionCase c, bool split,
                        std::vector<std::byte>& out) {
  constexpr std::uint32_t kHeadDim = AttentionInputs::kHeadDim;
  constexpr std::uint64_t kRowFloats = kTileHeads * kHeadDim;
  Inputs inputs(split ? 2200 : 2100);
  const AttentionInputs kv(ops, c.f16, inputs);
  const std::vector<float> q = inputs.values(kTileRows * kRowFloats);
  const std::vector<float> sinks = inputs.values(kTileHeads);
  CpuMemory scratch(ops.attention_tile_scratch_floats(kHeadDim) * sizeof(float), "the self-test");
  std::vector<float> y(q.size());
  for (const std::uint32_t n : {1u, 60u, AttentionInputs::kPositions - kTileRows + 1}) {
    const kernels::AttentionTileArgs args{
        .q = q.data(),
        .row_floats = kRowFloats,
        .n_rows = kTileRows,
        .n_heads = kTileHeads,
        .k = kv.k(),
        .v = kv.v(),
        .stride = AttentionInputs::kStride,
        .head_dim = kHeadDim,
        .n_visible = n,
        .window = c.window,
        .scale = AttentionInputs::kScale,
        .softcap = c.softcap,
        .sinks = c.sink ? sinks.data() : nullptr,
        .scratch = scratch.as<float>(),
        .out = y.data(),
    };
    if (split && ops.attention_merge != nullptr) {
      run_split(ops, c.f16, args);
    } else {
      (c.f16 ? ops.attention_tile_f16 : ops.attention_tile_f32)(&args);
    }
    append<float>(out, y);
  }
}

}  // namespace detrun
