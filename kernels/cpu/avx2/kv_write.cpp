// K and V into the cache: contract clause 7.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

bool kv_write_f16(const float* x, std::uint64_t n, std::uint16_t* out) {
  __m256i largest = _mm256_setzero_si256();
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 v = load_padded(x + i, n - i);
    largest = _mm256_max_epu32(largest, magnitude_bits(v));
    const __m128i half = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (n - i >= 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), half);
    } else {
      alignas(16) std::uint16_t rest[8];
      _mm_store_si128(reinterpret_cast<__m128i*>(rest), half);
      std::memcpy(out + i, rest, (n - i) * sizeof rest[0]);
    }
  }
  return max_lane_u32(largest) < kF16OverflowBits;
}

bool kv_write_f32(const float* x, std::uint64_t n, float* out) {
  __m256i largest = _mm256_setzero_si256();
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 v = load_padded(x + i, n - i);
    largest = _mm256_max_epu32(largest, magnitude_bits(v));
    store_first(out + i, n - i, v);
  }
  return max_lane_u32(largest) < kInfBits;
}

}  // namespace detrun::kernels::avx2
