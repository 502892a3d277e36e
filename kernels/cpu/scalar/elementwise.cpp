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

void exp(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; ++i) y[i] = exp32(x[i]);
}

}  // namespace detrun::kernels::scalar
