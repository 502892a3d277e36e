// Attention of every head size, count of positions, window, soft cap and sink: every instruction
// set against the scalar reference; the reference against the contract's words, written anew here
// over absolute positions, and against binary64.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "inputs.h"
#include "kernels/math.h"

namespace {

using detrun::CpuMemory;
using parity::Inputs;
using namespace detrun::kernels;

constexpr std::uint32_t kPositions = 200;
constexpr std::uint32_t kCounts[] = {1,  2,  7,  8,  9,   31,  32,  33,  47,
                                     63, 64, 65, 72, 127, 128, 129, 160, 200};

struct Cache {
  Cache(std::uint32_t dim, bool is_f16, bool edgy, Inputs& inputs)
      : head_dim(dim), stride((dim + 7) / 8 * 8), f16(is_f16) {
    for (CpuMemory* part : {&k, &v}) {
      *part = CpuMemory(kPositions * stride * 4, "test");
      for (std::uint32_t p = 0; p < kPositions; ++p) {
        const std::vector<float> row = edgy ? inputs.edgy(dim) : inputs.plain(dim);
        if (f16) {
          scalar::kOps.kv_write_f16(row.data(), dim, part->as<std::uint16_t>() + p * stride);
        } else {
          std::memcpy(part->as<float>() + p * stride, row.data(), dim * sizeof(float));
        }
      }
    }
  }
  float at(const CpuMemory& part, std::uint32_t p, std::uint32_t d) const {
    const std::uint64_t i = p * stride + d;
    return f16 ? f16_to_f32(part.as<std::uint16_t>()[i]) : part.as<float>()[i];
  }
  std::uint32_t head_dim;
  std::uint64_t stride;
  bool f16;
  CpuMemory k, v;
};

constexpr float kNoSink = -std::numeric_limits<float>::infinity();

/// Positions first .. n - 1 are visible.
struct Case {
  std::uint32_t n;
  std::uint32_t first = 0;
  float softcap = 0.0f;
  float sink = kNoSink;
};

float scale_of(std::uint32_t head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::vector<float> attend(const CpuOps& ops, const Cache& cache, const std::vector<float>& q,
                          const Case& c) {
  CpuMemory scratch(ops.attention_scratch_floats(cache.head_dim) * sizeof(float), "test");
  std::memset(scratch.data(), 0xff, scratch.size());  // NaNs: scratch is never read before written
  std::vector<float> out(cache.head_dim, 12345.0f);
  const AttentionArgs args{
      .q = q.data(),
      .k = cache.k.data(),
      .v = cache.v.data(),
      .stride = cache.stride,
      .head_dim = cache.head_dim,
      .n_visible = c.n,
      .first_visible = c.first,
      .scale = scale_of(cache.head_dim),
      .softcap = c.softcap,
      .sink = c.sink == kNoSink ? nullptr : &c.sink,
      .scratch = scratch.as<float>(),
      .out = out.data(),
  };
  (cache.f16 ? ops.attention_f16 : ops.attention_f32)(&args);
  return out;
}

/// Clause 6 in its own words: every position by its absolute number.
std::vector<float> by_the_book(const Cache& cache, const std::vector<float>& q, const Case& c) {
  const std::uint32_t dim = cache.head_dim;
  float m = c.sink;
  float l = c.sink == kNoSink ? 0.0f : 1.0f;
  bool started = c.sink != kNoSink;
  std::vector<float> o(dim, 0.0f);
  for (std::uint32_t b = 0; b <= (c.n - 1) / 64; ++b) {
    float s[kPositions] = {};
    float m_b = kNoSink;
    for (std::uint32_t j = c.first; j < c.n; ++j) {
      if (j / 64 != b) continue;
      float a[8] = {};
      for (std::uint32_t d = 0; d < dim; ++d)
        a[d % 8] = f32_fma(q[d], cache.at(cache.k, j, d), a[d % 8]);
      s[j] = tree_sum<8>(a) * scale_of(dim);
      if (c.softcap != 0.0f) s[j] = c.softcap * tanh32(s[j] / c.softcap);
      m_b = s[j] > m_b ? s[j] : m_b;
    }
    if (m_b == kNoSink) continue;  // a block that holds no visible position
    float lanes[32] = {};
    std::vector<float> o_b(dim, 0.0f);
    for (std::uint32_t j = c.first; j < c.n; ++j) {
      if (j / 64 != b) continue;
      const float p = exp32(s[j] - m_b);
      lanes[j % 32] += p;
      for (std::uint32_t d = 0; d < dim; ++d) o_b[d] = f32_fma(p, cache.at(cache.v, j, d), o_b[d]);
    }
    const float l_b = tree_sum<32>(lanes);
    const float larger = !started || m_b > m ? m_b : m;
    const float old_factor = exp32(m - larger);
    const float new_factor = exp32(m_b - larger);
    l = started ? f32_fma(l, old_factor, l_b * new_factor) : l_b;
    for (std::uint32_t d = 0; d < dim; ++d) {
      o[d] = started ? f32_fma(o[d], old_factor, o_b[d] * new_factor) : o_b[d];
    }
    m = larger;
    started = true;
  }
  for (float& x : o) x = x / l + 0.0f;
  return o;
}

constexpr Case kCases[] = {
    // Windows that begin at, before and behind the edges of blocks, of lanes and of eights.
    {1, 0, 0.0f, 0.5f},
    {9, 1},
    {64, 63},
    {65, 63, 2.0f},
    {65, 64, 0.0f, -2.0f},
    {100, 3, 5.0f},
    {128, 65, 0.0f, 30.0f},
    {129, 33, 2.0f, 0.25f},
    {140, 71, 50.0f},
    {193, 130, 0.5f, -1.0f},
    {200, 72},
    {200, 0, 1.5f, 3.0f},
    {200, 199, 0.0f, 0.1f},
};

void check_cases(std::uint32_t dim, bool f16, bool edgy) {
  CAPTURE(dim);
  CAPTURE(f16);
  CAPTURE(edgy);
  Inputs inputs(dim + (f16 ? 15000 : 10000));
  const Cache cache(dim, f16, edgy, inputs);
  const std::vector<float> q = edgy ? inputs.edgy(dim) : inputs.plain(dim);
  for (const Case& c : kCases) {
    CAPTURE(c.n);
    CAPTURE(c.first);
    CAPTURE(c.softcap);
    CAPTURE(c.sink);
    const std::vector<float> expected = attend(scalar::kOps, cache, q, c);
    CHECK_SAME_BITS(expected, by_the_book(cache, q, c), edgy ? dim / 2 : dim);
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      CHECK_SAME_BITS(attend(*ops, cache, q, c), expected, edgy ? dim / 2 : dim);
    }
  }
}

void check_head_size(std::uint32_t dim, bool f16, bool edgy) {
  CAPTURE(dim);
  CAPTURE(f16);
  CAPTURE(edgy);
  Inputs inputs(dim + (f16 ? 5000 : 0));
  const Cache cache(dim, f16, edgy, inputs);
  // Edges make one position win; small plain scores let every position weigh in.
  std::vector<float> q = edgy ? inputs.edgy(dim) : inputs.plain(dim);
  if (!edgy) {
    for (float& x : q) x *= 0.125f;
  }
  for (const std::uint32_t n : kCounts) {
    CAPTURE(n);
    const std::vector<float> expected = attend(scalar::kOps, cache, q, {n});
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      CHECK_SAME_BITS(attend(*ops, cache, q, {n}), expected, edgy ? dim / 2 : dim);
    }
  }
}

