// Mixture of experts, the routing of one token: contract clause 9, written
// for host and device (no CUDA kernel uses it yet). Not here: the products (router logits, experts)
// and the weighted sum, which is `add_scaled` of kernels/cpu/ops.h over the ranks in ascending
// order, from +0.
#pragma once

#include "kernels/contract.h"
#include "kernels/math.h"

namespace detrun::kernels {

enum class MoeGating : int {
  kSoftmax,          ///< probabilities of all experts
  kSigmoid,          ///< every expert for itself
  kSoftmaxOfChosen,  ///< the logits choose, softmax over the chosen
};

struct MoeRouting {
  MoeGating gating;
  std::uint32_t n_experts;
  std::uint32_t n_used;  ///< k, 1 .. n_experts
  const float* bias;     ///< (n_experts), added to the keys that choose, not to weights; or nullptr
  bool renormalize;      ///< divide the weights by their sum
  float scale;           ///< factor of the weights; 1: none
};

/// p = softmax(v); p may be v.
DETRUN_HD void softmax32(const float* v, std::uint32_t n, float* p) {
  float largest = v[0];
  for (std::uint32_t i = 1; i < n; ++i) {
    if (v[i] > largest) largest = v[i];
  }
  for (std::uint32_t i = 0; i < n; ++i) p[i] = exp32(f32_sub(v[i], largest));
  const float sum = sum32(p, n);
  for (std::uint32_t i = 0; i < n; ++i) p[i] = f32_div(p[i], sum);
}

/// The experts with the k largest keys, of equal keys (-0 = +0) the lower first.
DETRUN_HD void moe_choose(const float* keys, std::uint32_t n, std::uint32_t k,
                          std::uint32_t* experts) {
  for (std::uint32_t rank = 0; rank < k; ++rank) {
    std::uint32_t best = n;
    for (std::uint32_t i = 0; i < n; ++i) {
      bool taken = false;
      for (std::uint32_t r = 0; r < rank; ++r) taken = taken || experts[r] == i;
      if (!taken && (best == n || keys[i] > keys[best])) best = i;
    }
    experts[rank] = best;
  }
}

/// Chooses the experts of one token and their weights, by rank. False when a logit is not finite;
/// then nothing is written. logits (n_experts); scratch (2 * n_experts); experts, weights (n_used).
DETRUN_HD bool moe_route(const MoeRouting& routing, const float* logits, float* scratch,
                         std::uint32_t* experts, float* weights) {
  const std::uint32_t n = routing.n_experts;
  const std::uint32_t k = routing.n_used;
  float* p = scratch;
  float* keys = scratch + n;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!f32_is_finite(logits[i])) return false;  // a NaN has no place in the order of keys
  }
  if (routing.gating == MoeGating::kSoftmax) {
    softmax32(logits, n, p);
  } else {
    const bool sigmoid = routing.gating == MoeGating::kSigmoid;
    for (std::uint32_t i = 0; i < n; ++i) p[i] = sigmoid ? sigmoid32(logits[i]) : logits[i];
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    keys[i] = routing.bias != nullptr ? f32_add(p[i], routing.bias[i]) : p[i];
  }
  moe_choose(keys, n, k, experts);
  for (std::uint32_t r = 0; r < k; ++r) weights[r] = p[experts[r]];
  if (routing.gating == MoeGating::kSoftmaxOfChosen) softmax32(weights, k, weights);
  if (routing.renormalize) {
    const float sum = sum32(weights, k);
    for (std::uint32_t r = 0; r < k; ++r) weights[r] = f32_div(weights[r], sum);
  }
  for (std::uint32_t r = 0; r < k; ++r) weights[r] = f32_mul(weights[r], routing.scale);
  return true;
}

/// y += the shared experts' output, after all ranks; `gate`: their router logit, nullptr where they
/// have none. False when the gate is not finite. y, shared (n).
DETRUN_HD bool moe_add_shared(const float* shared, const float* gate, std::uint64_t n, float* y) {
  if (gate != nullptr && !f32_is_finite(*gate)) return false;
  const float weight = gate != nullptr ? sigmoid32(*gate) : 1.0f;
  // A factor of 1 is exact: y + shared and fma(1, shared, y) are the same bits.
  for (std::uint64_t i = 0; i < n; ++i) y[i] = f32_fma(weight, shared[i], y[i]);
  return true;
}

}  // namespace detrun::kernels
