// See cuda_attention.h.
#include "backend/cuda/cuda_attention.h"

#include <algorithm>
#include <bit>

#include "kernels/contract.h"
#include "kernels/cuda/launch_rows.h"

namespace detrun {
namespace {

// A thread block for each row and head is enough for a device from so many rows on.
constexpr std::uint32_t kSplitRowsMax = 4;
constexpr std::uint32_t kBlocksMax = 65535;  // of a grid's second dimension

std::uint32_t blocks_of(std::uint64_t n_positions) {
  return static_cast<std::uint32_t>((n_positions + kernels::kKvBlock - 1) / kernels::kKvBlock);
}

/// Two states of every (row, head, block), then the values, each at a multiple of 256 bytes.
struct States {
  States(std::uint64_t rows, std::uint64_t n_heads, std::uint64_t n_blocks, std::uint64_t head_dim)
      : states((rows * n_heads * n_blocks * 2 + 63) / 64 * 64),
        values(rows * n_heads * n_blocks * head_dim) {}
  std::uint64_t floats() const { return states + values; }
  std::uint64_t states, values;
};

}  // namespace

std::uint64_t CudaAttention::scratch_bytes(const PassShape& shape) {
  const std::uint64_t rows = std::min(shape.rows, kSplitRowsMax);
  const std::uint64_t n_blocks = std::min(blocks_of(shape.n_ctx), kBlocksMax);
  return States(rows, shape.n_heads, n_blocks, shape.head_dim).floats() * sizeof(float);
}

// A power of two: as many graphs of a step as the context has doublings. The states of all blocks
// of the context have room, so more of them are never asked for.
std::uint32_t CudaAttention::grid_blocks(std::uint32_t rows, std::uint32_t pos0,
                                         std::uint32_t n_ctx) {
  const std::uint32_t seen = blocks_of(std::uint64_t{pos0} + rows);
  if (rows > kSplitRowsMax || seen < 2 || seen > kBlocksMax) return 0;
  return std::min({std::bit_ceil(seen), blocks_of(n_ctx), kBlocksMax});
}

void CudaAttention::run(const CudaAttentionTask& task) {
  const AttentionParams& params = task.params;
  const KvLayout& layout = task.kv.layout();
  cuda::AttentionInput in{};
  in.q = task.q;
  in.k = task.kv.at(KvPart::kK, task.layer);
  in.v = task.kv.at(KvPart::kV, task.layer);
  in.position_stride = layout.stride();
  in.head_stride = layout.head_stride();
  in.first_visible = task.positions.first_visible();
  in.n_visible = task.positions.n_visible();
  in.n_queries = task.rows;
  in.n_heads = params.n_heads;
  in.n_kv_heads = params.n_kv_heads;
  in.head_dim = params.head_dim;
  in.n_blocks = grid_blocks(task.rows, task.pos0, layout.shape().n_ctx);
  in.scale = params.scale;

  const bool f16 = layout.shape().type == KvType::kF16;
  if (in.n_blocks == 0) {
    const auto stream = f16 ? cuda::attention_stream_f16 : cuda::attention_stream_f32;
    check_cuda(stream(in, task.out, stream_.get()), "attention");
    return;
  }
  const States parts(task.rows, params.n_heads, in.n_blocks, params.head_dim);
  auto* states = states_.room_for<float>(parts.floats());
  float* values = states + parts.states;
  const auto blocks = f16 ? cuda::attention_blocks_f16 : cuda::attention_blocks_f32;
  check_cuda(blocks(in, states, values, stream_.get()), "attention");
  check_cuda(cuda::attention_merge(in, states, values, task.out, stream_.get()), "attention");
}

}  // namespace detrun
