// Logits to a token. Temperature 0 for now: argmax, lowest id on ties, -0 equal to +0.
// Numerics: contract clauses 11 and 12.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace detrun {

/// What one row of logits chose, and how sure it was. Bit patterns, because bits are recorded.
struct Choice {
  std::int32_t token;
  std::uint32_t margin_bits;   ///< binary32 top1 - top2; one-token vocabularies: +inf
  std::uint32_t logprob_bits;  ///< binary32 log probability of the chosen token over all ids
};

/// Index of the first logit that is not finite; nullopt when all are.
std::optional<std::int64_t> first_non_finite_logit(std::span<const float> logits);

/// Greedy choice. Logits must be finite (DETRUN_CHECK) and not empty.
Choice choose_greedy(std::span<const float> logits);

}  // namespace detrun
