// Launchers of everything that is no matrix product: device pointers in, work on `stream`, the
// launch's status out. Sizes are at least 1. A flag (int, 0 before) becomes 1 where the contract
// calls a value an error; what the kernel then wrote means nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/ops.h"
#include "kernels/cuda/attention_input.h"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/planes.h"

namespace detrun::cuda {

/// Contract clause 6, split: the states (m_b, l_b) (n_queries, n_heads, n_blocks, 2) and values o_b
/// (n_queries, n_heads, n_blocks, head_dim) of all blocks, then their merge into out (n_queries,
/// n_heads, head_dim). n_blocks is at most 65535. For few queries and many positions.
cudaError_t attention_blocks_f16(const AttentionInput& in, float* states, float* values,
                                 cudaStream_t stream);
cudaError_t attention_blocks_f32(const AttentionInput& in, float* states, float* values,
                                 cudaStream_t stream);
cudaError_t attention_merge(const AttentionInput& in, const float* states, const float* values,
                            float* out, cudaStream_t stream);
/// The same bits in one pass without memory for states: for many queries.
cudaError_t attention_stream_f16(const AttentionInput& in, float* out, cudaStream_t stream);
cudaError_t attention_stream_f32(const AttentionInput& in, float* out, cudaStream_t stream);

/// Contract clause 5: x, y (n_rows, n), weight and bias (n); y may be x, bias may be nullptr.
cudaError_t rmsnorm(const float* x, const float* weight, float eps, unsigned n_rows, unsigned n,
                    float* y, int* not_finite, cudaStream_t stream);
cudaError_t layernorm(const float* x, const float* weight, const float* bias, float eps,
                      unsigned n_rows, unsigned n, float* y, int* not_finite, cudaStream_t stream);

/// Contract clause 8, in place: x (n_rows, n_heads, head_dim); positions (n_rows), the rows of the
/// tables cos and sin, rope_dim / 2 wide.
cudaError_t rope_adjacent(float* x, const float* cos, const float* sin, const unsigned* positions,
                          unsigned n_rows, unsigned n_heads, unsigned head_dim, unsigned rope_dim,
                          cudaStream_t stream);
cudaError_t rope_halves(float* x, const float* cos, const float* sin, const unsigned* positions,
                        unsigned n_rows, unsigned n_heads, unsigned head_dim, unsigned rope_dim,
                        cudaStream_t stream);

/// Contract clause 2: x, quants (n_blocks, 32), scales (n_blocks). For types of clause 3 that need
/// them, sums (n_blocks): the scale times the sum of the 32 quants; half_sums (n_blocks, 2): the
/// exact sums of 16; either may be nullptr.
cudaError_t quantize(const float* x, std::size_t n_blocks, std::int8_t* quants, float* scales,
                     float* sums, std::int16_t* half_sums, int* not_finite, cudaStream_t stream);

/// Contract clause 7: k and v (n_rows, n_heads, head_dim) to their parts of the cache from position
/// 0: row r to positions[r]; strides in elements. With v nullptr only k is written.
cudaError_t kv_write_f16(const float* k, const float* v, const unsigned* positions, unsigned n_rows,
                         unsigned n_heads, unsigned head_dim, std::size_t position_stride,
                         std::size_t head_stride, std::uint16_t* k_out, std::uint16_t* v_out,
                         int* does_not_fit, cudaStream_t stream);
cudaError_t kv_write_f32(const float* k, const float* v, const unsigned* positions, unsigned n_rows,
                         unsigned n_heads, unsigned head_dim, std::size_t position_stride,
                         std::size_t head_stride, float* k_out, float* v_out, int* not_finite,
                         cudaStream_t stream);

/// Profile cublas, not the contract: out (n_all) = x (n) rounded to the type, nearest even, and
/// zeros behind it; n_all >= n. The flag rises for what is not finite or does not fit.
cudaError_t round_f16(const float* x, std::size_t n, std::size_t n_all, std::uint16_t* out,
                      int* does_not_fit, cudaStream_t stream);
cudaError_t round_bf16(const float* x, std::size_t n, std::size_t n_all, std::uint16_t* out,
                       int* does_not_fit, cudaStream_t stream);
cudaError_t round_f32(const float* x, std::size_t n, std::size_t n_all, float* out, int* not_finite,
                      cudaStream_t stream);

/// Contract clause 10, n elements, in place.
cudaError_t add(float* x, const float* y, std::size_t n, cudaStream_t stream);  ///< x = x + y
cudaError_t mul(float* x, const float* y, std::size_t n, cudaStream_t stream);  ///< x = x * y
cudaError_t scale(float* x, float factor, std::size_t n, cudaStream_t stream);  ///< x = x * factor
/// x = fma(factor, y, x)
cudaError_t add_scaled(float* x, const float* y, float factor, std::size_t n, cudaStream_t stream);
/// gate = silu(gate) * up
cudaError_t silu_mul(float* gate, const float* up, std::size_t n, cudaStream_t stream);
/// x = cap * tanh(x / cap)
cudaError_t softcap(float* x, float cap, std::size_t n, cudaStream_t stream);

/// Contract clause 4: y = function(x), n elements; y may be x.
cudaError_t apply(kernels::Function function, const float* x, std::size_t n, float* y,
                  cudaStream_t stream);

/// Rows of the embedding matrix (rows, n_cols) by id, decoded as clause 3 says: out (n_tokens,
/// n_cols).
cudaError_t embed_f32(const float* matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                      float* out, cudaStream_t stream);
cudaError_t embed_f16(const std::uint16_t* matrix, const int* tokens, unsigned n_tokens,
                      unsigned n_cols, float* out, cudaStream_t stream);
cudaError_t embed_bf16(const std::uint16_t* matrix, const int* tokens, unsigned n_tokens,
                       unsigned n_cols, float* out, cudaStream_t stream);
/// n_cols is a multiple of a block's elements. For every type of DETRUN_QUANT_TYPES.
template <class Type>
cudaError_t embed_quant(Planes matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                        float* out, cudaStream_t stream);

/// Contract clauses 11 and 12 for rows of logits (n_rows, n): the id of the largest (the lowest of
/// equal ones), its value, the margin to the second; a logit that is not finite raises the flag.
cudaError_t argmax(const float* logits, unsigned n_rows, unsigned n, int* ids, float* largest,
                   float* margins, int* not_finite, cudaStream_t stream);
/// Log probability of one id a row; `largest` as argmax gives it.
cudaError_t logprob(const float* logits, unsigned n_rows, unsigned n, const int* ids,
                    const float* largest, float* logprobs, cudaStream_t stream);

}  // namespace detrun::cuda
