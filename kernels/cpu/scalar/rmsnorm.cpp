// RMSNorm: contract clause 5.
#include "kernels/contract.h"
#include "kernels/cpu/scalar/scalar.h"

namespace detrun::kernels::scalar {

void rmsnorm(const float* x, const float* weight, float eps, std::uint64_t n, float* y) {
  float a[kFloatLanes] = {};
  for (std::uint64_t i = 0; i < n; ++i) {
    a[i % kFloatLanes] = f32_fma(x[i], x[i], a[i % kFloatLanes]);
  }
  const float mean = f32_div(tree_sum<kFloatLanes>(a), static_cast<float>(n));
  const float r = f32_div(1.0f, f32_sqrt(f32_add(mean, eps)));
  for (std::uint64_t i = 0; i < n; ++i) y[i] = f32_mul(f32_mul(x[i], r), weight[i]);
}

}  // namespace detrun::kernels::scalar
