// Launchers of the fp32 GEMM kernels and of the packing they need.
#include "kernels/cuda/gemm_f32.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

dim3 grid_for(unsigned m, unsigned n) {
  return dim3(blocks_for(n, kPanelOutputs), blocks_for(m, kPanelRows));
}

}  // namespace

cudaError_t pack_rows(const float* x, unsigned m, unsigned k, float* panels, cudaStream_t stream) {
  detrun_pack_rows<<<blocks_for(panel_elements(m, k, kPanelRows), kPackThreads), kPackThreads, 0,
                     stream>>>(x, m, k, panels);
  return cudaGetLastError();
}

cudaError_t gemm_f32(const float* weight, const float* x, float* y, unsigned m, unsigned n,
                     unsigned k, cudaStream_t stream) {
  detrun_gemm_f32<<<grid_for(m, n), kGemmF32Threads, 0, stream>>>(weight, x, y, m, n, k);
  return cudaGetLastError();
}

cudaError_t gemm_f16(const std::uint16_t* weight, const float* x, float* y, unsigned m, unsigned n,
                     unsigned k, cudaStream_t stream) {
  detrun_gemm_f16<<<grid_for(m, n), kGemmF32Threads, 0, stream>>>(weight, x, y, m, n, k);
  return cudaGetLastError();
}

cudaError_t gemm_bf16(const std::uint16_t* weight, const float* x, float* y, unsigned m, unsigned n,
                      unsigned k, cudaStream_t stream) {
  detrun_gemm_bf16<<<grid_for(m, n), kGemmF32Threads, 0, stream>>>(weight, x, y, m, n, k);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
