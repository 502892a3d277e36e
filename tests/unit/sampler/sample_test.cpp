// Sampled choice: the contract's words written anew in the slowest way, hand-computed cases of
// every filter and penalty, ties, refusals, and counts over many steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "detrun/sampler.h"
#include "kernels/contract.h"
#include "kernels/math.h"
#include "kernels/philox.h"

namespace {

using namespace detrun;
using kernels::exp32;
using kernels::log32;

using History = std::vector<std::int32_t>;

std::int32_t choose(const SamplerParams& params, const std::vector<float>& logits,
                    std::uint64_t step = 0, const History& history = {}) {
  Sampler sampler(params, static_cast<std::uint32_t>(logits.size()));
  return sampler.choose(logits, step, history).token;
}

/// The tokens of steps 0 .. n - 1.
std::vector<std::int32_t> choose_many(const SamplerParams& params, const std::vector<float>& logits,
                                      std::uint64_t n) {
  Sampler sampler(params, static_cast<std::uint32_t>(logits.size()));
  std::vector<std::int32_t> tokens;
  tokens.reserve(n);
  for (std::uint64_t step = 0; step < n; ++step) {
    tokens.push_back(sampler.choose(logits, step, {}).token);
  }
  return tokens;
}

std::set<std::int32_t> tokens_of(const SamplerParams& params, const std::vector<float>& logits,
                                 std::uint64_t n = 400) {
  const std::vector<std::int32_t> tokens = choose_many(params, logits, n);
  return {tokens.begin(), tokens.end()};
}

struct Candidate {
  std::int32_t id;
  float x;
};
using Candidates = std::vector<Candidate>;

std::vector<float> weights_of(const Candidates& c) {
  std::vector<float> e;
  float z = 0.0f;
  for (const Candidate& one : c) {
    e.push_back(exp32(one.x));
    z = z + e.back();
  }
  for (float& p : e) p = p / z;
  return e;
}

Candidates typical_by_the_book(const Candidates& c, float typical) {
  const std::vector<float> p = weights_of(c);
  std::vector<float> h;
  float entropy = 0.0f;
  for (const float v : p) {
    h.push_back(-log32(v));
    if (v > 0) entropy = std::fma(v, h.back(), entropy);
  }
  std::vector<std::size_t> order(c.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::fabs(h[a] - entropy) < std::fabs(h[b] - entropy);
  });
  std::set<std::size_t> kept = {0};
  float sum = 0.0f;
  for (const std::size_t rank : order) {
    kept.insert(rank);
    sum = sum + p[rank];
    if (sum >= typical) break;
  }
  Candidates out;
  for (const std::size_t rank : kept) out.push_back(c[rank]);
  return out;
}

/// The whole of clause 12 for logits after penalties.
std::int32_t by_the_book(const SamplerParams& params, const std::vector<float>& logits,
                         std::uint64_t step) {
  Candidates c;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    c.push_back({static_cast<std::int32_t>(i), logits[i]});
  }
  std::stable_sort(c.begin(), c.end(),
                   [](const Candidate& a, const Candidate& b) { return a.x > b.x; });
  const float m = c[0].x;
  for (Candidate& one : c) one.x = (one.x - m) / params.temperature;
  if (params.top_k != 0 && params.top_k < c.size()) c.resize(params.top_k);
  if (params.typical_p != 1.0f) c = typical_by_the_book(c, params.typical_p);
  if (params.top_p != 1.0f) {
    const std::vector<float> p = weights_of(c);
    float sum = 0.0f;
    for (std::size_t i = 0; i < c.size(); ++i) {
      sum = sum + p[i];
      if (sum >= params.top_p) c.resize(i + 1);
    }
  }
  if (params.min_p != 0.0f) {
    std::erase_if(c, [&](const Candidate& one) { return !(exp32(one.x) >= params.min_p); });
  }
  Candidate best{-1, 0.0f};
  for (const Candidate& one : c) {
    const float value =
        one.x + kernels::token_noise(params.seed, step, static_cast<std::uint32_t>(one.id));
    if (best.id < 0 || value > best.x || (value == best.x && one.id < best.id)) {
      best = {one.id, value};
    }
  }
  return best.id;
}

/// Values on a coarse grid, so that ties are common; now and then -0, and far outliers.
std::vector<float> rough_logits(std::size_t n, std::uint64_t seed) {
  std::vector<float> logits(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t words[4] = {static_cast<std::uint32_t>(i), 1, 2, 3};
    kernels::philox4x32(words, static_cast<std::uint32_t>(seed), 99);
    logits[i] = static_cast<float>(static_cast<std::int32_t>(words[0] % 64) - 32) * 0.125f;
    if (words[1] % 16 == 0) logits[i] = -0.0f;
    if (words[1] % 29 == 0) logits[i] = words[2] % 2 == 0 ? -1000.0f : -3e38f;
  }
  return logits;
}

