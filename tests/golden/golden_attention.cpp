// Attention and RoPE of the golden cases.
#include <algorithm>
#include <cmath>

#include "backend/cpu_memory.h"
#include "detrun/backend.h"
#include "detrun/error.h"
#include "golden_inputs.h"
#include "golden_operators.h"

namespace golden {

using namespace detrun;
using kernels::CpuOps;

namespace {

/// K or V of `visible` positions as the cache stores it, rows padded with zeros to `stride`.
CpuMemory cache(const Case& c, const CpuOps& ops, std::uint64_t tensor, std::uint64_t stride) {
  const std::uint64_t d = c.integer("d");
  const std::uint64_t visible = c.integer("visible");
  const std::vector<float> all = values("plain", c.integer("seed"), tensor, visible * d);
  CpuMemory memory(visible * stride * sizeof(float), "a golden case");
  for (std::uint64_t j = 0; j < visible; ++j) {
    const float* row = all.data() + j * d;
    if (c.text("kv") == "f16") {
      DETRUN_CHECK(ops.kv_write_f16(row, d, memory.as<std::uint16_t>() + j * stride));
    } else {
      DETRUN_CHECK(ops.kv_write_f32(row, d, memory.as<float>() + j * stride));
    }
  }
  return memory;
}

void attention(const Case& c, const CpuOps& ops, Result& out) {
  const std::uint64_t d = c.integer("d");
  const std::uint64_t seed = c.integer("seed");
  const std::uint64_t stride = (d + 7) / 8 * 8;
  const std::vector<float> q = values(c.text("x"), seed, 0, d);
  const CpuMemory k = cache(c, ops, 1, stride);
  const CpuMemory v = cache(c, ops, 2, stride);
  const float sink = values("plain", seed, 3, 1)[0];
  const auto head_dim = static_cast<std::uint32_t>(d);
  CpuMemory scratch(ops.attention_scratch_floats(head_dim) * sizeof(float), "a golden case");
  std::vector<float> y(d);
  const kernels::AttentionArgs args{
      .q = q.data(),
      .k = k.data(),
      .v = v.data(),
      .stride = stride,
      .head_dim = head_dim,
      .n_visible = static_cast<std::uint32_t>(c.integer("visible")),
      .first_visible = static_cast<std::uint32_t>(c.integer("first")),
      .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d))),
      .softcap = c.fraction("softcap"),
      .sink = c.integer("sink") != 0 ? &sink : nullptr,
      .scratch = scratch.as<float>(),
      .out = y.data()};
  (c.text("kv") == "f16" ? ops.attention_f16 : ops.attention_f32)(&args);
  out.add(y);
}

RopeScaling scaling_named(const std::string& name) {
  return name == "linear" ? RopeScaling::kLinear
         : name == "yarn" ? RopeScaling::kYarn
                          : RopeScaling::kNone;
}

void rope(const Case& c, const CpuOps& ops, Result& out) {
  constexpr std::uint32_t kHeads = 3;
  const auto d = static_cast<std::uint32_t>(c.integer("d"));
  const auto n = static_cast<std::uint32_t>(c.integer("n"));
  const auto position = static_cast<std::uint32_t>(c.integer("position"));
  std::vector<float> factors;
  if (c.text("scaling") == "factors") {
    factors = values("positive", c.integer("seed"), 1, n / 2);
    for (float& factor : factors) factor = 1.0f + factor;
  }
  const RopeTableSpec spec{.rope_dim = n,
                           .theta = c.fraction("theta"),
                           .freq_factors = factors,
                           .scaling = scaling_named(c.text("scaling")),
                           .scaling_factor = 4.0,
                           .original_context = 128.0};
  std::vector<float> cos((position + 1) * std::size_t{n / 2});
  std::vector<float> sin(cos.size());
  make_rope_tables(spec, position + 1, cos, sin);
  std::vector<float> x = values(c.text("x"), c.integer("seed"), 0, std::size_t{kHeads} * d);
  const std::size_t row = position * std::size_t{n / 2};
  const kernels::RopeArgs args{x.data(), kHeads, d, n, cos.data() + row, sin.data() + row};
  (c.text("pairs") == "adjacent" ? ops.rope_adjacent : ops.rope_halves)(&args);
  out.add(x);
}

}  // namespace

bool run_attention(const Case& c, const CpuOps& ops, Result& out) {
  if (c.op == "attention") {
    attention(c, ops, out);
  } else if (c.op == "rope") {
    rope(c, ops, out);
  } else {
    return false;
  }
  return true;
}

}  // namespace golden
