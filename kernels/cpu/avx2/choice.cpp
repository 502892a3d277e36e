// One row of logits: contract clause 11. Largest and second largest are exact, so their order is
// free; the sum of exponentials has the 32 canonical lanes of S32 in four registers.
#include "kernels/cpu/avx2/choice.h"

#include "kernels/cpu/avx2/functions.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr int kRegs = kSumLanes / 8;
constexpr std::uint64_t kStep = kSumLanes;

/// From this difference down exp leaves the normal numbers of binary32 (exp(-86) > 2^-125): its
/// scale needs two steps there.
constexpr float kDeepest = -86.0f;

/// exp32 for -86 <= x <= 0. There no clamp of exp32 acts, and 2^k times the polynomial is a normal
/// number, so that k may be added to its exponent: the same bits with half the operations.
inline __m256 exp8_shallow(__m256 x) {
  const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(kLog2e), _mm256_set1_ps(kRoundMagic));
  const __m256 n = _mm256_add_ps(t, _mm256_set1_ps(-kRoundMagic));
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), r);
  const __m256 p = horner8({kExp6, kExp5, kExp4, kExp3, 0.5f, 1.0f, 1.0f}, r);
  // The low nine bits of kRoundMagicBits are zero: what the shift leaves of t is k alone.
  static_assert((kRoundMagicBits & 0x1ffu) == 0);
  const __m256i k = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), k));
}

template <__m256 (*Exp)(__m256)>
float sum_of_exp_by(const float* x, std::uint64_t n, __m256 m) {
  __m256 a[kRegs];
  for (__m256& lanes : a) lanes = _mm256_setzero_ps();
  std::uint64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 4
    for (int r = 0; r < kRegs; ++r) {
      const __m256 v = _mm256_loadu_ps(x + i + 8 * static_cast<std::uint64_t>(r));
      a[r] = _mm256_add_ps(a[r], Exp(_mm256_sub_ps(v, m)));
    }
  }
  for (int r = 0; i < n; i += 8, ++r) {
    const std::uint64_t left = n - i;
    __m256 term = Exp(_mm256_sub_ps(load_padded(x + i, left), m));
    // A lane without an element gets +0 added: S32's lanes are never -0, so nothing changes.
    if (left < 8) term = _mm256_and_ps(term, _mm256_castsi256_ps(first_lanes(left)));
    a[r] = _mm256_add_ps(a[r], term);
  }
  return tree32(a);
}

float max_lane(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  m = _mm_max_ss(m, _mm_shuffle_ps(m, m, 1));
  return _mm_cvtss_f32(m);
}

float min_lane(__m256 v) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const float largest = max_lane(_mm256_xor_ps(v, sign));
  return -largest;
}

/// What a run of elements showed so far, lane by lane.
struct Extremes {
  __m256 largest, second, least;
  __m256i magnitude;

  void take(__m256 v) {
    second = _mm256_max_ps(second, _mm256_min_ps(largest, v));
    largest = _mm256_max_ps(largest, v);
    least = _mm256_min_ps(least, v);
    magnitude = _mm256_max_epu32(magnitude, magnitude_bits(v));
  }
  /// The extremes of both.
  void merge(const Extremes& other) {
    second =
        _mm256_max_ps(_mm256_max_ps(second, other.second), _mm256_min_ps(largest, other.largest));
    largest = _mm256_max_ps(largest, other.largest);
    least = _mm256_min_ps(least, other.least);
    magnitude = _mm256_max_epu32(magnitude, other.magnitude);
  }
};

/// Index of the first element equal to `value`; there is one.
std::uint64_t first_equal(const float* x, std::uint64_t n, float value) {
  const __m256 wanted = _mm256_set1_ps(value);
  for (std::uint64_t i = 0;; i += 8) {
    const std::uint64_t left = n - i;
    const __m256 equal = _mm256_cmp_ps(load_padded(x + i, left), wanted, _CMP_EQ_OQ);
    auto found = static_cast<unsigned>(_mm256_movemask_ps(equal));
    if (left < 8) found &= (1u << left) - 1;
    if (found != 0) return i + static_cast<std::uint64_t>(__builtin_ctz(found));
  }
}

}  // namespace

RowScan scan_row(const float* x, std::uint64_t n) {
  const __m256 minus_inf = all_bits(0xff800000u);
  const Extremes none = {minus_inf, minus_inf, all_bits(kInfBits), _mm256_setzero_si256()};
  Extremes e[2] = {none, none};
  std::uint64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    e[0].take(_mm256_loadu_ps(x + i));
    e[1].take(_mm256_loadu_ps(x + i + 8));
  }
  for (; i + 8 <= n; i += 8) e[0].take(_mm256_loadu_ps(x + i));
  e[0].merge(e[1]);
  alignas(32) float largest[8];
  alignas(32) float second[8];
  _mm256_store_ps(largest, e[0].largest);
  _mm256_store_ps(second, e[0].second);
  RowScan scan = {0, second[0], min_lane(e[0].least), max_lane_u32(e[0].magnitude) < kInfBits};
  float best = largest[0];
  const auto take = [&](float v) {
    if (v > best) {
      scan.second = best;
      best = v;
    } else if (v > scan.second) {
      scan.second = v;
    }
  };
  for (int lane = 1; lane < 8; ++lane) {
    take(largest[lane]);
    take(second[lane]);
  }
  for (; i < n; ++i) {
    take(x[i]);
    if (x[i] < scan.least) scan.least = x[i];
    scan.finite = scan.finite && f32_is_finite(x[i]);
  }
  if (scan.finite) scan.best = first_equal(x, n, best);
  return scan;
}

bool row_is_finite(const float* x, std::uint64_t n) {
  __m256i a[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (std::uint64_t i = 0; i < n; i += 16) {
    a[0] = _mm256_max_epu32(a[0], magnitude_bits(load_padded(x + i, n - i)));
    if (n - i > 8) a[1] = _mm256_max_epu32(a[1], magnitude_bits(load_padded(x + i + 8, n - i - 8)));
  }
  return max_lane_u32(_mm256_max_epu32(a[0], a[1])) < kInfBits;
}

float sum_of_exp(const float* x, std::uint64_t n, float m, float least) {
  const __m256 shift = _mm256_set1_ps(m);
  return f32_sub(least, m) >= kDeepest ? sum_of_exp_by<exp8_shallow>(x, n, shift)
                                       : sum_of_exp_by<exp8>(x, n, shift);
}

}  // namespace detrun::kernels::avx2
