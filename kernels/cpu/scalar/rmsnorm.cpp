// RMSNorm: contract clause 5.
#include "kernels/contract.h"
#include "kernels/cpu/scalar/scalar.h"

namespace detrun::kernels::scalar {

bool rmsnorm(const float* x, const float* weight, float eps, std::uint64_t n, float* y) {
  float a[kFloatLanes] = {};
  for (std::uint64_t i = 0; i < n; ++i) {
    a[i % kFloatLanes] = f32_fma(x[i], x[i], a[i % kFloatLanes]);
  }
  const float sum = tree_sum<kFloatLanes>(a);
  if (!f32_is_finite(sum)) return false;  // else r would be 0, and so would the row, in silence
  const float mean = f32_div(sum, static_cast<float>(n));
  const float r = f32_div(1.0f, f32_sqrt(f32_add(mean, eps)));
  for (std::uint64_t i = 0; i < n; ++i) y[i] = f32_mul(f32_mul(x[i], r), weight[i]);
  return true;
}

}  // namespace detrun::kernels::scalar