SamplerParams hot(float temperature = 1.0f) {
  SamplerParams params;
  params.temperature = temperature;
  params.seed = 0x0123456789abcdefull;
  return params;
}

}  // namespace

TEST_CASE("temperature 0 is the greedy choice, whatever seed and filters say") {
  SamplerParams params;
  params.seed = 5;
  params.top_k = 1;
  params.min_p = 0.5f;
  const std::vector<float> logits = rough_logits(200, 1);
  Sampler sampler(params, 200);
  const Choice found = sampler.choose(logits, 3, {});
  const Choice expected = choose_greedy(logits);
  CHECK(found.token == expected.token);
  CHECK(found.margin_bits == expected.margin_bits);
  CHECK(found.logprob_bits == expected.logprob_bits);
  params.temperature = -0.0f;
  CHECK(choose(params, {-0.0f, 0.0f}) == 0);
}

TEST_CASE("a sampler keeps nothing from one choice to the next") {
  SamplerParams params = hot(0.7f);
  params.repeat_penalty = 1.3f;
  params.frequency_penalty = 0.2f;
  params.top_p = 0.9f;
  const std::vector<float> logits = rough_logits(300, 2);
  const History history = {5, 7, 5, 299, 0};
  Sampler used(params, 300);
  std::vector<std::int32_t> forward;
  for (std::uint64_t step = 0; step < 20; ++step) {
    forward.push_back(used.choose(logits, step, history).token);
  }
  for (std::uint64_t step = 20; step-- > 0;) {
    CHECK(used.choose(logits, step, history).token == forward[step]);
    CHECK(choose(params, logits, step, history) == forward[step]);
  }
}

TEST_CASE("penalties come before sampling, confidence is that of the logits as they were") {
  SamplerParams params = hot(0.8f);
  params.presence_penalty = 3.0f;
  const std::vector<float> logits = {1.0f, 4.0f, 3.5f, 0.0f};
  std::vector<float> penalized = logits;
  penalized[1] -= 3.0f;
  Sampler sampler(params, 4);
  for (std::uint64_t step = 0; step < 50; ++step) {
    const Choice choice = sampler.choose(logits, step, History{1, 1});
    CHECK(choice.token == by_the_book(params, penalized, step));
    CHECK(std::bit_cast<float>(choice.margin_bits) == 0.5f);
    std::vector<float> e;
    e.reserve(logits.size());
    for (const float x : logits) e.push_back(exp32(x - 4.0f));
    const float logprob = (logits[static_cast<std::size_t>(choice.token)] - 4.0f) -
                          log32(kernels::sum32(e.data(), 4));
    CHECK(choice.logprob_bits == std::bit_cast<std::uint32_t>(logprob));
  }
}

TEST_CASE("every combination of filters chooses as the contract's words do") {
  std::size_t n = 0;
  for (const std::uint32_t top_k : {0u, 1u, 5u, 40u, 1000u}) {
    for (const float typical : {1.0f, 0.95f, 0.3f, 0.0f}) {
      for (const float top_p : {1.0f, 0.9f, 0.2f, 0.0f}) {
        for (const float min_p : {0.0f, 0.05f, 1.0f}) {
          SamplerParams params = hot(n % 3 == 0 ? 0.6f : 1.7f);
          params.top_k = top_k;
          params.typical_p = typical;
          params.top_p = top_p;
          params.min_p = min_p;
          params.seed += n;
          const std::vector<float> logits = rough_logits(1 + n % 97, n);
          Sampler sampler(params, static_cast<std::uint32_t>(logits.size()));
          for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{n}}) {
            CAPTURE(n);
            CHECK(sampler.choose(logits, step, {}).token == by_the_book(params, logits, step));
          }
          ++n;
        }
      }
    }
  }
  CHECK(n == 240);
}

TEST_CASE("the ends of temperature: tiny takes the largest, huge takes the noise") {
  const std::vector<float> logits = {1.0f, 1.5f, -3e38f, 3e38f, 2.0f};
  CHECK(tokens_of(hot(1e-40f), logits) == std::set<std::int32_t>{3});
  // -3e38 - 3e38 is -infinity: id 2 has no chance at any temperature.
  CHECK(tokens_of(hot(3e38f), logits) == std::set<std::int32_t>{0, 1, 3, 4});
  // Equal largest logits stay equal at any temperature.
  CHECK(tokens_of(hot(1e-40f), {2.0f, 1.0f, 2.0f}) == std::set<std::int32_t>{0, 2});
}

TEST_CASE("top-k keeps the most probable, of equal ones the lowest ids") {
  SamplerParams params = hot(5.0f);
  params.top_k = 3;
  CHECK(tokens_of(params, {1.0f, 3.0f, 2.0f, 4.0f}) == std::set<std::int32_t>{1, 2, 3});
  CHECK(tokens_of(params, std::vector<float>(5, 2.0f)) == std::set<std::int32_t>{0, 1, 2});
  params.top_k = 2;
  CHECK(tokens_of(params, {-0.0f, 0.0f, 0.0f, -0.0f}) == std::set<std::int32_t>{0, 1});
}

