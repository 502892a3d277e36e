// Sampled choice, contract clause 12: penalties, temperature, top-k, typical, top-p, min-p, then
// the largest of logit plus noise. Sums run in the order of the candidates, one addition after
// another.
#include <algorithm>
#include <string>

#include "detrun/error.h"
#include "detrun/sampler.h"
#include "detrun/text.h"
#include "kernels/contract.h"
#include "kernels/math.h"
#include "kernels/philox.h"
#include "sampler/row.h"

namespace detrun {
namespace {

using namespace kernels;

void check_range(bool good, std::string_view name, float value, std::string_view expected) {
  if (good) return;
  throw_usage(std::string(name) + " is " + format_f32(value) + ", expected " +
              std::string(expected));
}

void check_share(std::string_view name, float value) {
  check_range(value >= 0.0f && value <= 1.0f, name, value, "0 to 1");
}

void check_finite(std::string_view name, float value) {
  check_range(f32_is_finite(value), name, value, "a finite number");
}

/// Ascending keys are descending values, of equal values (-0 = +0) ascending ids.
std::uint64_t descending_key(float value, std::uint32_t id) {
  const std::uint32_t bits = f32_bits(f32_add(value, 0.0f));
  const bool negative = (bits & ~kAbsMask) != 0;
  return std::uint64_t{negative ? bits : kAbsMask - bits} << 32 | id;
}

std::uint32_t low_half(std::uint64_t key) { return static_cast<std::uint32_t>(key); }

}  // namespace

Sampler::Sampler(const SamplerParams& params, std::uint32_t n_vocab) : params_(params) {
  check_range(f32_is_finite(params.temperature) && params.temperature >= 0.0f, "the temperature",
              params.temperature, "0 or a positive finite number");
  check_share("typical-p", params.typical_p);
  check_share("top-p", params.top_p);
  check_share("min-p", params.min_p);
  check_range(f32_is_finite(params.repeat_penalty) && params.repeat_penalty > 0.0f,
              "the repeat penalty", params.repeat_penalty, "a positive finite number");
  check_finite("the frequency penalty", params.frequency_penalty);
  check_finite("the presence penalty", params.presence_penalty);
  logits_.resize(n_vocab);
  counts_.resize(n_vocab);
  ids_.resize(n_vocab);
  x_.resize(n_vocab);
  weights_.resize(n_vocab);
  keys_.resize(n_vocab);
}

Choice Sampler::choose(std::span<const float> logits, std::uint64_t step,
                       std::span<const std::int32_t> history) {
  DETRUN_CHECK(logits.size() == logits_.size());
  const TopTwo top = find_top_two(logits);
  std::copy(logits.begin(), logits.end(), logits_.begin());
  penalize(history);
  const std::int32_t token = params_.temperature > 0.0f
                                 ? sample(step)
                                 : static_cast<std::int32_t>(find_top_two(logits_).best);
  return describe_choice(logits, top, token);
}

void Sampler::penalize(std::span<const std::int32_t> history) {
  const bool repeats = params_.repeat_penalty != 1.0f;
  const bool counts = params_.frequency_penalty != 0.0f || params_.presence_penalty != 0.0f;
  if (!repeats && !counts) return;
  history = history.last(std::min<std::size_t>(history.size(), params_.penalty_last));
  for (const std::int32_t id : history) {
    DETRUN_CHECK(id >= 0 && static_cast<std::size_t>(id) < counts_.size());
    ++counts_[static_cast<std::size_t>(id)];
  }
  std::int32_t overflowed = -1;
  for (const std::int32_t id : history) {
    std::uint32_t& count = counts_[static_cast<std::size_t>(id)];
    if (count == 0) continue;  // done at an earlier occurrence
    float& x = logits_[static_cast<std::size_t>(id)];
    if (repeats) {
      x = x > 0.0f ? f32_div(x, params_.repeat_penalty) : f32_mul(x, params_.repeat_penalty);
    }
    if (counts) {
      const float by_count = f32_mul(static_cast<float>(count), params_.frequency_penalty);
      x = f32_sub(x, f32_add(by_count, params_.presence_penalty));
    }
    if (!f32_is_finite(x)) overflowed = id;
    count = 0;
  }
  if (overflowed >= 0) {
    throw_internal(
        "the logit of token id " + std::to_string(overflowed) + " is not finite after its penalty",
        "use smaller penalties");
  }
}

/// Fills ids_ and x_ with what top-k leaves, most probable first.
void Sampler::collect_candidates() {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    keys_[i] = descending_key(logits_[i], static_cast<std::uint32_t>(i));
  }
  n_ = keys_.size();
  if (params_.top_k != 0 && params_.top_k < n_) {
    n_ = params_.top_k;
    std::nth_element(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(n_), keys_.end());
  }
  std::sort(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(n_));
  const float largest = logits_[low_half(keys_[0])];
  for (std::size_t i = 0; i < n_; ++i) {
    ids_[i] = static_cast<std::int32_t>(low_half(keys_[i]));
    x_[i] = f32_div(f32_sub(logits_[low_half(keys_[i])], largest), params_.temperature);
  }
}

