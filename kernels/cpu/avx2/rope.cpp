// Rotary position embedding: contract clause 8. y0 = fma(-x1, s, x0*c), y1 = fma(x0, s, x1*c); the
// product of -x1 and s is the product of x1 and -s, so signs may sit on either factor.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

void rope_adjacent(const RopeArgs* args) {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  const __m256 minus_even = _mm256_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f);
  const std::uint32_t n_pairs = args->rope_dim / 2;
  for (std::uint32_t h = 0; h < args->n_heads; ++h) {
    float* x = args->x + std::uint64_t{h} * args->head_dim;
    for (std::uint32_t i = 0; i < n_pairs; i += 4) {
      const std::uint64_t left = n_pairs - i;
      const __m256 c =
          _mm256_permutevar8x32_ps(load_padded(args->cos + i, left < 4 ? left : 4), twice);
      const __m256 s =
          _mm256_permutevar8x32_ps(load_padded(args->sin + i, left < 4 ? left : 4), twice);
      const __m256 v = load_padded(x + 2 * i, 2 * left);
      const __m256 swapped = _mm256_permute_ps(v, 0xb1);
      const __m256 y = _mm256_fmadd_ps(swapped, _mm256_xor_ps(s, minus_even), _mm256_mul_ps(v, c));
      store_first(x + 2 * i, 2 * left, y);
    }
  }
}

void rope_halves(const RopeArgs* args) {
  const std::uint32_t half = args->rope_dim / 2;
  for (std::uint32_t h = 0; h < args->n_heads; ++h) {
    float* x = args->x + std::uint64_t{h} * args->head_dim;
    for (std::uint32_t i = 0; i < half; i += 8) {
      const std::uint64_t left = half - i;
      const __m256 c = load_padded(args->cos + i, left);
      const __m256 s = load_padded(args->sin + i, left);
      const __m256 x0 = load_padded(x + i, left);
      const __m256 x1 = load_padded(x + half + i, left);
      store_first(x + i, left, _mm256_fnmadd_ps(x1, s, _mm256_mul_ps(x0, c)));
      store_first(x + half + i, left, _mm256_fmadd_ps(x0, s, _mm256_mul_ps(x1, c)));
    }
  }
}

}  // namespace detrun::kernels::avx2
