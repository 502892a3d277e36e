// The peaks of AVX2 and FMA. See kernels/cpu/ceilings.h.
#include "kernels/cpu/ceilings.h"

#include <immintrin.h>

namespace detrun::kernels::avx2 {
namespace {

constexpr int kChains = 12;  // latency 4, two units: 8 would do, more hide the loop

std::uint64_t read(const void* base, std::uint64_t n_bytes) {
  constexpr std::uint64_t kUnit = kCeilingStreams * kCeilingStreamBytes;
  const auto* bytes = static_cast<const char*>(base);
  __m256i sum[4];
  for (__m256i& part : sum) part = _mm256_setzero_si256();
  for (std::uint64_t unit = 0; unit < n_bytes; unit += kUnit) {
    for (std::uint64_t i = 0; i < kCeilingStreamBytes; i += 128) {
      for (std::uint64_t s = 0; s < kCeilingStreams; ++s) {
        const char* at = bytes + unit + s * kCeilingStreamBytes + i;
        for (int j = 0; j < 4; ++j) {
          const auto* vector = static_cast<const __m256i*>(static_cast<const void*>(at + 32 * j));
          sum[j] = _mm256_xor_si256(sum[j], _mm256_load_si256(vector));
        }
      }
    }
  }
  const __m256i all =
      _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
  return static_cast<std::uint64_t>(_mm256_extract_epi64(all, 0) ^ _mm256_extract_epi64(all, 1) ^
                                    _mm256_extract_epi64(all, 2) ^ _mm256_extract_epi64(all, 3));
}

float fma(std::uint64_t rounds) {
  __m256 x = _mm256_set1_ps(0.5F);
  const __m256 y = _mm256_set1_ps(0.25F);
  __m256 chain[kChains];
  for (__m256& part : chain) part = _mm256_setzero_ps();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (__m256& part : chain) part = _mm256_fmadd_ps(x, y, part);
    asm volatile("" : "+x"(x));  // nothing of the next round can be known in this one
  }
  for (int i = 1; i < kChains; ++i) chain[0] = _mm256_add_ps(chain[0], chain[i]);
  return _mm256_cvtss_f32(chain[0]);
}

std::int32_t int8(std::uint64_t rounds) {
  __m256i x = _mm256_set1_epi8(3);
  const __m256i y = _mm256_set1_epi8(5);
  const __m256i one = _mm256_set1_epi16(1);
  __m256i chain[kChains];
  for (__m256i& part : chain) part = _mm256_setzero_si256();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (__m256i& part : chain) {
      asm volatile("" : "+x"(x));  // each product is made, not kept from the one before
      const __m256i pairs = _mm256_maddubs_epi16(x, y);
      part = _mm256_add_epi32(part, _mm256_madd_epi16(pairs, one));
    }
  }
  for (int i = 1; i < kChains; ++i) chain[0] = _mm256_add_epi32(chain[0], chain[i]);
  return _mm256_extract_epi32(chain[0], 0);
}

}  // namespace

const CeilingOps kCeilings = {"avx2", read, fma, 2 * 8 * kChains, int8, 2 * 32 * kChains};

}  // namespace detrun::kernels::avx2
