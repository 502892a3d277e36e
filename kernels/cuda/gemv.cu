// Launchers of the GEMV kernels of float types. One output row belongs to one group of threads of
// one block.
#include "kernels/cuda/gemv.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

// One block more with a flag to raise: see gemv.cuh.
template <class Weight>
unsigned gemv_blocks(const GemvMatrices<Weight>& all, const int* not_finite) {
  return all.end[kGemvMatrices - 1] + (not_finite != nullptr ? 1 : 0);
}

}  // namespace

cudaError_t gemv_f32(const GemvMatrix<const float*>* matrices, unsigned n, const float* x,
                     unsigned n_cols, int* not_finite, cudaStream_t stream) {
  const auto all = in_one_grid(matrices, n, kGemvFloatRows);
  detrun_gemv_f32<<<gemv_blocks(all, not_finite), kGemvThreads, 0, stream>>>(all, x, n_cols,
                                                                             not_finite);
  return cudaGetLastError();
}

cudaError_t gemv_f16(const GemvMatrix<const std::uint16_t*>* matrices, unsigned n, const float* x,
                     unsigned n_cols, int* not_finite, cudaStream_t stream) {
  const auto all = in_one_grid(matrices, n, kGemvFloatRows);
  detrun_gemv_f16<<<gemv_blocks(all, not_finite), kGemvThreads, 0, stream>>>(all, x, n_cols,
                                                                             not_finite);
  return cudaGetLastError();
}

cudaError_t gemv_bf16(const GemvMatrix<const std::uint16_t*>* matrices, unsigned n, const float* x,
                      unsigned n_cols, int* not_finite, cudaStream_t stream) {
  const auto all = in_one_grid(matrices, n, kGemvFloatRows);
  detrun_gemv_bf16<<<gemv_blocks(all, not_finite), kGemvThreads, 0, stream>>>(all, x, n_cols,
                                                                              not_finite);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
