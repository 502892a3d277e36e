// RMSNorm and LayerNorm kernels, emulated, bit-equal to the scalar reference.
#include "kernels/cuda/norm.cuh"

#include <limits>

#include "kernels/cpu/ops.h"
#include "tests/cuda/row_support.h"

namespace detrun {
namespace {

using namespace detrun::kernels;
using namespace detrun::cuda_test;

constexpr float kEps = 1e-5f;

struct Input {
  unsigned n_rows, n;
  std::vector<float> x, weight, bias;

  Input(std::mt19937& random, unsigned rows, unsigned length)
      : n_rows(rows),
        n(length),
        x(random_floats(random, std::size_t{rows} * length, 5.0f)),
        weight(random_floats(random, length, 2.0f)),
        bias(random_floats(random, length, 1.0f)) {}
};

// y and the flag, as kernel and reference leave them. The rows are in place.
struct Output {
  std::vector<float> y;
  int flag = 0;
};

enum class Norm { kRms, kLayer, kLayerBias };

Output run(Norm norm, const Input& in, emulation::LaneOrder order) {
  Output out{in.x};
  float* y = out.y.data();
  const float* bias = norm == Norm::kLayerBias ? in.bias.data() : nullptr;
  launch_rows(in.n_rows, device::kNormThreads, order, [&] {
    if (norm == Norm::kRms) {
      device::detrun_rmsnorm(y, in.weight.data(), kEps, in.n, y, &out.flag);
    } else {
      device::detrun_layernorm(y, in.weight.data(), bias, kEps, in.n, y, &out.flag);
    }
  });
  return out;
}

Output reference(Norm norm, const Input& in) {
  Output out{in.x};
  const float* bias = norm == Norm::kLayerBias ? in.bias.data() : nullptr;
  for (unsigned r = 0; r < in.n_rows; ++r) {
    float* y = out.y.data() + std::size_t{r} * in.n;
    const bool finite = norm == Norm::kRms
                            ? scalar::kOps.rmsnorm(y, in.weight.data(), kEps, in.n, y)
                            : scalar::kOps.layernorm(y, in.weight.data(), bias, kEps, in.n, y);
    if (!finite) out.flag = 1;
  }
  return out;
}

void check_shapes(Norm norm) {
  std::mt19937 random(3);
  for (const unsigned n : {2u, 31u, 32u, 33u, 63u, 64u, 65u, 100u, 255u, 256u, 257u, 576u, 2047u,
                           2048u, 2049u, 4100u}) {
    for (const unsigned n_rows : {1u, 4u, 5u, 9u}) {
      const Input in(random, n_rows, n);
      const Output expected = reference(norm, in);
      CHECK(expected.flag == 0);
      for (const auto order : kOrders) {
        const Output out = run(norm, in, order);
        CAPTURE(n);
        CAPTURE(n_rows);
        CHECK(same_bits(expected.y, out.y));
        CHECK(out.flag == 0);
      }
    }
  }
}

// Subnormal rows, rows whose squares vanish, sums beyond 2^24 where an addend of 1 is lost.
void check_edges(Norm norm) {
  std::mt19937 random(5);
  Input in(random, 4, 70);
  for (unsigned i = 0; i < 70; ++i) {
    in.x[i] = f32_from_bits((random() % 0x00800000u) | (i % 2 << 31));
    in.x[70 + i] = i % 3 == 0 ? 0x1p-80f : -0x1p-75f;
    in.x[140 + i] = i < 32 ? 4096.0f : 1.0f;
    in.x[210 + i] = i % 2 == 0 ? -0.0f : 16777216.0f;
  }
  for (float& w : in.weight) w = w == 0.0f ? 1.0f : w;
  const Output expected = reference(norm, in);
  for (const auto order : kOrders) CHECK(same_bits(expected.y, run(norm, in, order).y));
}

void check_report(Norm norm) {
  std::mt19937 random(6);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), 1e30f, std::numeric_limits<float>::quiet_NaN()}) {
    Input in(random, 6, 40);
    in.x[std::size_t{4} * 40 + 33] = bad;
    const Output expected = reference(norm, in);
    CHECK(expected.flag == 1);
    for (const auto order : kOrders) {
      const Output out = run(norm, in, order);
      CHECK(out.flag == 1);
      for (std::size_t i = 0; i < out.y.size(); ++i) {  // the other rows are whole
        if (i / in.n != 4) CHECK(f32_bits(out.y[i]) == f32_bits(expected.y[i]));
      }
    }
  }
}

}  // namespace

TEST_CASE("the RMSNorm kernel equals the scalar reference bit for bit") {
  check_shapes(Norm::kRms);
  check_edges(Norm::kRms);
}

TEST_CASE("the LayerNorm kernel equals the scalar reference bit for bit") {
  check_shapes(Norm::kLayer);
  check_edges(Norm::kLayer);
}

TEST_CASE("the LayerNorm kernel with a bias equals the scalar reference bit for bit") {
  check_shapes(Norm::kLayerBias);
  check_edges(Norm::kLayerBias);
}

TEST_CASE("a norm of a row whose sum of squares is not finite is reported") {
  check_report(Norm::kRms);
  check_report(Norm::kLayer);
  check_report(Norm::kLayerBias);
}

}  // namespace detrun
