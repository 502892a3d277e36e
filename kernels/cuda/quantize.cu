// Launcher of the quantization of activations.
#include "kernels/cuda/launch_rows.h"
#include "kernels/cuda/quantize.cuh"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t quantize(const float* x, std::size_t n_blocks, std::int8_t* quants, float* scales,
                     float* sums, std::int16_t* half_sums, int* not_finite, cudaStream_t stream) {
  detrun_quantize<<<blocks_for(n_blocks, kRowWarps), kRowThreads, 0, stream>>>(
      x, n_blocks, quants, scales, sums, half_sums, not_finite);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
