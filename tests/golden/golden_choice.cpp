// Choice of tokens, noise, routing and the hash of logits: what no instruction set changes.
#include "detrun/digest.h"
#include "detrun/error.h"
#include "detrun/sampler.h"
#include "golden_inputs.h"
#include "golden_operators.h"
#include "kernels/moe.h"
#include "kernels/philox.h"
#include "sampler/row.h"

namespace golden {

using namespace detrun;
using kernels::CpuOps;

namespace {

kernels::MoeGating gating_named(const std::string& name) {
  if (name == "softmax") return kernels::MoeGating::kSoftmax;
  if (name == "sigmoid") return kernels::MoeGating::kSigmoid;
  if (name == "chosen") return kernels::MoeGating::kSoftmaxOfChosen;
  throw_usage("no gating '" + name + "'");
}

void moe(const Case& c, const CpuOps& ops, Result& out) {
  const auto e = static_cast<std::uint32_t>(c.integer("e"));
  const auto k = static_cast<std::uint32_t>(c.integer("k"));
  const std::uint64_t d = c.integer("d");
  const std::uint64_t seed = c.integer("seed");
  const std::vector<float> logits = values(c.text("x"), seed, 0, e);
  const std::vector<float> bias = values("plain", seed, 1, e);
  const std::vector<float> outputs = values("plain", seed, 2, e * d);
  const kernels::MoeRouting routing{.gating = gating_named(c.text("gating")),
                                    .n_experts = e,
                                    .n_used = k,
                                    .bias = c.integer("bias") != 0 ? bias.data() : nullptr,
                                    .renormalize = c.integer("norm") != 0,
                                    .scale = c.fraction("scale")};
  std::vector<float> scratch(2 * e);
  std::vector<std::uint32_t> experts(k);
  std::vector<float> weights(k);
  DETRUN_CHECK(
      kernels::moe_route(routing, logits.data(), scratch.data(), experts.data(), weights.data()));
  std::vector<float> y(d);
  for (std::uint32_t r = 0; r < k; ++r) {
    ops.add_scaled(y.data(), outputs.data() + experts[r] * d, weights[r], d);
  }
  out.add(experts);
  out.add(weights);
  out.add(y);
}

void sample(const Case& c, Result& out) {
  const auto n = static_cast<std::uint32_t>(c.integer("n"));
  const std::uint64_t seed = c.integer("seed");
  std::vector<std::int32_t> history(c.integer("history"));
  for (std::uint64_t i = 0; i < history.size(); ++i) {
    history[i] = static_cast<std::int32_t>(word(seed, 1, i) % n);
  }
  const SamplerParams params{.temperature = c.fraction("temp"),
                             .top_k = static_cast<std::uint32_t>(c.integer("top_k")),
                             .typical_p = c.fraction("typical"),
                             .top_p = c.fraction("top_p"),
                             .min_p = c.fraction("min_p"),
                             .repeat_penalty = c.fraction("repeat"),
                             .frequency_penalty = c.fraction("frequency"),
                             .presence_penalty = c.fraction("presence"),
                             .penalty_last = static_cast<std::uint32_t>(history.size()),
                             .seed = c.integer("rng")};
  Sampler sampler(params, n);
  out.add(sampler.choose(values(c.text("x"), seed, 0, n), c.integer("step"), history).token);
}

}  // namespace

namespace {

void moe_shared(const Case& c, Result& out) {
  const std::uint64_t d = c.integer("d");
  const std::uint64_t seed = c.integer("seed");
  std::vector<float> y = values(c.text("x"), seed, 0, d);
  const std::vector<float> shared = values(c.text("x"), seed, 1, d);
  const float gate = values("wide", seed, 2, 1)[0];
  DETRUN_CHECK(kernels::moe_add_shared(shared.data(), c.integer("gate") != 0 ? &gate : nullptr, d,
                                       y.data()));
  out.add(y);
}

void gated(const Case& c, const CpuOps& ops, Result& out) {
  const std::uint64_t n = c.integer("n");
  std::vector<float> gate = values(c.text("x"), c.integer("seed"), 0, n);
  const std::vector<float> up = values(c.text("x"), c.integer("seed"), 1, n);
  if (c.text("f") == "silu") {
    ops.silu_mul(gate.data(), up.data(), n);
  } else {
    const auto f =
        c.text("f") == "gelu_tanh" ? kernels::Function::kGeluTanh : kernels::Function::kGeluErf;
    ops.functions[static_cast<int>(f)](gate.data(), n, gate.data());
    ops.mul(gate.data(), up.data(), n);
  }
  out.add(gate);
}

/// Margin and log probability of any id, not the largest only.
void confidence(const Case& c, Result& out) {
  const std::uint64_t n = c.integer("n");
  const std::vector<float> logits = values(c.text("x"), c.integer("seed"), 0, n);
  const auto id = static_cast<std::int32_t>(word(c.integer("seed"), 1, 0) % n);
  const Choice choice = describe_choice(logits, find_top_two(logits), id);
  out.add(choice.token);
  out.add(choice.margin_bits);
  out.add(choice.logprob_bits);
}

}  // namespace

bool run_choice(const Case& c, const CpuOps& ops, Result& out) {
  if (c.op == "moe") {
    moe(c, ops, out);
  } else if (c.op == "moe_shared") {
    moe_shared(c, out);
  } else if (c.op == "gated") {
    gated(c, ops, out);
  } else if (c.op == "confidence") {
    confidence(c, out);
  } else if (c.op == "choice") {
    const Choice choice = choose_greedy(values(c.text("x"), c.integer("seed"), 0, c.integer("n")));
    out.add(choice.token);
    out.add(choice.margin_bits);
    out.add(choice.logprob_bits);
  } else if (c.op == "sample") {
    sample(c, out);
  } else if (c.op == "noise") {
    out.add(kernels::token_noise(c.integer("rng"), c.integer("step"),
                                 static_cast<std::uint32_t>(c.integer("id"))));
  } else if (c.op == "hash") {
    out.add(values(c.text("x"), c.integer("seed"), 0, c.integer("n")));
  } else {
    return false;
  }
  return true;
}

}  // namespace golden
