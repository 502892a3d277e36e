// RMSNorm: contract clause 5. The 32 canonical lanes are four registers.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr int kRegs = 4;
constexpr std::uint64_t kStep = 8 * kRegs;

/// S32 of the squares. The registers are named by constants: behind a variable index g++ would keep
/// them in memory.
float sum_of_squares(const float* x, std::uint64_t n) {
  __m256 a[kRegs];
  for (auto& v : a) v = _mm256_setzero_ps();
  std::uint64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 4
    for (int r = 0; r < kRegs; ++r) {
      const __m256 v = _mm256_loadu_ps(x + i + 8 * static_cast<std::uint64_t>(r));
      a[r] = _mm256_fmadd_ps(v, v, a[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRegs; ++r, i += 8) {
    if (i >= n) break;
    const __m256 v = load_padded(x + i, n - i);
    a[r] = _mm256_fmadd_ps(v, v, a[r]);
  }
  return tree32(a);
}

}  // namespace

bool rmsnorm(const float* x, const float* weight, float eps, std::uint64_t n, float* y) {
  const float sum = sum_of_squares(x, n);
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
