// Greedy choice: argmax, margin and log probability of one row of logits, contract clauses 11, 12.
// The sum of exponentials is compiled twice on x86-64: fma rounds once whether the CPU or the C
// library computes it, so both copies give the same bits (a test) and one is five times faster.
#include <limits>

#include "detrun/error.h"
#include "detrun/sampler.h"
#include "kernels/contract.h"
#include "kernels/math.h"
#include "sampler/row.h"

namespace detrun {
namespace {

/// S32(exp(x_i - m)): the lanes of sum32, with the terms computed as they are added.
[[gnu::always_inline]] inline float sum_of_exp_body(std::span<const float> x, float m) {
  float lanes[kernels::kSumLanes] = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    float& lane = lanes[i % kernels::kSumLanes];
    lane = kernels::f32_add(lane, kernels::exp32(kernels::f32_sub(x[i], m)));
  }
  return kernels::tree_sum<kernels::kSumLanes>(lanes);
}

[[gnu::flatten]] float sum_of_exp_generic(std::span<const float> x, float m) {
  return sum_of_exp_body(x, m);
}

#if defined(__x86_64__)
[[gnu::flatten, gnu::target("fma")]] float sum_of_exp_fma(std::span<const float> x, float m) {
  return sum_of_exp_body(x, m);
}

float sum_of_exp(std::span<const float> x, float m) {
  return __builtin_cpu_supports("fma") ? sum_of_exp_fma(x, m) : sum_of_exp_generic(x, m);
}
#else
float sum_of_exp(std::span<const float> x, float m) { return sum_of_exp_generic(x, m); }
#endif

}  // namespace

std::optional<std::int64_t> first_non_finite_logit(std::span<const float> logits) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!kernels::f32_is_finite(logits[i])) return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

TopTwo find_top_two(std::span<const float> logits) {
  DETRUN_CHECK(!logits.empty());
  DETRUN_CHECK(logits.size() <= std::numeric_limits<std::int32_t>::max());
  DETRUN_CHECK(!first_non_finite_logit(logits));
  // One pass for both: `>` keeps the lowest id on ties, and takes -0 and +0 for equal.
  std::size_t best = 0;
  float second = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) {
      second = logits[best];
      best = i;
    } else if (logits[i] > second) {
      second = logits[i];
    }
  }
  return {best, second};
}

Choice describe_choice(std::span<const float> logits, TopTwo top, std::int32_t token) {
  const float largest = logits[top.best];
  const float margin = kernels::f32_add(kernels::f32_sub(largest, top.second), 0.0f);
  const float log_sum = kernels::log32(sum_of_exp(logits, largest));
  const float chosen = logits[static_cast<std::size_t>(token)];
  const float logprob = kernels::f32_sub(kernels::f32_sub(chosen, largest), log_sum);
  return {token, kernels::f32_bits(margin), kernels::f32_bits(logprob)};
}

Choice choose_greedy(std::span<const float> logits) {
  const TopTwo top = find_top_two(logits);
  return describe_choice(logits, top, static_cast<std::int32_t>(top.best));
}

}  // namespace detrun