/// weights_ = exp(x_); returns their sum.
float Sampler::compute_weights() {
  float sum = 0.0f;
  for (std::size_t i = 0; i < n_; ++i) {
    weights_[i] = exp32(x_[i]);
    sum = f32_add(sum, weights_[i]);
  }
  return sum;
}

void Sampler::keep_typical() {
  const float sum = compute_weights();
  float entropy = 0.0f;
  for (std::size_t i = 0; i < n_; ++i) {
    weights_[i] = f32_div(weights_[i], sum);
    const float p = weights_[i];
    if (p > 0.0f) entropy = f32_fma(p, -log32(p), entropy);
  }
  for (std::size_t i = 0; i < n_; ++i) {
    const float distance = f32_sub(-log32(weights_[i]), entropy);
    keys_[i] = std::uint64_t{f32_bits(distance) & kAbsMask} << 32 | i;  // then the order there was
  }
  const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(n_);
  std::sort(keys_.begin(), end);
  std::size_t n_kept = 0;
  float mass = 0.0f;
  while (n_kept < n_) {
    mass = f32_add(mass, weights_[low_half(keys_[n_kept++])]);
    if (mass >= params_.typical_p) break;
  }
  // The kept ranks in their former order, with rank 0 whatever its surprise. A rank is at least its
  // place among them, so moving down overwrites nothing that is still needed.
  const auto kept_end = keys_.begin() + static_cast<std::ptrdiff_t>(n_kept);
  for (auto key = keys_.begin(); key != kept_end; ++key) *key = low_half(*key);
  std::sort(keys_.begin(), kept_end);
  const std::size_t skip = keys_[0] == 0 ? 0 : 1;
  for (std::size_t i = 0; i < n_kept; ++i) {
    const std::size_t rank = keys_[i];
    ids_[i + skip] = ids_[rank];
    x_[i + skip] = x_[rank];
  }
  n_ = n_kept + skip;
}

void Sampler::keep_top_p() {
  const float sum = compute_weights();
  float mass = 0.0f;
  for (std::size_t i = 0; i < n_; ++i) {
    mass = f32_add(mass, f32_div(weights_[i], sum));
    if (mass >= params_.top_p) n_ = i + 1;
  }
}

void Sampler::keep_min_p() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    if (exp32(x_[i]) < params_.min_p) continue;
    ids_[kept] = ids_[i];
    x_[kept] = x_[i];
    ++kept;
  }
  n_ = kept;
}

std::int32_t Sampler::sample(std::uint64_t step) {
  collect_candidates();
  if (params_.typical_p != 1.0f) keep_typical();
  if (params_.top_p != 1.0f) keep_top_p();
  if (params_.min_p != 0.0f) keep_min_p();
  std::int32_t best = -1;
  float best_value = 0.0f;
  for (std::size_t i = 0; i < n_; ++i) {
    const float noise = token_noise(params_.seed, step, static_cast<std::uint32_t>(ids_[i]));
    const float value = f32_add(x_[i], noise);
    if (best < 0 || value > best_value || (value == best_value && ids_[i] < best)) {
      best = ids_[i];
      best_value = value;
    }
  }
  return best;
}

}  // namespace detrun
