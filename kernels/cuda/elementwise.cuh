// Elementwise operators, contract clauses 4 and 10: one thread an element, one rounding a written
// operation. In place where an argument is not const.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/math.h"

namespace detrun::device {

// Grid ceil(n / kRowThreads), here and below.
DETRUN_KERNEL_OF(kRowThreads) void detrun_add(float* x, const float* y, std::size_t n) {
  const std::size_t i = element_index();
  if (i < n) x[i] = f32_add(x[i], y[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_mul(float* x, const float* y, std::size_t n) {
  const std::size_t i = element_index();
  if (i < n) x[i] = f32_mul(x[i], y[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_scale(float* x, float factor, std::size_t n) {
  const std::size_t i = element_index();
  if (i < n) x[i] = f32_mul(x[i], factor);
}
DETRUN_KERNEL_OF(kRowThreads)
void detrun_add_scaled(float* x, const float* y, float factor, std::size_t n) {
  const std::size_t i = element_index();
  if (i < n) x[i] = f32_fma(factor, y[i], x[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_silu_mul(float* gate, const float* up, std::size_t n) {
  const std::size_t i = element_index();
  if (i < n) gate[i] = f32_mul(silu32(gate[i]), up[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_softcap(float* x, float cap, std::size_t n) {
  const std::size_t i = element_index();
  if (i < n) x[i] = softcap32(x[i], cap);
}

// y = f(x), y may be x.
DETRUN_KERNEL_OF(kRowThreads) void detrun_exp(const float* x, std::size_t n, float* y) {
  const std::size_t i = element_index();
  if (i < n) y[i] = exp32(x[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_log(const float* x, std::size_t n, float* y) {
  const std::size_t i = element_index();
  if (i < n) y[i] = log32(x[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_tanh(const float* x, std::size_t n, float* y) {
  const std::size_t i = element_index();
  if (i < n) y[i] = tanh32(x[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_erf(const float* x, std::size_t n, float* y) {
  const std::size_t i = element_index();
  if (i < n) y[i] = erf32(x[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_sigmoid(const float* x, std::size_t n, float* y) {
  const std::size_t i = element_index();
  if (i < n) y[i] = sigmoid32(x[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_silu(const float* x, std::size_t n, float* y) {
  const std::size_t i = element_index();
  if (i < n) y[i] = silu32(x[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_gelu_tanh(const float* x, std::size_t n, float* y) {
  const std::size_t i = element_index();
  if (i < n) y[i] = gelu_tanh32(x[i]);
}
DETRUN_KERNEL_OF(kRowThreads) void detrun_gelu_erf(const float* x, std::size_t n, float* y) {
  const std::size_t i = element_index();
  if (i < n) y[i] = gelu_erf32(x[i]);
}

}  // namespace detrun::device
