// Routing of a mixture of experts: the contract's words step by step, ties, biases, edges.
#include "kernels/moe.h"

#include <doctest/doctest.h>

#include <vector>

#include "kernels/cpu/ops.h"

namespace {

using namespace detrun::kernels;

struct Routed {
  std::vector<std::uint32_t> experts;
  std::vector<float> weights;
};

Routed route(MoeRouting routing, const std::vector<float>& logits) {
  routing.n_experts = static_cast<std::uint32_t>(logits.size());
  std::vector<float> scratch(2 * logits.size());
  Routed routed{std::vector<std::uint32_t>(routing.n_used), std::vector<float>(routing.n_used)};
  REQUIRE(moe_route(routing, logits.data(), scratch.data(), routed.experts.data(),
                    routed.weights.data()));
  return routed;
}

MoeRouting plain(MoeGating gating, std::uint32_t k) { return {gating, 0, k, nullptr, false, 1.0f}; }

std::vector<std::uint32_t> bits(const std::vector<float>& v) {
  std::vector<std::uint32_t> out;
  out.reserve(v.size());
  for (const float x : v) out.push_back(f32_bits(x));
  return out;
}

using Ids = std::vector<std::uint32_t>;

TEST_CASE("a router logit that is not finite is refused, whatever would be chosen") {
  for (const std::uint32_t bad : {kInfBits, 0xff800000u, kNanBits}) {
    for (const MoeGating gating :
         {MoeGating::kSoftmax, MoeGating::kSigmoid, MoeGating::kSoftmaxOfChosen}) {
      MoeRouting routing = plain(gating, 1);
      routing.n_experts = 3;
      const float logits[3] = {5.0f, f32_from_bits(bad), 1.0f};
      float scratch[6];
      std::uint32_t expert = 77;
      float weight = 0.0f;
      CHECK_FALSE(moe_route(routing, logits, scratch, &expert, &weight));
      CHECK(expert == 77);
    }
  }
}

TEST_CASE("softmax of all experts: probabilities choose and weigh") {
  const std::vector<float> x = {0.5f, 2.0f, -1.0f, 1.0f};
  std::vector<float> e;
  e.reserve(x.size());
  for (const float v : x) e.push_back(exp32(v - 2.0f));
  const float z = sum32(e.data(), 4);
  const Routed routed = route(plain(MoeGating::kSoftmax, 2), x);
  CHECK(routed.experts == Ids{1, 3});
  CHECK(bits(routed.weights) == bits({e[1] / z, e[3] / z}));
}

TEST_CASE("sigmoid: every expert for itself") {
  const std::vector<float> x = {0.5f, 2.0f, -1.0f, 1.0f};
  const Routed routed = route(plain(MoeGating::kSigmoid, 3), x);
  CHECK(routed.experts == Ids{1, 3, 0});
  CHECK(bits(routed.weights) == bits({sigmoid32(2.0f), sigmoid32(1.0f), sigmoid32(0.5f)}));
}

TEST_CASE("softmax of the chosen: logits choose, the chosen ones sum to one") {
  const std::vector<float> x = {0.5f, 2.0f, -1.0f, 1.0f};
  const float z = 1.0f + exp32(-1.0f);
  const Routed routed = route(plain(MoeGating::kSoftmaxOfChosen, 2), x);
  CHECK(routed.experts == Ids{1, 3});
  CHECK(bits(routed.weights) == bits({1.0f / z, exp32(-1.0f) / z}));
}

TEST_CASE("of equal keys the lower expert comes first, minus zero equals zero") {
  CHECK(route(plain(MoeGating::kSoftmaxOfChosen, 3), {1.0f, 3.0f, 3.0f, 3.0f}).experts ==
        Ids{1, 2, 3});
  CHECK(route(plain(MoeGating::kSoftmaxOfChosen, 4), {-0.0f, 0.0f, -0.0f, 0.0f}).experts ==
        Ids{0, 1, 2, 3});
  CHECK(route(plain(MoeGating::kSoftmax, 2), {5.0f, 5.0f, 5.0f}).experts == Ids{0, 1});
  // Two logits that differ may have one probability: then the lower id, not the larger logit.
  const std::vector<float> saturated = {30.0f, 31.0f, 29.0f};
  REQUIRE(sigmoid32(30.0f) == sigmoid32(31.0f));
  CHECK(route(plain(MoeGating::kSigmoid, 2), saturated).experts == Ids{0, 1});
}

TEST_CASE("a selection bias moves the choice, never a weight") {
  const std::vector<float> x = {0.5f, 2.0f, -1.0f, 1.0f};
  const std::vector<float> bias = {0.0f, -1.0f, 0.7f, 0.0f};
  for (const MoeGating gating : {MoeGating::kSigmoid, MoeGating::kSoftmax}) {
    MoeRouting routing = plain(gating, 4);
    const Routed unbiased = route(routing, x);
    routing.bias = bias.data();
    const Routed biased = route(routing, x);
    CHECK(biased.experts.front() == 2);
    CHECK(biased.experts.back() == 1);
    for (std::size_t a = 0; a < 4; ++a) {
      for (std::size_t b = 0; b < 4; ++b) {
        if (biased.experts[a] != unbiased.experts[b]) continue;
        CHECK(f32_bits(biased.weights[a]) == f32_bits(unbiased.weights[b]));
      }
    }
  }
  MoeRouting routing = plain(MoeGating::kSoftmaxOfChosen, 1);
  const std::vector<float> large = {2.0f, 0.0f, 0.0f, 0.0f};
  routing.bias = large.data();
  CHECK(route(routing, x).experts == Ids{0});
  CHECK(bits(route(routing, x).weights) == bits({1.0f}));
}

TEST_CASE("renormalization divides by the sum before any division, then the scale multiplies") {
  std::vector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 37 % 64) * 0.07f - 2.0f;
  }
  MoeRouting routing = plain(MoeGating::kSigmoid, 40);  // more than one chain of S32 each
  const Routed raw = route(routing, x);
  const float sum = sum32(raw.weights.data(), 40);
  routing.renormalize = true;
  routing.scale = 2.5f;
  const Routed routed = route(routing, x);
  CHECK(routed.experts == raw.experts);
  for (std::size_t r = 0; r < 40; ++r) {
    CHECK(f32_bits(routed.weights[r]) == f32_bits(raw.weights[r] / sum * 2.5f));
  }
}

