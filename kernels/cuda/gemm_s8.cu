// Launchers of the int8 GEMM kernels.
#include "kernels/cuda/gemm_s8.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

dim3 grid_for(unsigned m, unsigned n) {
  return dim3(blocks_for(n, kGemmS8Outputs), blocks_for(m, kGemmS8Rows));
}

}  // namespace

cudaError_t gemm_q8_0(PlanesQ8_0 weight, QuantizedRows x, float* y, unsigned m, unsigned n,
                      unsigned n_groups, cudaStream_t stream) {
  detrun_gemm_q8_0<<<grid_for(m, n), kGemmS8Threads, 0, stream>>>(weight, x, y, m, n, n_groups);
  return cudaGetLastError();
}

cudaError_t gemm_q4_k(PlanesQ4K weight, QuantizedRows x, float* y, unsigned m, unsigned n,
                      unsigned n_groups, cudaStream_t stream) {
  detrun_gemm_q4_k<<<grid_for(m, n), kGemmS8Threads, 0, stream>>>(weight, x, y, m, n, n_groups);
  return cudaGetLastError();
}

cudaError_t gemm_q6_k(PlanesQ6K weight, QuantizedRows x, float* y, unsigned m, unsigned n,
                      unsigned n_groups, cudaStream_t stream) {
  detrun_gemm_q6_k<<<grid_for(m, n), kGemmS8Threads, 0, stream>>>(weight, x, y, m, n, n_groups);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
