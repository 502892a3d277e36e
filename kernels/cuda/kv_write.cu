// Launchers of the writes to the KV cache.
#include "kernels/cuda/kv_write.cuh"
#include "kernels/cuda/launch_rows.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

dim3 kv_grid(unsigned n_rows, unsigned n_heads, unsigned head_dim, const float* v) {
  const std::size_t n = static_cast<std::size_t>(n_rows) * n_heads * head_dim;
  return dim3(blocks_for(n, kRowThreads), v == nullptr ? 1 : 2);
}

}  // namespace

cudaError_t kv_write_f16(const float* k, const float* v, const unsigned* positions, unsigned n_rows,
                         unsigned n_heads, unsigned head_dim, std::size_t position_stride,
                         std::size_t head_stride, std::uint16_t* k_out, std::uint16_t* v_out,
                         int* does_not_fit, cudaStream_t stream) {
  const dim3 grid = kv_grid(n_rows, n_heads, head_dim, v);
  detrun_kv_write_f16<<<grid, kRowThreads, 0, stream>>>({{k, v}, {k_out, v_out}}, positions, n_rows,
                                                        n_heads, head_dim, position_stride,
                                                        head_stride, does_not_fit);
  return cudaGetLastError();
}

cudaError_t kv_write_f32(const float* k, const float* v, const unsigned* positions, unsigned n_rows,
                         unsigned n_heads, unsigned head_dim, std::size_t position_stride,
                         std::size_t head_stride, float* k_out, float* v_out, int* not_finite,
                         cudaStream_t stream) {
  const dim3 grid = kv_grid(n_rows, n_heads, head_dim, v);
  detrun_kv_write_f32<<<grid, kRowThreads, 0, stream>>>({{k, v}, {k_out, v_out}}, positions, n_rows,
                                                        n_heads, head_dim, position_stride,
                                                        head_stride, not_finite);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
