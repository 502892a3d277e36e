// RoPE tables, contract clause 8. The one written form, in binary64 with our own functions:
//   inv_freq[i] = pow(theta, -(2 i) / rope_dim), divided by freq_factors[i] when there are any;
//   angle = position * inv_freq[i]; cos and sin of it, each rounded once to binary32.
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

std::vector<double> inverse_frequencies(const RopeTableSpec& spec) {
  if (!(spec.theta >= 1.0 && spec.theta <= kThetaMax)) {
    throw_usage("rope: the base frequency is " + std::to_string(spec.theta) +
                ", expected 1 to 1e30");
  }
  std::vector<double> inv_freq(spec.rope_dim / 2);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double exponent = -static_cast<double>(2 * i) / static_cast<double>(spec.rope_dim);
    inv_freq[i] = kernels::pow64(spec.theta, exponent);
    if (!spec.freq_factors.empty()) inv_freq[i] /= static_cast<double>(spec.freq_factors[i]);
  }
  return inv_freq;
}

}  // namespace

void make_rope_tables(const RopeTableSpec& spec, std::uint32_t n_positions, std::span<float> cos,
                      std::span<float> sin) {
  DETRUN_CHECK(spec.rope_dim % 2 == 0);
  const std::size_t n_pairs = spec.rope_dim / 2;
  DETRUN_CHECK(spec.freq_factors.empty() || spec.freq_factors.size() == n_pairs);
  DETRUN_CHECK(cos.size() == n_positions * n_pairs && sin.size() == cos.size());
  const FpControlScope fp_control;
  const std::vector<double> inv_freq = inverse_frequencies(spec);
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
      sin[position * n_pairs + i] = static_cast<float>(sin64);
      cos[position * n_pairs + i] = static_cast<float>(cos64);
    }
  }
}

}  // namespace detrun
