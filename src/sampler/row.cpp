// The passes over a row of logits, contract clause 11, in plain C++: the reference. Where the CPU
// has AVX2 its kernels do the same, but only after they gave the reference's bits in this process.
#include "sampler/row.h"

#include <array>
#include <limits>

#include "kernels/contract.h"
#include "kernels/math.h"

#if defined(DETRUN_HAVE_AVX2)
#include "kernels/cpu/avx2/choice.h"
#endif

namespace detrun {
namespace {

/// The largest logit's first place and the second largest, by the contract's words.
TopTwo plain_top_two(std::span<const float> x) {
  // One pass for both: `>` keeps the lowest id on ties, and takes -0 and +0 for equal.
  TopTwo top = {0, -std::numeric_limits<float>::infinity(), x[0]};
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (x[i] > x[top.best]) {
      top.second = x[top.best];
      top.best = i;
    } else if (x[i] > top.second) {
      top.second = x[i];
    }
    if (x[i] < top.least) top.least = x[i];
  }
  return top;
}

std::optional<std::size_t> plain_first_non_finite(std::span<const float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!kernels::f32_is_finite(x[i])) return i;
  }
  return std::nullopt;
}

/// S32(exp(x_i - m)): the lanes of sum32, with the terms computed as they are added.
float plain_sum_of_exp(std::span<const float> x, float m) {
  float lanes[kernels::kSumLanes] = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    float& lane = lanes[i % kernels::kSumLanes];
    lane = kernels::f32_add(lane, kernels::exp32(kernels::f32_sub(x[i], m)));
  }
  return kernels::tree_sum<kernels::kSumLanes>(lanes);
}

#if defined(DETRUN_HAVE_AVX2)
namespace fast = kernels::avx2;

/// Both on a row of several registers and a rest, whose smallest element is `least` below the
/// largest: every exponent that occurs, both ways of scaling.
bool gives_same_bits(float least) {
  std::array<float, 219> x{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto mixed = static_cast<float>((i * 2654435761U) % 1009U);
    x.at(i) = kernels::f32_add(kernels::f32_mul(mixed, least / 1008.0F), 1.25F);
  }
  const std::span<const float> row = x;
  const TopTwo top = plain_top_two(row);
  const fast::RowScan scan = fast::scan_row(row.data(), row.size());
  const float sum = plain_sum_of_exp(row, row[top.best]);
  if (!scan.finite || scan.best != top.best || !fast::row_is_finite(row.data(), row.size()) ||
      kernels::f32_bits(scan.second) != kernels::f32_bits(top.second) ||
      kernels::f32_bits(scan.least) != kernels::f32_bits(top.least) ||
      kernels::f32_bits(sum) !=
          kernels::f32_bits(fast::sum_of_exp(row.data(), row.size(), row[top.best], top.least))) {
    return false;
  }
  for (const std::size_t at : {std::size_t{0}, std::size_t{17}, x.size() - 1}) {
    const float before = x.at(at);
    x.at(at) = kernels::f32_from_bits(kernels::kInfBits);
    if (fast::scan_row(x.data(), x.size()).finite || fast::row_is_finite(x.data(), x.size())) {
      return false;
    }
    x.at(at) = before;
  }
  return true;
}

bool cpu_is_fast() {
  static const bool sound = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                            gives_same_bits(-20.0F) && gives_same_bits(-150.0F);
  return sound;
}
#endif

}  // namespace

std::optional<std::size_t> first_non_finite(std::span<const float> x) {
#if defined(DETRUN_HAVE_AVX2)
  if (cpu_is_fast() && fast::row_is_finite(x.data(), x.size())) return std::nullopt;
#endif
  return plain_first_non_finite(x);
}

std::optional<TopTwo> scan_row(std::span<const float> x) {
#if defined(DETRUN_HAVE_AVX2)
  if (cpu_is_fast()) {
    const fast::RowScan scan = fast::scan_row(x.data(), x.size());
    if (!scan.finite) return std::nullopt;
    return TopTwo{static_cast<std::size_t>(scan.best), scan.second, scan.least};
  }
#endif
  if (plain_first_non_finite(x)) return std::nullopt;
  return plain_top_two(x);
}

float sum_of_exp(std::span<const float> x, const TopTwo& top) {
  const float m = x[top.best];
#if defined(DETRUN_HAVE_AVX2)
  if (cpu_is_fast()) return fast::sum_of_exp(x.data(), x.size(), m, top.least);
#endif
  return plain_sum_of_exp(x, m);
}

}  // namespace detrun
