// Launchers of the rounding of activations for profile cublas.
#include "kernels/cuda/launch_rows.h"
#include "kernels/cuda/rounding.cuh"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t round_f16(const float* x, std::size_t n, std::size_t n_all, std::uint16_t* out,
                      int* does_not_fit, cudaStream_t stream) {
  detrun_round_f16<<<blocks_for(n_all, kRowThreads), kRowThreads, 0, stream>>>(x, n, n_all, out,
                                                                               does_not_fit);
  return cudaGetLastError();
}

cudaError_t round_bf16(const float* x, std::size_t n, std::size_t n_all, std::uint16_t* out,
                       int* does_not_fit, cudaStream_t stream) {
  detrun_round_bf16<<<blocks_for(n_all, kRowThreads), kRowThreads, 0, stream>>>(x, n, n_all, out,
                                                                                does_not_fit);
  return cudaGetLastError();
}

cudaError_t round_f32(const float* x, std::size_t n, std::size_t n_all, float* out, int* not_finite,
                      cudaStream_t stream) {
  detrun_round_f32<<<blocks_for(n_all, kRowThreads), kRowThreads, 0, stream>>>(x, n, n_all, out,
                                                                               not_finite);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
