// Greedy choice: ties, signed zeros, margin and log probability against the contract's own words.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "detrun/sampler.h"
#include "kernels/contract.h"
#include "kernels/cpu/avx2/choice.h"
#include "kernels/math.h"
#include "sampler/row.h"

using detrun::Choice;
using detrun::choose_greedy;
using detrun::first_non_finite_logit;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Choice choose(const std::vector<float>& logits) { return choose_greedy(logits); }
float margin(const Choice& choice) { return std::bit_cast<float>(choice.margin_bits); }

std::vector<float> random_logits(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> logits(n);
  for (float& x : logits) {
    x = static_cast<float>(static_cast<std::int32_t>(generator())) * 0x1p-27F;  // -16 .. 16
  }
  return logits;
}

/// The contract's words, in the slowest way: find the best and second by (value desc, id asc).
Choice by_the_book(const std::vector<float>& x) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (x[i] > x[best]) best = i;
  }
  float second = -kInf;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i != best && x[i] > second) second = x[i];
  }
  std::vector<float> terms;
  terms.reserve(x.size());
  for (const float value : x) terms.push_back(detrun::kernels::exp32(value - x[best]));
  const float log_sum = detrun::kernels::log32(detrun::kernels::sum32(terms.data(), terms.size()));
  return {static_cast<std::int32_t>(best), std::bit_cast<std::uint32_t>((x[best] - second) + 0.0F),
          std::bit_cast<std::uint32_t>((x[best] - x[best]) - log_sum)};
}

}  // namespace

TEST_CASE("the largest logit is chosen wherever it stands") {
  CHECK(choose({3.0F, 1.0F, 2.0F}).token == 0);
  CHECK(choose({1.0F, 3.0F, 2.0F}).token == 1);
  CHECK(choose({1.0F, 2.0F, 3.0F}).token == 2);
  CHECK(choose({-3.0F, -1.0F, -2.0F}).token == 1);
}

TEST_CASE("of equal logits the lowest id is chosen and the margin is zero") {
  CHECK(choose({1.0F, 5.0F, 5.0F, 5.0F}).token == 1);
  CHECK(margin(choose({1.0F, 5.0F, 5.0F})) == 0.0F);
  CHECK(choose({5.0F, 5.0F}).token == 0);
}

TEST_CASE("minus zero ties with zero") {
  CHECK(choose({-1.0F, -0.0F, 0.0F}).token == 1);
  CHECK(choose({-1.0F, 0.0F, -0.0F}).token == 1);
  CHECK(margin(choose({0.0F, -0.0F})) == 0.0F);
  // -0 - (+0) is -0: the margin adds +0, so that the order of equal logits does not show in it.
  CHECK(choose({-0.0F, 0.0F}).margin_bits == 0U);
  CHECK(choose({0.0F, -0.0F}).margin_bits == 0U);
}

TEST_CASE("the margin is the difference to the second largest, wherever that stands") {
  CHECK(margin(choose({4.0F, 1.0F, 3.5F})) == 0.5F);
  CHECK(margin(choose({3.5F, 1.0F, 4.0F})) == 0.5F);
  CHECK(margin(choose({1.0F, 4.0F, 3.5F, 2.0F})) == 0.5F);
  CHECK(margin(choose({-0x1p125F, -0x1p126F})) == 0x1p125F);
  CHECK(margin(choose({3e38F, -3e38F})) == kInf);
}

TEST_CASE("a vocabulary of one token is certain") {
  const Choice choice = choose({-7.25F});
  CHECK(choice.token == 0);
  CHECK(margin(choice) == kInf);
  CHECK(choice.logprob_bits == 0U);
}

TEST_CASE("two equal logits have probability one half") {
  CHECK(choose({9.0F, 9.0F}).logprob_bits == 0xbf317218U);  // -ln 2 to the nearest binary32
}

TEST_CASE("choice, margin and log probability are the contract's, bit for bit") {
  for (const std::size_t n : {2U, 31U, 32U, 33U, 64U, 512U, 1000U, 32000U}) {
    const std::vector<float> logits = random_logits(n, static_cast<unsigned>(n));
    const Choice expected = by_the_book(logits);
    const Choice found = choose(logits);
    CAPTURE(n);
    CHECK(found.token == expected.token);
    CHECK(found.margin_bits == expected.margin_bits);
    CHECK(found.logprob_bits == expected.logprob_bits);
  }
}

