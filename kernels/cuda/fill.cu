// Launchers of the kernels that make weights up.
#include "kernels/cuda/fill.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

unsigned fill_blocks(std::size_t n) {
  const std::size_t blocks = n / kFillThreads + 1;
  return static_cast<unsigned>(blocks < kFillBlocksMax ? blocks : kFillBlocksMax);
}

}  // namespace

cudaError_t fill_f32(void* image, std::size_t n, std::uint64_t key, cudaStream_t stream) {
  detrun_fill_f32<<<fill_blocks(n / 2), kFillThreads, 0, stream>>>(
      static_cast<std::uint32_t*>(image), n, key);
  return cudaGetLastError();
}

cudaError_t fill_f16(void* image, std::size_t n, std::uint64_t key, cudaStream_t stream) {
  detrun_fill_f16<<<fill_blocks(n / 4), kFillThreads, 0, stream>>>(
      static_cast<std::uint16_t*>(image), n, key);
  return cudaGetLastError();
}

cudaError_t fill_bf16(void* image, std::size_t n, std::uint64_t key, cudaStream_t stream) {
  detrun_fill_bf16<<<fill_blocks(n / 4), kFillThreads, 0, stream>>>(
      static_cast<std::uint16_t*>(image), n, key);
  return cudaGetLastError();
}

template <class Type>
cudaError_t fill_quant(Planes planes, std::size_t n_groups, std::uint64_t key,
                       cudaStream_t stream) {
  const unsigned blocks = fill_blocks(n_groups);
  detrun_fill_quant<Type><<<blocks, kFillThreads, 0, stream>>>(planes, n_groups, key);
  return cudaGetLastError();
}

#define DETRUN_INSTANCE(name)                                                              \
  template cudaError_t fill_quant<kernels::Type##name>(Planes, std::size_t, std::uint64_t, \
                                                       cudaStream_t);
DETRUN_SYNTHETIC_TYPES(DETRUN_INSTANCE)
#undef DETRUN_INSTANCE

}  // namespace detrun::cuda
