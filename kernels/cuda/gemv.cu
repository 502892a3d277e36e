// Launchers of the GEMV kernels of float types. One output row belongs to one group of threads of
// one block.
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

}  // namespace detrun::cuda
