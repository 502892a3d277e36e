// LayerNorm: contract clause 5. The 32 canonical lanes are four registers; a missing element of the
// last register is +0, so it has to be masked again after the mean is subtracted.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

bool layernorm(const float* x, const float* weight, const float* bias, float eps, std::uint64_t n,
               float* y) {
  __m256 a[4];
  for (auto& v : a) v = _mm256_setzero_ps();
  for (std::uint64_t i = 0; i < n; i += 8) {
    __m256& lanes = a[i / 8 % 4];
    lanes = _mm256_add_ps(lanes, load_padded(x + i, n - i));
  }
  const __m256 mean = _mm256_set1_ps(f32_div(tree32(a), static_cast<float>(n)));
  for (auto& v : a) v = _mm256_setzero_ps();
  for (std::uint64_t i = 0; i < n; i += 8) {
    __m256 c = _mm256_sub_ps(load_padded(x + i, n - i), mean);
    if (n - i < 8) c = _mm256_and_ps(c, _mm256_castsi256_ps(first_lanes(n - i)));
    __m256& lanes = a[i / 8 % 4];
    lanes = _mm256_fmadd_ps(c, c, lanes);
  }
  const float sum = tree32(a);
  if (!f32_is_finite(sum)) return false;
  const float variance = f32_div(sum, static_cast<float>(n));
  const float r = f32_div(1.0f, f32_sqrt(f32_add(variance, eps)));
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 c = _mm256_sub_ps(load_padded(x + i, n - i), mean);
    const __m256 scaled = _mm256_mul_ps(c, _mm256_set1_ps(r));
    __m256 out = _mm256_mul_ps(scaled, load_padded(weight + i, n - i));
    if (bias != nullptr) out = _mm256_add_ps(out, load_padded(bias + i, n - i));
    store_first(y + i, n - i, out);
  }
  return true;
}

}  // namespace detrun::kernels::avx2
