// Tiles are as large as the kernels take them, but small enough that every thread gets several.
#include "backend/cpu_attention.h"

#include <algorithm>

#include "kernels/contract.h"

namespace detrun {
namespace {

using kernels::AttentionMergeArgs;
using kernels::AttentionTileArgs;
using kernels::kAttentionTileSlots;

// Below this many multiplications a job is not worth waking a thread for.
constexpr std::uint64_t kSerialMuls = 32768;
constexpr std::uint32_t kItemsPerThread = 4;
constexpr std::uint32_t kPartsPerThread = 8;
// Below this many blocks merging their states costs more than idle threads do.
constexpr std::uint32_t kBlocksToSplit = 16;

std::uint32_t divide_up(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

template <class Body>
void run_items(ThreadPool& pool, std::uint32_t n_items, std::uint64_t n_muls, Body&& body) {
  if (n_muls >= kSerialMuls) {
    pool.run(n_items, body);
    return;
  }
  const FpControlScope fp_control;
  for (std::uint32_t item = 0; item < n_items; ++item) body(item, 0);
}

}  // namespace

CpuAttention::CpuAttention(const kernels::CpuOps& ops, ThreadPool& pool) : ops_(ops), pool_(pool) {
  scratch_.resize(pool.n_threads());
}

void CpuAttention::reserve(std::uint32_t head_dim) {
  const std::uint64_t n_bytes = ops_.attention_tile_scratch_floats(head_dim) * sizeof(float);
  for (CpuMemory& scratch : scratch_) {
    if (scratch.size() < n_bytes) scratch = CpuMemory(n_bytes, "scratch");
  }
}

AttentionTileArgs CpuAttention::tile_args(const AttentionTask& task, const Tile& tile,
                                          std::uint32_t thread) {
  using Part = CpuKvCache::Part;
  const AttentionParams& params = task.params;
  const std::uint64_t row_floats = std::uint64_t{params.n_heads} * params.head_dim;
  const std::uint64_t at = tile.row0 * row_floats + std::uint64_t{tile.head0} * params.head_dim;
  return {
      .q = task.q + at,
      .row_floats = row_floats,
      .n_rows = tile.n_rows,
      .n_heads = tile.n_heads,
      .k = task.kv.at(Part::kK, task.layer, tile.kv_head, 0),
      .v = task.kv.at(Part::kV, task.layer, tile.kv_head, 0),
      .stride = task.kv.stride(),
      .head_dim = params.head_dim,
      .n_visible = task.pos0 + tile.row0 + 1,
      .window = 0,
      .scale = params.scale,
      .softcap = 0.0f,
      .sinks = nullptr,
      .scratch = scratch_[thread].as<float>(),
      .out = task.out + at,
  };
}

void CpuAttention::run_tiles(const AttentionTask& task) {
  const AttentionParams& params = task.params;
  const std::uint32_t group = params.n_heads / params.n_kv_heads;
  const std::uint32_t head_parts = divide_up(group, kAttentionTileSlots);
  const std::uint32_t heads = divide_up(group, head_parts);
  const std::uint32_t n_heads = params.n_kv_heads * head_parts;
  // A few tiles a thread, however short the chunk; a tile that is too small reads K and V often.
  const std::uint32_t wanted =
      divide_up(std::uint64_t{pool_.n_threads()} * kItemsPerThread, n_heads);
  const std::uint32_t rows =
      std::clamp(divide_up(task.rows, wanted), 1u, std::max(1u, kAttentionTileSlots / heads));
  const std::uint32_t row_parts = divide_up(task.rows, rows);
  const bool f16 = task.kv.shape().type == KvType::kF16;
  const auto attend = f16 ? ops_.attention_tile_f16 : ops_.attention_tile_f32;
  const std::uint64_t n_muls =
      std::uint64_t{task.rows} * params.n_heads * params.head_dim * (task.pos0 + task.rows);
  run_items(pool_, row_parts * n_heads, n_muls, [&](std::uint32_t item, std::uint32_t thread) {
    // The last rows see most and go first: what is left at the end is short.
    const std::uint32_t row0 = (row_parts - 1 - item / n_heads) * rows;
    const std::uint32_t kv_head = item % n_heads / head_parts;
    const std::uint32_t head = item % head_parts * heads;
    const AttentionTileArgs args =
        tile_args(task,
                  {row0, std::min(rows, task.rows - row0), kv_head, kv_head * group + head,
                   std::min(heads, group - head)},
                  thread);
    attend(&args);
  });
}

void CpuAttention::run_blocks(const AttentionTask& task, std::uint32_t n_parts) {
  const AttentionParams& params = task.params;
  const std::uint32_t group = params.n_heads / params.n_kv_heads;
  const std::uint32_t n_blocks = divide_up(task.pos0 + 1, kernels::kKvBlock);
  const std::uint64_t state = kernels::attention_state_floats(params.head_dim);
  // For every position that the cache can hold, so that this happens once.
  const std::uint64_t n_bytes = divide_up(task.kv.shape().n_ctx, kernels::kKvBlock) *
                                std::uint64_t{params.n_heads} * state * sizeof(float);
  if (states_.size() < n_bytes) states_ = CpuMemory(n_bytes, "the states of attention");
  float* const states = states_.as<float>();
  const auto of_kv_head = [&](std::uint32_t kv_head) {
    return states + std::uint64_t{kv_head} * n_blocks * group * state;
  };
  const bool f16 = task.kv.shape().type == KvType::kF16;
  const auto blocks = f16 ? ops_.attention_blocks_f16 : ops_.attention_blocks_f32;
  const std::uint32_t per_part = divide_up(n_blocks, n_parts);
  const std::uint32_t parts = divide_up(n_blocks, per_part);
  pool_.run(parts * params.n_kv_heads, [&](std::uint32_t item, std::uint32_t thread) {
    const std::uint32_t kv_head = item / parts;
    const std::uint32_t b0 = item % parts * per_part;
    const AttentionTileArgs args = tile_args(task, {0, 1, kv_head, kv_head * group, group}, thread);
    blocks(&args, b0, std::min(n_blocks, b0 + per_part), of_kv_head(kv_head) + b0 * group * state);
  });
  pool_.run(params.n_heads, [&](std::uint32_t head, std::uint32_t thread) {
    const AttentionMergeArgs args{
        .states = of_kv_head(head / group) + head % group * state,
        .step = group * state,
        .n_blocks = n_blocks,
        .head_dim = params.head_dim,
        .sink = nullptr,
        .scratch = scratch_[thread].as<float>(),
        .out = task.out + std::uint64_t{head} * params.head_dim,
    };
    ops_.attention_merge(&args);
  });
}

void CpuAttention::run(const AttentionTask& task) {
  const std::uint32_t n_kv = task.params.n_kv_heads;
  const std::uint32_t group = task.params.n_heads / n_kv;
  const std::uint32_t n_threads = pool_.n_threads();
  // One row of kv heads that do not share out evenly: a thread would wait while another works.
  const bool uneven = divide_up(n_kv, n_threads) * n_threads * 4 > n_kv * 5;
  if (task.rows == 1 && uneven && group > 1 && group <= kAttentionTileSlots &&
      task.pos0 / kernels::kKvBlock >= kBlocksToSplit && ops_.attention_merge != nullptr) {
    run_blocks(task, divide_up(std::uint64_t{n_threads} * kPartsPerThread, n_kv));
    return;
  }
  run_tiles(task);
}

}  // namespace detrun
