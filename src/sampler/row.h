// What greedy and sampled choice share about one row of logits: its two largest, and contract
// clause 11. Internal to the room.
#pragma once

#include <optional>
#include <span>

#include "detrun/sampler.h"

namespace detrun {

struct TopTwo {
  std::size_t best;  ///< the first of the largest, -0 equal to +0
  float second;      ///< the largest of the others; -infinity when there are none
  float least;       ///< the smallest
};

/// Index of the first element that is not finite.
std::optional<std::size_t> first_non_finite(std::span<const float> x);
/// nullopt when an element is not finite. `x` is not empty.
std::optional<TopTwo> scan_row(std::span<const float> x);
/// S32(exp(x_i - m)) with m the largest; `top` is of the same row.
float sum_of_exp(std::span<const float> x, const TopTwo& top);

/// Logits finite and not empty (DETRUN_CHECK).
TopTwo find_top_two(std::span<const float> logits);

/// Margin of the row and log probability of `token`.
Choice describe_choice(std::span<const float> logits, TopTwo top, std::int32_t token);

}  // namespace detrun
