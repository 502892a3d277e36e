// Launchers of the rotary position embedding.
#include "kernels/cuda/launch_rows.h"
#include "kernels/cuda/rope.cuh"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t rope_adjacent(float* x, const float* cos, const float* sin, const unsigned* positions,
                          unsigned n_rows, unsigned n_heads, unsigned head_dim, unsigned rope_dim,
                          cudaStream_t stream) {
  const std::size_t pairs = static_cast<std::size_t>(n_rows) * n_heads * (rope_dim / 2);
  detrun_rope_adjacent<<<blocks_for(pairs, kRowThreads), kRowThreads, 0, stream>>>(
      x, cos, sin, positions, n_rows, n_heads, head_dim, rope_dim);
  return cudaGetLastError();
}

cudaError_t rope_halves(float* x, const float* cos, const float* sin, const unsigned* positions,
                        unsigned n_rows, unsigned n_heads, unsigned head_dim, unsigned rope_dim,
                        cudaStream_t stream) {
  const std::size_t pairs = static_cast<std::size_t>(n_rows) * n_heads * (rope_dim / 2);
  detrun_rope_halves<<<blocks_for(pairs, kRowThreads), kRowThreads, 0, stream>>>(
      x, cos, sin, positions, n_rows, n_heads, head_dim, rope_dim);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
