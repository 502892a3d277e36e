// Elementwise operators: contract clauses 4 and 10.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

void silu_mul(float* gate, const float* up, std::uint64_t n) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 g = load_padded(gate + i, n - i);
    const __m256 silu = _mm256_div_ps(g, _mm256_add_ps(one, exp8(_mm256_xor_ps(g, sign))));
    store_first(gate + i, n - i, _mm256_mul_ps(silu, load_padded(up + i, n - i)));
  }
}

void add(float* x, const float* y, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 sum = _mm256_add_ps(load_padded(x + i, n - i), load_padded(y + i, n - i));
    store_first(x + i, n - i, sum);
  }
}

void exp(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    store_first(y + i, n - i, exp8(load_padded(x + i, n - i)));
  }
}

}  // namespace detrun::kernels::avx2
