// What greedy and sampled choice share about one row of logits: its two largest, and contract
// clause 11. Internal to the room.
#pragma once

#include <span>

#include "detrun/sampler.h"

namespace detrun {

struct TopTwo {
  std::size_t best;  ///< the first of the largest, -0 equal to +0
  float second;      ///< the largest of the others; -infinity when there are none
};

/// Logits finite and not empty (DETRUN_CHECK).
TopTwo find_top_two(std::span<const float> logits);

/// Margin of the row and log probability of `token`.
Choice describe_choice(std::span<const float> logits, TopTwo top, std::int32_t token);

}  // namespace detrun
