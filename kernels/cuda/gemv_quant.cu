// Launcher of the GEMV kernels for quantized types.
#include "kernels/cuda/gemv_quant.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

template <class Type>
cudaError_t gemv_quant(Planes weight, QuantizedRows x, float* y, unsigned n_rows, unsigned n_groups,
                       cudaStream_t stream) {
  const unsigned blocks = blocks_for(n_rows, kGemvQuantRows);
  detrun_gemv_quant<Type><<<blocks, kGemvQuantThreads, 0, stream>>>(weight, x, y, n_rows, n_groups);
  return cudaGetLastError();
}

#define DETRUN_INSTANCE(name)                                                                   \
  template cudaError_t gemv_quant<kernels::Type##name>(Planes, QuantizedRows, float*, unsigned, \
                                                       unsigned, cudaStream_t);
DETRUN_QUANT_TYPES(DETRUN_INSTANCE)
#undef DETRUN_INSTANCE

}  // namespace detrun::cuda
