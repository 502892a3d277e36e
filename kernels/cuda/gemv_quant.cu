// Launchers of the GEMV kernels for K-quants.
#include "kernels/cuda/gemv_quant.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t gemv_q4_k(PlanesQ4K weight, QuantizedRows x, float* y, unsigned n_rows,
                      unsigned n_groups, cudaStream_t stream) {
  detrun_gemv_q4_k<<<blocks_for(n_rows, kGemvQuantRows), kGemvQuantThreads, 0, stream>>>(
      weight, x, y, n_rows, n_groups);
  return cudaGetLastError();
}

cudaError_t gemv_q6_k(PlanesQ6K weight, QuantizedRows x, float* y, unsigned n_rows,
                      unsigned n_groups, cudaStream_t stream) {
  detrun_gemv_q6_k<<<blocks_for(n_rows, kGemvQuantRows), kGemvQuantThreads, 0, stream>>>(
      weight, x, y, n_rows, n_groups);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
