// RMSNorm: contract clause 5. The 32 canonical lanes are four registers.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

bool rmsnorm(const float* x, const float* weight, float eps, std::uint64_t n, float* y) {
  __m256 a[4];
  for (auto& v : a) v = _mm256_setzero_ps();
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 v = load_padded(x + i, n - i);
    __m256& lanes = a[i / 8 % 4];
    lanes = _mm256_fmadd_ps(v, v, lanes);
  }
  const float sum = tree32(a);
  if (!f32_is_finite(sum)) return false;
  const float mean = f32_div(sum, static_cast<float>(n));
  const float r = f32_div(1.0f, f32_sqrt(f32_add(mean, eps)));
  const __m256 scale = _mm256_set1_ps(r);
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 scaled = _mm256_mul_ps(load_padded(x + i, n - i), scale);
    store_first(y + i, n - i, _mm256_mul_ps(scaled, load_padded(weight + i, n - i)));
  }
  return true;
}

}  // namespace detrun::kernels::avx2
