// Launchers of the GEMV kernels of float types. One output row belongs to one group of threads of
// one block.
#include "kernels/cuda/gemv.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

// One more with a flag to raise: see gemv.cuh.
unsigned gemv_blocks(unsigned n_rows, const int* not_finite) {
  return blocks_for(n_rows, kGemvFloatRows) + (not_finite != nullptr ? 1 : 0);
}

}  // namespace

cudaError_t gemv_f32(const float* weight, const float* x, float* y, unsigned n_rows,
                     unsigned n_cols, int* not_finite, cudaStream_t stream) {
  detrun_gemv_f32<<<gemv_blocks(n_rows, not_finite), kGemvThreads, 0, stream>>>(
      weight, x, y, n_rows, n_cols, not_finite);
  return cudaGetLastError();
}

cudaError_t gemv_f16(const std::uint16_t* weight, const float* x, float* y, unsigned n_rows,
                     unsigned n_cols, int* not_finite, cudaStream_t stream) {
  detrun_gemv_f16<<<gemv_blocks(n_rows, not_finite), kGemvThreads, 0, stream>>>(
      weight, x, y, n_rows, n_cols, not_finite);
  return cudaGetLastError();
}

cudaError_t gemv_bf16(const std::uint16_t* weight, const float* x, float* y, unsigned n_rows,
                      unsigned n_cols, int* not_finite, cudaStream_t stream) {
  detrun_gemv_bf16<<<gemv_blocks(n_rows, not_finite), kGemvThreads, 0, stream>>>(
      weight, x, y, n_rows, n_cols, not_finite);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
