// Attention of every head size and count of positions: every instruction set against the scalar
// reference, and the reference against a plain computation in binary64.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "inputs.h"

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

std::vector<float> attend(const CpuOps& ops, const Cache& cache, const std::vector<float>& q,
                          std::uint32_t n_visible) {
  CpuMemory scratch(ops.attention_scratch_floats(cache.head_dim) * sizeof(float), "test");
  std::memset(scratch.data(), 0xff, scratch.size());  // NaNs: scratch is never read before written
  std::vector<float> out(cache.head_dim, 12345.0f);
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(cache.head_dim)));
  const AttentionArgs args{q.data(),     cache.k.data(),      cache.v.data(),
                           cache.stride, cache.head_dim,      n_visible,
                           scale,        scratch.as<float>(), out.data()};
  (cache.f16 ? ops.attention_f16 : ops.attention_f32)(&args);
  return out;
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
    const std::vector<float> expected = attend(scalar::kOps, cache, q, n);
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      CHECK_SAME_BITS(attend(*ops, cache, q, n), expected, edgy ? dim / 2 : dim);
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

TEST_CASE("the reference's attention is attention") {
  // Tolerance: a chain of at most 200 roundings of values below 2^2 against binary64.
  const detrun::FpControlScope fp_control;
  Inputs inputs(9);
  const Cache cache(24, false, false, inputs);
  const std::vector<float> q = inputs.plain(24);
  for (const std::uint32_t n : kCounts) {
    const std::vector<float> found = attend(scalar::kOps, cache, q, n);
    std::vector<double> p(n);
    double sum = 0;
    for (std::uint32_t j = 0; j < n; ++j) {
      double dot = 0;
      for (std::uint32_t d = 0; d < 24; ++d) {
        dot += static_cast<double>(q[d]) * static_cast<double>(cache.at(cache.k, j, d));
      }
      p[j] = std::exp(dot / std::sqrt(24.0));
      sum += p[j];
    }
    for (std::uint32_t d = 0; d < 24; ++d) {
      double y = 0;
      for (std::uint32_t j = 0; j < n; ++j) {
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
    const std::vector<float> before = attend(*ops, cache, q, 71);
    std::memset(cache.k.data() + 71 * cache.stride * 2, 0xff, 8 * cache.stride * 2);
    std::memset(cache.v.data() + 71 * cache.stride * 2, 0xff, 8 * cache.stride * 2);
    CHECK_SAME_BITS(attend(*ops, cache, q, 71), before, 80);
  }
}

}  // namespace
