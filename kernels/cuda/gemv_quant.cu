// Launcher of the GEMV kernels for quantized types.
#include "kernels/cuda/gemv_quant.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

template <class Type>
cudaError_t gemv_quant(const GemvMatrix<Planes>* matrices, unsigned n, QuantizedRows x,
                       unsigned n_groups, cudaStream_t stream) {
  const auto all = in_one_grid(matrices, n, kGemvQuantRows);
  const unsigned blocks = all.end[kGemvMatrices - 1];
  detrun_gemv_quant<Type><<<blocks, kGemvQuantThreads, 0, stream>>>(all, x, n_groups);
  return cudaGetLastError();
}

#define DETRUN_INSTANCE(name)                                                               \
  template cudaError_t gemv_quant<kernels::Type##name>(const GemvMatrix<Planes>*, unsigned, \
                                                       QuantizedRows, unsigned, cudaStream_t);
DETRUN_QUANT_TYPES(DETRUN_INSTANCE)
#undef DETRUN_INSTANCE

}  // namespace detrun::cuda
