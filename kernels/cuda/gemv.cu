// Launchers of the GEMV kernels. One output row belongs to one group of threads of one block.
#include "kernels/cuda/gemv.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t gemv_f32(const float* weight, const float* x, float* y, unsigned n_rows,
                     unsigned n_cols, cudaStream_t stream) {
  detrun_gemv_f32<<<blocks_for(n_rows, kGemvFloatRows), kGemvThreads, 0, stream>>>(weight, x, y,
                                                                                   n_rows, n_cols);
  return cudaGetLastError();
}

cudaError_t gemv_f16(const std::uint16_t* weight, const float* x, float* y, unsigned n_rows,
                     unsigned n_cols, cudaStream_t stream) {
  detrun_gemv_f16<<<blocks_for(n_rows, kGemvFloatRows), kGemvThreads, 0, stream>>>(weight, x, y,
                                                                                   n_rows, n_cols);
  return cudaGetLastError();
}

cudaError_t gemv_bf16(const std::uint16_t* weight, const float* x, float* y, unsigned n_rows,
                      unsigned n_cols, cudaStream_t stream) {
  detrun_gemv_bf16<<<blocks_for(n_rows, kGemvFloatRows), kGemvThreads, 0, stream>>>(weight, x, y,
                                                                                    n_rows, n_cols);
  return cudaGetLastError();
}

cudaError_t gemv_q8_0(const std::uint16_t* scales, const std::int8_t* quants,
                      const std::int8_t* x_quants, const float* x_scales, float* y, unsigned n_rows,
                      unsigned n_blocks, cudaStream_t stream) {
  detrun_gemv_q8_0<<<blocks_for(n_rows, kGemvQ8Rows), kGemvThreads, 0, stream>>>(
      scales, quants, x_quants, x_scales, y, n_rows, n_blocks);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
