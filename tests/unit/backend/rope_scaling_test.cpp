// RoPE tables of models that stretch positions: linear scaling, YaRN and the attention factor,
// against an independent computation in long double and as frozen bits; refusals.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "detrun/backend.h"
#include "detrun/error.h"

namespace {

using namespace detrun;

constexpr auto kLinear = RopeScaling::kLinear;
constexpr auto kYarn = RopeScaling::kYarn;

struct Tables {
  std::vector<float> cos, sin;
};

Tables make(const RopeTableSpec& spec, std::uint32_t n_positions) {
  const std::size_t n = std::size_t{n_positions} * (spec.rope_dim / 2);
  Tables tables{std::vector<float>(n), std::vector<float>(n)};
  make_rope_tables(spec, n_positions, tables.cos, tables.sin);
  return tables;
}

std::uint32_t bits(float x) {
  std::uint32_t u;
  std::memcpy(&u, &x, sizeof u);
  return u;
}

/// The formulas of the YaRN paper in long double, by what they mean: how often a pair turns within
/// the original context says whether its frequency is kept, divided or between.
struct LongTables {
  std::vector<long double> inv_freq;
  long double magnitude;
};

LongTables in_long_double(const RopeTableSpec& spec) {
  const long double n = spec.rope_dim;
  const long double theta = spec.theta;
  const long double factor = spec.scaling_factor;
  LongTables tables{{}, spec.attention_factor};
  const auto pair_that_turns = [&](long double rotations) {
    return n * std::log(spec.original_context / (rotations * 2 * std::acos(-1.0L))) /
           (2 * std::log(theta));
  };
  for (std::uint32_t i = 0; i < spec.rope_dim / 2; ++i) {
    long double inv = 1 / std::pow(theta, 2 * i / n);
    if (!spec.freq_factors.empty()) inv /= static_cast<long double>(spec.freq_factors[i]);
    if (spec.scaling == kLinear) inv /= factor;
    if (spec.scaling == kYarn) {
      const long double low = std::max(0.0L, std::floor(pair_that_turns(spec.beta_fast)));
      const long double high = std::min(n - 1, std::ceil(pair_that_turns(spec.beta_slow)));
      long double divided = 0;  // the share of the stretched frequency
      if (i > low) divided = std::min(1.0L, (i - low) / std::max(0.001L, high - low));
      inv = divided * inv / factor + (1 - divided) * inv;
    }
    tables.inv_freq.push_back(inv);
  }
  if (spec.scaling == kYarn) tables.magnitude *= 1 + std::log(factor) / 10;
  return tables;
}

std::uint64_t fnv(const std::vector<float>& values, std::uint64_t hash) {
  for (const float v : values) hash = (hash ^ bits(v)) * 0x100000001b3ull;
  return hash;
}

struct ScalingCase {
  RopeTableSpec spec;
  std::uint64_t hash;  ///< FNV-1a over the bits of cos, then sin
};

const std::vector<ScalingCase>& scaling_cases() {
  static const std::vector<float> kFactors = {1.0f, 1.5f, 4.0f, 8.0f};
  static const std::vector<ScalingCase> kCases = {
      {{64, 10000.0, {}, kLinear, 4.0}, 0x1952de35c6a60b61ull},
      {{8, 500000.0, kFactors, kLinear, 2.5, 0, 0, 0, 1.25}, 0xa514bd671a5441e2ull},
      {{128, 1000000.0, {}, kYarn, 4.0, 32768.0}, 0xcb5430369f242317ull},
      {{64, 10000.0, {}, kYarn, 40.0, 4096.0, 32.0, 1.0, 0.75}, 0x3dc67180dd0c6dd4ull},
      {{8, 10000.0, kFactors, kYarn, 16.0, 2048.0, 16.0, 2.0}, 0xe6e20f2785f106adull},
      {{80, 10000.0, {}, kYarn, 1.0, 100.0, 1.0, 1.0},
       0xa874ab9b708d3277ull},  // low below high by one pair
      {{64, 150000.0, {}, kYarn, 32.0, 1e6, 1e-3, 1e-6},
       0x2c1f702137aac5d3ull},  // low beyond the last pair
      {{64, 10000.0, {}, kYarn, 2.0, 64.0, 1e4, 1e3},
       0xfcc38d56281fe884ull},  // high before the first pair
      {{64, 10000.0, {}, kYarn, 8.0, 1e6},
       0x54d23d3c54cd65daull},  // high between the last pair and n - 1
      {{64, 10000.0, {}, kYarn, 8.0, 1e9, 1e6}, 0x5b1f90ebf3ed7e02ull},  // high limited to n - 1
      {{64, 10000.0, {}, RopeScaling::kNone, 7.0, 0, 0, 0, 0.5}, 0x494a716a633912fcull},
  };
  return kCases;
}

TEST_CASE("linear scaling and YaRN agree with long double, and have the bits of version 1") {
  constexpr std::uint32_t kPositions = 96;
  std::size_t number = 0;
  for (const ScalingCase& c : scaling_cases()) {
    ++number;
    CAPTURE(number);
    const Tables tables = make(c.spec, kPositions);
    const LongTables expected = in_long_double(c.spec);
    const std::size_t n_pairs = expected.inv_freq.size();
    std::size_t n_equal = 0;
    for (std::size_t at = 0; at < tables.cos.size(); ++at) {
      const std::size_t position = at / n_pairs;
      const long double angle =
          static_cast<long double>(position) * expected.inv_freq[at % n_pairs];
      const auto cosine = static_cast<float>(std::cos(angle) * expected.magnitude);
      const auto sine = static_cast<float>(std::sin(angle) * expected.magnitude);
      n_equal += bits(tables.cos[at]) == bits(cosine) ? 1 : 0;
      n_equal += bits(tables.sin[at]) == bits(sine) ? 1 : 0;
    }
    CHECK(n_equal == 2 * tables.cos.size());
    CHECK(fnv(tables.sin, fnv(tables.cos, 0xcbf29ce484222325ull)) == c.hash);
  }
}

TEST_CASE("YaRN keeps the fast pairs, divides the slow ones and mixes those between") {
  const RopeTableSpec plain{128, 10000.0, {}};
  RopeTableSpec yarn{128, 10000.0, {}, kYarn, 8.0, 4096.0};
  yarn.attention_factor = 1.0 / (1.0 + 0.1 * std::log(8.0));  // takes the magnitude back
  const Tables a = make(plain, 2);
  const Tables b = make(yarn, 2);
  // Pair 20 turns 32 times within 4096 positions, pair 46 less than once. Position 1 shows the
  // frequencies.
  const auto ratio = [&](std::size_t i) {
    return std::asin(static_cast<double>(b.sin[64 + i])) /
           std::asin(static_cast<double>(a.sin[64 + i]));
  };
  for (std::size_t i = 1; i <= 20; ++i) CHECK(std::fabs(ratio(i) - 1.0) < 1e-6);
  for (std::size_t i = 46; i < 64; ++i) CHECK(std::fabs(ratio(i) - 0.125) < 1e-6);
  CHECK(std::fabs(ratio(33) - (1.0 - 13.0 / 26.0 * 0.875)) < 1e-6);
}

TEST_CASE("scalings no model can mean are refused by name") {
  const auto refused = [](const RopeTableSpec& spec, const std::string& name) {
    CAPTURE(name);
    try {
      make(spec, 2);
      FAIL("not refused");
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kUsage);
      CHECK(std::string(error.what()).find(name) != std::string::npos);
    }
  };
  for (const double bad : {0.0, -2.0, 1e11, std::nan("")}) {
    refused({4, 10000.0, {}, kLinear, bad}, "scaling factor");
    refused({4, 10000.0, {}, kYarn, bad, 4096.0}, "scaling factor");
    refused({4, 10000.0, {}, kYarn, 4.0, bad}, "original context");
    refused({4, 10000.0, {}, kYarn, 4.0, 4096.0, bad}, "beta_fast");
    refused({4, 10000.0, {}, kYarn, 4.0, 4096.0, 32.0, bad}, "beta_slow");
    refused({4, 10000.0, {}, RopeScaling::kNone, 1, 0, 0, 0, bad}, "attention factor");
  }
  refused({4, 10000.0, {}, kYarn, 0.5, 4096.0}, "scaling factor of YaRN");
  refused({4, 1.0, {}, kYarn, 4.0, 4096.0}, "base frequency of YaRN");
}

}  // namespace
