// Greedy choice: argmax, margin and log probability of one row of logits, contract clauses 11, 12.
#include <limits>

#include "detrun/error.h"
#include "detrun/sampler.h"
#include "kernels/contract.h"
#include "kernels/math.h"
#include "sampler/row.h"

namespace detrun {

std::optional<std::int64_t> first_non_finite_logit(std::span<const float> logits) {
  const std::optional<std::size_t> found = first_non_finite(logits);
  if (!found) return std::nullopt;
  return static_cast<std::int64_t>(*found);
}

TopTwo find_top_two(std::span<const float> logits) {
  DETRUN_CHECK(!logits.empty());
  DETRUN_CHECK(logits.size() <= std::numeric_limits<std::int32_t>::max());
  const std::optional<TopTwo> top = scan_row(logits);
  DETRUN_CHECK(top.has_value());
  return *top;
}

Choice describe_choice(std::span<const float> logits, TopTwo top, std::int32_t token) {
  const float largest = logits[top.best];
  const float margin = kernels::f32_add(kernels::f32_sub(largest, top.second), 0.0f);
  const float log_sum = kernels::log32(sum_of_exp(logits, top));
  const float chosen = logits[static_cast<std::size_t>(token)];
  const float logprob = kernels::f32_sub(kernels::f32_sub(chosen, largest), log_sum);
  return {token, kernels::f32_bits(margin), kernels::f32_bits(logprob)};
}

Choice choose_greedy(std::span<const float> logits) {
  const TopTwo top = find_top_two(logits);
  return describe_choice(logits, top, static_cast<std::int32_t>(top.best));
}

std::optional<std::int32_t> greedy_token(std::span<const float> logits) {
  DETRUN_CHECK(!logits.empty());
  DETRUN_CHECK(logits.size() <= std::numeric_limits<std::int32_t>::max());
  const std::optional<TopTwo> top = scan_row(logits);
  if (!top) return std::nullopt;
  return static_cast<std::int32_t>(top->best);
}

}  // namespace detrun