TEST_CASE("rows of every small length and any spread give the contract's bits") {
  // Spreads on both sides of exp's way into the subnormal numbers, and beyond its range.
  for (const float spread : {0.0F, 0.5F, 5.3F, 5.4F, 6.4F, 6.6F, 100.0F, 0x1p100F}) {
    for (std::size_t n = 1; n <= 70; ++n) {
      std::vector<float> logits = random_logits(n, static_cast<unsigned>(n));
      for (float& x : logits) x *= spread;
      const Choice expected = by_the_book(logits);
      const Choice found = choose(logits);
      CAPTURE(n);
      CAPTURE(spread);
      CHECK(found.token == expected.token);
      CHECK(found.margin_bits == expected.margin_bits);
      CHECK(found.logprob_bits == expected.logprob_bits);
    }
  }
}

#if defined(DETRUN_HAVE_AVX2)
TEST_CASE("a sum of nothing but subnormal terms has the contract's bits") {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
  for (const float least : {-85.5F, -86.0F, -86.5F, -87.5F, -95.0F, -103.0F, -104.5F}) {
    std::vector<float> x(333, least);
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] = least * 0.99F;
    std::vector<float> terms;
    for (const float value : x) terms.push_back(detrun::kernels::exp32(value));
    const float sum = detrun::kernels::avx2::sum_of_exp(x.data(), x.size(), 0.0F, least);
    CAPTURE(least);
    CHECK(std::bit_cast<std::uint32_t>(sum) ==
          std::bit_cast<std::uint32_t>(detrun::kernels::sum32(terms.data(), terms.size())));
  }
}
#endif

TEST_CASE("the two largest are found at every pair of places") {
  constexpr std::size_t kN = 45;
  for (std::size_t best = 0; best < kN; ++best) {
    for (std::size_t second = 0; second < kN; ++second) {
      std::vector<float> logits(kN, -2.0F);
      logits[second] = 1.0F;
      logits[best] = best == second ? 1.0F : 1.5F;
      const detrun::TopTwo top = detrun::find_top_two(logits);
      CHECK(top.best == best);
      CHECK(top.second == (best == second ? -2.0F : 1.0F));
      CHECK(top.least == -2.0F);
      logits[best] = 1.0F;  // a tie: the first of both
      CHECK(detrun::find_top_two(logits).best == std::min(best, second));
      CHECK(detrun::find_top_two(logits).second == (best == second ? -2.0F : 1.0F));
    }
  }
}

TEST_CASE("a logit that is not finite is found at every place of every length") {
  for (const float bad : {kInf, -kInf, std::nanf("")}) {
    for (std::size_t n = 1; n <= 40; ++n) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> logits(n, -1.0F);
        logits[at] = bad;
        CHECK(first_non_finite_logit(logits) == static_cast<std::int64_t>(at));
        CHECK_FALSE(detrun::scan_row(logits));
      }
    }
  }
}

TEST_CASE("the log probability is close to the one computed in binary64 by the C library") {
  const std::vector<float> logits = random_logits(5000, 7);
  const Choice found = choose(logits);
  double sum = 0;
  const double top = logits[static_cast<std::size_t>(found.token)];
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  // Binary32 sum of 5000 positive terms in 32 chains: about 160 roundings, 1e-5 relative at most.
  CHECK(std::fabs(std::bit_cast<float>(found.logprob_bits) + std::log(sum)) < 1e-5);
}

TEST_CASE("differences below the range of exp count as zero") {
  CHECK(choose({0.0F, -1000.0F, -3e38F}).logprob_bits == 0U);
}

TEST_CASE("the first logit that is not finite is found") {
  CHECK_FALSE(first_non_finite_logit(std::vector<float>{1.0F, -3e38F, 0.0F}));
  CHECK(first_non_finite_logit(std::vector<float>{1.0F, std::nanf(""), kInf}) == 1);
  CHECK(first_non_finite_logit(std::vector<float>{-kInf}) == 0);
  CHECK(first_non_finite_logit(std::vector<float>{0.0F, 0.0F, kInf}) == 2);
  CHECK_FALSE(first_non_finite_logit({}));
}
