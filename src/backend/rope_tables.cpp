// RoPE tables, contract clause 8. The one written form, in binary64 with our own functions:
//   inv_freq[i] = pow(theta, -(2 i) / rope_dim), divided by freq_factors[i] when there are any,
//   stretched by linear scaling or YaRN; angle = position * inv_freq[i]; cos and sin of it, times
//   the magnitude, each rounded once to binary32.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "detrun/backend.h"
#include "detrun/error.h"
#include "kernels/math64.h"

namespace detrun {
namespace {

// Wider than any real model, narrow enough for pow64 and sincos64 to be good.
constexpr double kThetaMax = 1e30;
constexpr double kAngleMax = 4294967296.0;  // 2^32
constexpr double kOrdinaryMax = 1e10;
constexpr double kTwoPi = 6.283185307179586;

void check(bool good, std::string_view name, double value, std::string_view expected) {
  if (good) return;
  throw_usage("rope: " + std::string(name) + " is " + std::to_string(value) + ", expected " +
              std::string(expected));
}

/// Finite, positive, and so far from the ends of binary64 that nothing computed from it overflows.
bool is_ordinary(double value) { return value >= 1e-6 && value <= kOrdinaryMax; }

void check_spec(const RopeTableSpec& spec) {
  check(spec.theta >= 1.0 && spec.theta <= kThetaMax, "the base frequency", spec.theta,
        "1 to 1e30");
  check(is_ordinary(spec.attention_factor), "the attention factor", spec.attention_factor,
        "1e-6 to 1e10");
  if (spec.scaling == RopeScaling::kNone) return;
  check(is_ordinary(spec.scaling_factor), "the scaling factor", spec.scaling_factor,
        "1e-6 to 1e10");
  if (spec.scaling == RopeScaling::kLinear) return;
  check(spec.scaling_factor >= 1.0, "the scaling factor of YaRN", spec.scaling_factor, "1 or more");
  check(spec.theta > 1.0, "the base frequency of YaRN", spec.theta, "more than 1");
  check(spec.original_context >= 1.0 && spec.original_context <= kOrdinaryMax,
        "the original context of YaRN", spec.original_context, "1 to 1e10");
  check(is_ordinary(spec.beta_fast), "beta_fast of YaRN", spec.beta_fast, "1e-6 to 1e10");
  check(is_ordinary(spec.beta_slow), "beta_slow of YaRN", spec.beta_slow, "1e-6 to 1e10");
}

/// The pairs below low keep their frequency, from low + width on it is divided by F, linear
/// between.
struct YarnRamp {
  double low, width;
};

YarnRamp yarn_ramp(const RopeTableSpec& spec) {
  const double n = static_cast<double>(spec.rope_dim);
  const auto pair_of = [&](double rotations) {  // the pair that turns so often in the context
    return n * kernels::log64(spec.original_context / (rotations * kTwoPi)) /
           (2.0 * kernels::log64(spec.theta));
  };
  const double low = std::max(0.0, std::floor(pair_of(spec.beta_fast)));
  const double high = std::min(n - 1.0, std::ceil(pair_of(spec.beta_slow)));
  return {low, std::max(0.001, high - low)};
}

std::vector<double> inverse_frequencies(const RopeTableSpec& spec) {
  const bool yarn = spec.scaling == RopeScaling::kYarn;
  const YarnRamp ramp = yarn ? yarn_ramp(spec) : YarnRamp{};
  std::vector<double> inv_freq(spec.rope_dim / 2);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double exponent = -static_cast<double>(2 * i) / static_cast<double>(spec.rope_dim);
    double inv = kernels::pow64(spec.theta, exponent);
    if (!spec.freq_factors.empty()) inv /= static_cast<double>(spec.freq_factors[i]);
    if (spec.scaling == RopeScaling::kLinear) inv /= spec.scaling_factor;
    if (yarn) {
      const double at = (static_cast<double>(i) - ramp.low) / ramp.width;
      const double kept = 1.0 - std::min(1.0, std::max(0.0, at));
      inv = inv / spec.scaling_factor * (1.0 - kept) + inv * kept;
    }
    inv_freq[i] = inv;
  }
  return inv_freq;
}

double magnitude(const RopeTableSpec& spec) {
  if (spec.scaling != RopeScaling::kYarn) return spec.attention_factor;
  return spec.attention_factor * (1.0 + 0.1 * kernels::log64(spec.scaling_factor));
}

}  // namespace

void make_rope_tables(const RopeTableSpec& spec, std::uint32_t n_positions, std::span<float> cos,
                      std::span<float> sin) {
  DETRUN_CHECK(spec.rope_dim % 2 == 0);
  const std::size_t n_pairs = spec.rope_dim / 2;
  DETRUN_CHECK(spec.freq_factors.empty() || spec.freq_factors.size() == n_pairs);
  DETRUN_CHECK(cos.size() == n_positions * n_pairs && sin.size() == cos.size());
  check_spec(spec);
  const FpControlScope fp_control;
  const std::vector<double> inv_freq = inverse_frequencies(spec);
  const double mscale = magnitude(spec);
  for (std::size_t i = 0; i < n_pairs; ++i) {
    const double last = static_cast<double>(n_positions) * inv_freq[i];
    if (!(last > -kAngleMax && last < kAngleMax)) {
      throw_usage("rope: frequency factor " + std::to_string(i) +
                  " is zero, not finite or far too small");
    }
  }
  for (std::uint32_t position = 0; position < n_positions; ++position) {
    for (std::size_t i = 0; i < n_pairs; ++i) {
      double sin64;
      double cos64;
      kernels::sincos64(static_cast<double>(position) * inv_freq[i], &sin64, &cos64);
      sin[position * n_pairs + i] = static_cast<float>(sin64 * mscale);
      cos[position * n_pairs + i] = static_cast<float>(cos64 * mscale);
    }
  }
}

}  // namespace detrun
