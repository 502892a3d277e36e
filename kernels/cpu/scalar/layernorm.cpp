// LayerNorm: contract clause 5. The centred elements are computed twice, by the same subtraction,
// so that y may be x and no scratch is needed.
#include "kernels/contract.h"
#include "kernels/cpu/scalar/scalar.h"

namespace detrun::kernels::scalar {

bool layernorm(const float* x, const float* weight, const float* bias, float eps, std::uint64_t n,
               float* y) {
  const float mean = f32_div(sum32(x, n), static_cast<float>(n));
  float a[kFloatLanes] = {};
  for (std::uint64_t i = 0; i < n; ++i) {
    const float c = f32_sub(x[i], mean);
    a[i % kFloatLanes] = f32_fma(c, c, a[i % kFloatLanes]);
  }
  const float sum = tree_sum<kFloatLanes>(a);
  if (!f32_is_finite(sum)) return false;
  const float variance = f32_div(sum, static_cast<float>(n));
  const float r = f32_div(1.0f, f32_sqrt(f32_add(variance, eps)));
  for (std::uint64_t i = 0; i < n; ++i) {
    y[i] = f32_mul(f32_mul(f32_sub(x[i], mean), r), weight[i]);
    if (bias != nullptr) y[i] = f32_add(y[i], bias[i]);
  }
  return true;
}

}  // namespace detrun::kernels::scalar
