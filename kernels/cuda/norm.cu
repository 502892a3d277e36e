// Launchers of the norm kernels: a thread block a row.
#include "kernels/cuda/launch_rows.h"
#include "kernels/cuda/norm.cuh"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t rmsnorm(const float* x, const float* weight, float eps, unsigned n_rows, unsigned n,
                    float* y, int* not_finite, cudaStream_t stream) {
  detrun_rmsnorm<<<blocks_for(n_rows, 1), kNormThreads, 0, stream>>>(x, weight, eps, n, y,
                                                                     not_finite);
  return cudaGetLastError();
}

cudaError_t layernorm(const float* x, const float* weight, const float* bias, float eps,
                      unsigned n_rows, unsigned n, float* y, int* not_finite, cudaStream_t stream) {
  detrun_layernorm<<<blocks_for(n_rows, 1), kNormThreads, 0, stream>>>(x, weight, bias, eps, n, y,
                                                                       not_finite);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
