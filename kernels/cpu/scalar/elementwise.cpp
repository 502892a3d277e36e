// Elementwise operators: contract clauses 4 and 10, one rounding per written operation.
#include "kernels/contract.h"
#include "kernels/cpu/scalar/scalar.h"
#include "kernels/math.h"

namespace detrun::kernels::scalar {

void silu_mul(float* gate, const float* up, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) gate[i] = f32_mul(silu32(gate[i]), up[i]);
}

void add(float* x, const float* y, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) x[i] = f32_add(x[i], y[i]);
}

void mul(float* x, const float* y, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) x[i] = f32_mul(x[i], y[i]);
}

void scale(float* x, float factor, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) x[i] = f32_mul(x[i], factor);
}

void add_scaled(float* x, const float* y, float factor, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) x[i] = f32_fma(factor, y[i], x[i]);
}

void softcap(float* x, float cap, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) x[i] = softcap32(x[i], cap);
}

void exp(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = exp32(x[i]);
}

void log(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = log32(x[i]);
}

void tanh(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = tanh32(x[i]);
}

void erf(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = erf32(x[i]);
}

void sigmoid(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = sigmoid32(x[i]);
}

void silu(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = silu32(x[i]);
}

void gelu_tanh(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = gelu_tanh32(x[i]);
}

void gelu_erf(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = gelu_erf32(x[i]);
}

}  // namespace detrun::kernels::scalar
