// Launchers of the writes to the KV cache.
#include "kernels/cuda/kv_write.cuh"
#include "kernels/cuda/launch_rows.h"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t kv_write_f16(const float* x, const unsigned* positions, unsigned n_rows,
                         unsigned n_heads, unsigned head_dim, std::size_t position_stride,
                         std::size_t head_stride, std::uint16_t* out, int* does_not_fit,
                         cudaStream_t stream) {
  const std::size_t n = static_cast<std::size_t>(n_rows) * n_heads * head_dim;
  detrun_kv_write_f16<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(
      x, positions, n_rows, n_heads, head_dim, position_stride, head_stride, out, does_not_fit);
  return cudaGetLastError();
}

cudaError_t kv_write_f32(const float* x, const unsigned* positions, unsigned n_rows,
                         unsigned n_heads, unsigned head_dim, std::size_t position_stride,
                         std::size_t head_stride, float* out, int* not_finite,
                         cudaStream_t stream) {
  const std::size_t n = static_cast<std::size_t>(n_rows) * n_heads * head_dim;
  detrun_kv_write_f32<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(
      x, positions, n_rows, n_heads, head_dim, position_stride, head_stride, out, not_finite);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
