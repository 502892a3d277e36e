// Launchers of the elementwise operators.
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/launch_rows.h"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t add(float* x, const float* y, std::size_t n, cudaStream_t stream) {
  detrun_add<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(x, y, n);
  return cudaGetLastError();
}

cudaError_t mul(float* x, const float* y, std::size_t n, cudaStream_t stream) {
  detrun_mul<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(x, y, n);
  return cudaGetLastError();
}

cudaError_t scale(float* x, float factor, std::size_t n, cudaStream_t stream) {
  detrun_scale<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(x, factor, n);
  return cudaGetLastError();
}

cudaError_t add_scaled(float* x, const float* y, float factor, std::size_t n, cudaStream_t stream) {
  detrun_add_scaled<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(x, y, factor, n);
  return cudaGetLastError();
}

cudaError_t silu_mul(float* gate, const float* up, std::size_t n, cudaStream_t stream) {
  detrun_silu_mul<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(gate, up, n);
  return cudaGetLastError();
}

cudaError_t softcap(float* x, float cap, std::size_t n, cudaStream_t stream) {
  detrun_softcap<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(x, cap, n);
  return cudaGetLastError();
}

cudaError_t apply(kernels::Function function, const float* x, std::size_t n, float* y,
                  cudaStream_t stream) {
  // In the order of kernels::Function.
  void (*const rows[])(const float*, std::size_t, float*) = {
      detrun_exp,     detrun_log,  detrun_tanh,      detrun_erf,
      detrun_sigmoid, detrun_silu, detrun_gelu_tanh, detrun_gelu_erf};
  const auto index = static_cast<unsigned>(function);
  static_assert(sizeof rows / sizeof rows[0] == kernels::kFunctions);
  if (index >= kernels::kFunctions) return cudaErrorInvalidValue;
  rows[index]<<<blocks_for(n, kRowThreads), kRowThreads, 0, stream>>>(x, n, y);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