TEST_CASE("attention has the reference's bits for every head size and count of positions") {
  const detrun::FpControlScope fp_control;
  for (const std::uint32_t dim :
       {2u, 4u, 6u, 8u, 10u, 16u, 32u, 64u, 72u, 80u, 96u, 112u, 128u, 256u}) {
    for (const bool f16 : {true, false}) {
      check_head_size(dim, f16, true);
      check_head_size(dim, f16, false);
    }
  }
}

TEST_CASE("windows, soft caps and sinks have the contract's bits for every head size") {
  const detrun::FpControlScope fp_control;
  for (const std::uint32_t dim : {4u, 8u, 10u, 64u, 72u, 80u, 96u, 112u, 128u, 256u}) {
    check_cases(dim, true, false);
    check_cases(dim, false, dim < 100);
  }
}

TEST_CASE("the reference's attention is attention") {
  // Tolerance: a chain of at most 200 roundings of values below 2^2 against binary64.
  const detrun::FpControlScope fp_control;
  Inputs inputs(9);
  const Cache cache(24, false, false, inputs);
  const std::vector<float> q = inputs.plain(24);
  for (const Case& c : kCases) {
    const std::vector<float> found = attend(scalar::kOps, cache, q, c);
    std::vector<double> p(c.n);
    double sum = std::exp(static_cast<double>(c.sink));
    for (std::uint32_t j = c.first; j < c.n; ++j) {
      double dot = 0;
      for (std::uint32_t d = 0; d < 24; ++d) {
        dot += static_cast<double>(q[d]) * static_cast<double>(cache.at(cache.k, j, d));
      }
      double score = dot / std::sqrt(24.0);
      if (c.softcap != 0.0f) {
        const double cap = c.softcap;
        score = cap * std::tanh(score / cap);
      }
      p[j] = std::exp(score);
      sum += p[j];
    }
    for (std::uint32_t d = 0; d < 24; ++d) {
      double y = 0;
      for (std::uint32_t j = c.first; j < c.n; ++j) {
        y += p[j] / sum * static_cast<double>(cache.at(cache.v, j, d));
      }
      CHECK(std::fabs(static_cast<double>(found[d]) - y) < 1e-5);
    }
  }
}

TEST_CASE("positions that are not visible do not matter") {
  const detrun::FpControlScope fp_control;
  Inputs inputs(10);
  Cache cache(80, true, false, inputs);
  const std::vector<float> q = inputs.plain(80);
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    const Case c{71, 13, 0.0f, 0.5f};
    const std::vector<float> before = attend(*ops, cache, q, c);
    std::memset(cache.k.data() + 71 * cache.stride * 2, 0xff, 8 * cache.stride * 2);
    std::memset(cache.v.data() + 71 * cache.stride * 2, 0xff, 8 * cache.stride * 2);
    std::memset(cache.k.data(), 0xff, 13 * cache.stride * 2);
    std::memset(cache.v.data(), 0xff, 13 * cache.stride * 2);
    CHECK_SAME_BITS(attend(*ops, cache, q, c), before, 80);
  }
}

TEST_CASE("a sink far below every score changes no bit, a large one takes all the weight") {
  const detrun::FpControlScope fp_control;
  Inputs inputs(11);
  const Cache cache(64, false, false, inputs);
  const std::vector<float> q = inputs.plain(64);
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    CHECK_SAME_BITS(attend(*ops, cache, q, {150, 0, 0.0f, -1e30f}), attend(*ops, cache, q, {150}),
                    64);
    const std::vector<float> nothing(64, 0.0f);
    CHECK(parity::first_difference(attend(*ops, cache, q, {150, 0, 0.0f, 1e30f}), nothing) == -1);
  }
}

}  // namespace
