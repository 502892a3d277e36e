// RMSNorm: contract clause 5. The 32 canonical lanes are eight registers.
#include "kernels/cpu/neon/lanes.h"
#include "kernels/cpu/neon/neon.h"

namespace detrun::kernels::neon {

bool rmsnorm(const float* x, const float* weight, float eps, std::uint64_t n, float* y) {
  float32x4_t a[8];
  for (auto& v : a) v = zero4();
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    const float32x4_t v = load_padded(x + i, n - i);
    float32x4_t& lanes = a[i / kLanes % 8];
    lanes = vfmaq_f32(lanes, v, v);
  }
  const float sum = tree32(a);
  if (!f32_is_finite(sum)) return false;
  const float mean = f32_div(sum, static_cast<float>(n));
  const float32x4_t r = vdupq_n_f32(f32_div(1.0f, f32_sqrt(f32_add(mean, eps))));
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    const float32x4_t scaled = vmulq_f32(load_padded(x + i, n - i), r);
    store_first(y + i, n - i, vmulq_f32(scaled, load_padded(weight + i, n - i)));
  }
  return true;
}

}  // namespace detrun::kernels::neon
