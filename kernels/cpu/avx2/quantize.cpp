// Activations to int8, 32 elements a scale: contract clause 2.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"
#include "kernels/cpu/quantized_row.h"

namespace detrun::kernels::avx2 {

namespace {

/// quantized_row_write_sums for q in a register.
inline void write_sums(const QuantizedRowOut& row, std::uint64_t b, __m256i q) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  sums = _mm256_hadd_epi32(sums, sums);
  sums = _mm256_hadd_epi32(sums, sums);  // each 128-bit lane holds the sum of its sixteen
  const std::int32_t low = _mm256_extract_epi32(sums, 0);
  const std::int32_t high = _mm256_extract_epi32(sums, 4);
  row.b16[2 * b] = static_cast<std::int16_t>(low);
  row.b16[2 * b + 1] = static_cast<std::int16_t>(high);
  row.bx[b] = f32_mul(row.d[b], static_cast<float>(low + high));
}

}  // namespace

std::uint64_t quantized_row_bytes(std::uint64_t k) { return kernels::quantized_row_bytes(k); }

bool quantize(const float* x, std::uint64_t k, void* row) {
  const QuantizedRowOut out = quantized_row_out(row, k);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // undoes the packs' halves
  for (std::uint64_t b = 0; b < k / kActivationBlock; ++b) {
    __m256 v[4];
    for (int i = 0; i < 4; ++i) v[i] = _mm256_loadu_ps(x + b * kActivationBlock + 8 * i);
    const std::uint32_t largest = max_lane_u32(
        _mm256_max_epu32(_mm256_max_epu32(magnitude_bits(v[0]), magnitude_bits(v[1])),
                         _mm256_max_epu32(magnitude_bits(v[2]), magnitude_bits(v[3]))));
    if (largest >= kInfBits) return false;
    auto* q = reinterpret_cast<__m256i*>(out.q + b * kActivationBlock);
    if (largest < kZeroBlockBits) {
      out.d[b] = 0.0f;
      _mm256_storeu_si256(q, _mm256_setzero_si256());
      write_sums(out, b, _mm256_setzero_si256());
      continue;
    }
    const float amax = f32_from_bits(largest);
    out.d[b] = f32_div(amax, 127.0f);
    const __m256 inverse = _mm256_set1_ps(f32_div(127.0f, amax));
    __m256i n[4];
    for (int i = 0; i < 4; ++i) {
      n[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));  // nearest even, as MXCSR says
      n[i] = _mm256_min_epi32(n[i], _mm256_set1_epi32(kActivationMax));
      n[i] = _mm256_max_epi32(n[i], _mm256_set1_epi32(-kActivationMax));
    }
    const __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
    const __m256i in_order = _mm256_permutevar8x32_epi32(bytes, order);
    _mm256_storeu_si256(q, in_order);
    write_sums(out, b, in_order);
  }
  return true;
}

}  // namespace detrun::kernels::avx2