TEST_CASE("top-p keeps up to and with the candidate that reaches it") {
  SamplerParams params = hot();
  const std::vector<float> quarters(4, 1.0f);
  params.top_p = 0.5f;
  CHECK(tokens_of(params, quarters) == std::set<std::int32_t>{0, 1});
  params.top_p = std::nextafter(0.5f, 1.0f);
  CHECK(tokens_of(params, quarters) == std::set<std::int32_t>{0, 1, 2});
  params.top_p = 0.0f;
  CHECK(tokens_of(params, quarters) == std::set<std::int32_t>{0});
}

TEST_CASE("min-p keeps the candidates with that share of the first one's weight") {
  SamplerParams params = hot(1.0f);
  params.min_p = exp32(-1.0f);
  CHECK(tokens_of(params, {0.0f, -1.0f, -1.01f}) == std::set<std::int32_t>{0, 1});
  params.min_p = 1.0f;
  CHECK(tokens_of(params, {3.0f, 3.0f, 2.9f}) == std::set<std::int32_t>{0, 1});
  // The weight is that after the temperature.
  params.min_p = exp32(-0.5f);
  params.temperature = 2.0f;
  CHECK(tokens_of(params, {0.0f, -1.0f, -1.01f}) == std::set<std::int32_t>{0, 1});
}

TEST_CASE("typical keeps what is about as surprising as the average, and the first candidate") {
  // 0.4 for id 0 and 0.01 for sixty others: entropy 3.13, surprises 0.92 and 4.61, so that the
  // sixty are nearer. They come in the order of their ids.
  std::vector<float> logits(61, 0.0f);
  logits[0] = log32(40.0f);
  SamplerParams params = hot();
  params.typical_p = 0.0395f;
  CHECK(tokens_of(params, logits, 3000) == std::set<std::int32_t>{0, 1, 2, 3, 4});
  params.typical_p = 0.0f;
  CHECK(tokens_of(params, logits, 3000) == std::set<std::int32_t>{0, 1});
  // With everything equal, the order of the candidates decides.
  params.typical_p = 0.5f;
  CHECK(tokens_of(params, std::vector<float>(4, 7.0f)) == std::set<std::int32_t>{0, 1});
}

TEST_CASE(
    "noise belongs to the id: removing other candidates never changes who wins among the rest") {
  const std::vector<float> logits = rough_logits(50, 3);
  SamplerParams narrow = hot(2.0f);
  narrow.top_k = 10;
  Sampler all(hot(2.0f), 50);
  Sampler few(narrow, 50);
  std::size_t n_same = 0;
  std::set<std::int32_t> kept;
  for (std::uint64_t step = 0; step < 1000; ++step) kept.insert(few.choose(logits, step, {}).token);
  for (std::uint64_t step = 0; step < 1000; ++step) {
    const std::int32_t token = all.choose(logits, step, {}).token;
    if (!kept.contains(token)) continue;  // the winner of all is not among the ten
    CHECK(few.choose(logits, step, {}).token == token);
    ++n_same;
  }
  CHECK(kept.size() == 10);
  CHECK(n_same > 300);
}

TEST_CASE("tokens come as often as they are probable, and these are the counts of version 1") {
  const std::vector<float> logits = {log32(0.5f), log32(0.25f), log32(0.125f), log32(0.125f)};
  std::vector<int> counts(4);
  for (const std::int32_t token : choose_many(hot(), logits, 20000)) {
    ++counts[static_cast<std::size_t>(token)];
  }
  CHECK(counts == std::vector<int>{10093, 4972, 2463, 2472});
  // Four standard deviations of a binomial distribution.
  const double expected[] = {10000, 5000, 2500, 2500};
  for (std::size_t i = 0; i < 4; ++i) {
    const double deviation = std::sqrt(expected[i] * (1 - expected[i] / 20000));
    CHECK(std::fabs(counts[i] - expected[i]) < 4 * deviation);
  }
}

TEST_CASE("seed and step are 64 bits wide, and each changes the choice") {
  const std::vector<float> logits(1000, 0.0f);
  std::set<std::int32_t> tokens;
  for (const std::uint64_t seed : {0ull, 1ull, 1ull << 31, 1ull << 32, 1ull << 63}) {
    for (const std::uint64_t step : {0ull, 1ull, 1ull << 31, 1ull << 32, 1ull << 63}) {
      SamplerParams params = hot();
      params.seed = seed;
      tokens.insert(choose(params, logits, step));
    }
  }
  CHECK(tokens.size() >= 23);  // 25 draws of 1000: about 0.3 of them meet
}

TEST_CASE("a vocabulary of one token has one choice") {
  SamplerParams params = hot();
  params.typical_p = params.top_p = 0.1f;
  params.min_p = 0.9f;
  params.top_k = 1;
  CHECK(choose(params, {-2.0f}) == 0);
}