TEST_CASE("all experts may be chosen, and one expert is certain") {
  CHECK(route(plain(MoeGating::kSoftmax, 3), {1.0f, 2.0f, 3.0f}).experts == Ids{2, 1, 0});
  CHECK(bits(route(plain(MoeGating::kSoftmax, 1), {-7.0f}).weights) == bits({1.0f}));
}

TEST_CASE("shared experts come last, by their gate where they have one") {
  const float shared[3] = {0.7f, -0.0f, -1.9f};
  const std::vector<float> before = {1.1f, -0.0f, 3.3f};
  std::vector<float> y = before;
  CHECK(moe_add_shared(shared, nullptr, 3, y.data()));
  CHECK(bits(y) == bits({1.1f + 0.7f, -0.0f + -0.0f, 3.3f + -1.9f}));
  y = before;
  const float gate = 0.3f;
  CHECK(moe_add_shared(shared, &gate, 3, y.data()));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(f32_bits(y[i]) == f32_bits(f32_fma(sigmoid32(gate), shared[i], before[i])));
  }
  const float bad = f32_from_bits(kNanBits);
  CHECK_FALSE(moe_add_shared(shared, &bad, 3, y.data()));
}

TEST_CASE("the weighted sum is a chain of fma over ranks, from +0") {
  const std::vector<float> out0 = {1.1f, -0.0f, 3.3f};
  const std::vector<float> out1 = {0.7f, -0.0f, -1.9f};
  std::vector<float> y(3, 0.0f);
  scalar::kOps.add_scaled(y.data(), out0.data(), 0.3f, 3);
  scalar::kOps.add_scaled(y.data(), out1.data(), 0.7f, 3);
  for (std::size_t d = 0; d < 3; ++d) {
    CHECK(f32_bits(y[d]) == f32_bits(f32_fma(0.7f, out1[d], f32_fma(0.3f, out0[d], 0.0f))));
  }
  CHECK(f32_bits(y[1]) == 0u);
}

}  // namespace
