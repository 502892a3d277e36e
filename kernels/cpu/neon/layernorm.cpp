// LayerNorm: contract clause 5. The 32 canonical lanes are eight registers; what stands for a
// missing element must be +0 after the mean is subtracted, too.
#include "kernels/cpu/neon/lanes.h"
#include "kernels/cpu/neon/neon.h"

namespace detrun::kernels::neon {

bool layernorm(const float* x, const float* weight, const float* bias, float eps, std::uint64_t n,
               float* y) {
  float32x4_t a[8];
  for (auto& v : a) v = zero4();
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    float32x4_t& lanes = a[i / kLanes % 8];
    lanes = vaddq_f32(lanes, load_padded(x + i, n - i));
  }
  const float32x4_t mean = vdupq_n_f32(f32_div(tree32(a), static_cast<float>(n)));
  for (auto& v : a) v = zero4();
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    const float32x4_t all = vsubq_f32(load_padded(x + i, n - i), mean);
    const float32x4_t c = select(first_lanes(n - i), all, zero4());
    float32x4_t& lanes = a[i / kLanes % 8];
    lanes = vfmaq_f32(lanes, c, c);
  }
  const float sum = tree32(a);
  if (!f32_is_finite(sum)) return false;
  const float variance = f32_div(sum, static_cast<float>(n));
  const float32x4_t r = vdupq_n_f32(f32_div(1.0f, f32_sqrt(f32_add(variance, eps))));
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    const float32x4_t scaled = vmulq_f32(vsubq_f32(load_padded(x + i, n - i), mean), r);
    float32x4_t out = vmulq_f32(scaled, load_padded(weight + i, n - i));
    if (bias != nullptr) out = vaddq_f32(out, load_padded(bias + i, n - i));
    store_first(y + i, n - i, out);
  }
  return true;
}

}  // namespace detrun::kernels::neon
