// Logits to a token: greedy (temperature 0) or sampled with noise that depends on nothing but seed,
// step and token id. Numerics: contract clauses 11 and 12. Callers hold a FpControlScope, as the
// engine does: rounding to nearest, subnormals kept.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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

/// The token that choose_greedy chooses, without the work for the rest; nullopt when a logit is not
/// finite. Not empty (DETRUN_CHECK).
std::optional<std::int32_t> greedy_token(std::span<const float> logits);

/// How a token is chosen. As default: greedily, without penalties.
struct SamplerParams {
  float temperature = 0.0f;         ///< 0: the largest logit after penalties; no noise, no filter
  std::uint32_t top_k = 0;          ///< keep the k most probable; 0: all
  float typical_p = 1.0f;           ///< locally typical, 0 .. 1; 1: all
  float top_p = 1.0f;               ///< nucleus, 0 .. 1; 1: all
  float min_p = 0.0f;               ///< share of the largest probability, 0 .. 1; 0: all
  float repeat_penalty = 1.0f;      ///< above 0; divides positive logits, multiplies others
  float frequency_penalty = 0.0f;   ///< taken off once per occurrence
  float presence_penalty = 0.0f;    ///< taken off once
  std::uint32_t penalty_last = 64;  ///< how many last tokens of prompt and output count
  std::uint64_t seed = 0;
};

/// Chooses tokens by contract clause 12. Holds no state between choices: the same arguments choose
/// the same token, in any order of steps. Allocates at construction only.
class Sampler {
 public:
  /// Error kUsage when a parameter is out of its range.
  Sampler(const SamplerParams& params, std::uint32_t n_vocab);

  /// The token of output step `step` (from 0). logits: (n_vocab), finite (DETRUN_CHECK). history:
  /// prompt and output so far, ids below n_vocab (DETRUN_CHECK). Margin and log probability are
  /// those of the logits before any penalty. Error kInternal when a penalty overflows a logit.
  Choice choose(std::span<const float> logits, std::uint64_t step,
                std::span<const std::int32_t> history);

 private:
  void penalize(std::span<const std::int32_t> history);
  std::int32_t sample(std::uint64_t step);
  void collect_candidates();
  float compute_weights();
  void keep_typical();
  void keep_top_p();
  void keep_min_p();

  SamplerParams params_;
  std::vector<float> logits_;          // after penalties, by id
  std::vector<std::uint32_t> counts_;  // by id, zero between choices
  // The candidates, most probable first; all three have room for every id.
  std::size_t n_ = 0;
  std::vector<std::int32_t> ids_;
  std::vector<float> x_;             // scaled by the temperature, the first is 0
  std::vector<float> weights_;       // exp(x)
  std::vector<std::uint64_t> keys_;  // for sorting
};

}  // namespace detrun
