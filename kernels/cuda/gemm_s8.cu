// Launcher of the int8 GEMM kernels.
#include "kernels/cuda/gemm_s8.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

template <class Type>
cudaError_t gemm_quant(Planes weight, QuantizedRows x, float* y, unsigned m, unsigned n,
                       unsigned n_groups, cudaStream_t stream) {
  const dim3 grid(blocks_for(n, kGemmS8Outputs), blocks_for(m, kGemmS8Rows));
  detrun_gemm_quant<Type><<<grid, kGemmS8Threads, 0, stream>>>(weight, x, y, m, n, n_groups);
  return cudaGetLastError();
}

#define DETRUN_INSTANCE(name)                                                                   \
  template cudaError_t gemm_quant<kernels::Type##name>(Planes, QuantizedRows, float*, unsigned, \
                                                       unsigned, unsigned, cudaStream_t);
DETRUN_QUANT_TYPES(DETRUN_INSTANCE)
#undef DETRUN_INSTANCE

}  // namespace detrun::cuda
