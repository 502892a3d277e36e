// Quantized activations, contract clause 2: every instruction set, and the clause's own words.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "inputs.h"
#include "kernels/cpu/quantized_row.h"

namespace {

using detrun::CpuMemory;
using parity::Inputs;
using namespace detrun::kernels;

CpuMemory quantize(const CpuOps& ops, const std::vector<float>& x) {
  const InputOps& input = ops.inputs[static_cast<int>(InputForm::kQuantized)];
  CpuMemory row(input.row_bytes(x.size()), "test");
  REQUIRE(input.prepare(x.data(), x.size(), row.data()));
  return row;
}

void check(const std::vector<float>& x) {
  const CpuMemory expected = quantize(scalar::kOps, x);
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    const CpuMemory found = quantize(*ops, x);
    CHECK(found.size() == expected.size());
    CHECK(std::memcmp(found.data(), expected.data(), found.size()) == 0);
  }
}

TEST_CASE("quantized rows of every length have the reference's bytes") {
  const detrun::FpControlScope fp_control;
  for (std::uint64_t blocks = 1; blocks <= 40; ++blocks) {
    Inputs inputs(blocks);
    check(inputs.edgy(32 * blocks));
  }
}

TEST_CASE("blocks of any magnitude quantize as the contract says") {
  const detrun::FpControlScope fp_control;
  for (int exponent = -149; exponent <= 127; ++exponent) {
    Inputs inputs(static_cast<std::uint64_t>(exponent + 1000));
    std::vector<float> x(32);
    for (float& v : x) v = std::ldexp(inputs.plain(), exponent - 3);
    x[5] = std::ldexp(1.0f, exponent);
    for (float& v : x) {
      if (!(std::fabs(v) <= x[5])) v = x[5];
    }
    check(x);
    const CpuMemory row = quantize(scalar::kOps, x);
    const QuantizedRow q = quantized_row(row.data(), 32);
    if (exponent < -100) {
      CHECK(f32_bits(q.d[0]) == 0);
      for (int i = 0; i < 32; ++i) CHECK(q.q[i] == 0);
    } else {
      CHECK(f32_bits(q.d[0]) == f32_bits(x[5] / 127.0f));
      CHECK(q.q[5] == 127);
      CHECK(parity::count_live(std::span(q.d, 1)) == 1);
    }
  }
}

TEST_CASE("a row keeps the exact sums of 16 and of 32, the latter times the scale rounded once") {
  const detrun::FpControlScope fp_control;
  for (const std::uint64_t blocks : {1u, 2u, 15u, 16u, 17u, 33u}) {
    const std::uint64_t k = 32 * blocks;
    Inputs inputs(blocks + 77);
    std::vector<float> x = inputs.plain(k);
    std::fill_n(x.begin(), 32, -3.0f);  // the largest sum: -32 * 127
    std::fill_n(x.end() - 16, 16, blocks % 2 == 0 ? 0.0f : -0.0f);
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      const CpuMemory row = quantize(*ops, x);
      const QuantizedRow q = quantized_row(row.data(), k);
      for (std::uint64_t h = 0; h < k / 16; ++h) {
        int sum = 0;
        for (std::uint64_t i = 0; i < 16; ++i) sum += q.q[16 * h + i];
        CHECK(q.b16[h] == sum);
      }
      for (std::uint64_t b = 0; b < blocks; ++b) {
        const float sum = static_cast<float>(q.b16[2 * b] + q.b16[2 * b + 1]);
        CHECK(f32_bits(q.bx[b]) == f32_bits(q.d[b] * sum));
      }
      CHECK(parity::count_live(std::span(q.bx, blocks)) == blocks);
      CHECK(q.b16[0] == (blocks == 1 ? -16 * 127 : q.b16[1]));
    }
  }
}

TEST_CASE("every byte of a row is written, padding too") {
  const detrun::FpControlScope fp_control;
  for (const std::uint64_t blocks : {1u, 3u, 16u, 17u, 31u}) {
    Inputs inputs(blocks);
    const std::vector<float> x = inputs.edgy(32 * blocks);
    const CpuMemory expected = quantize(scalar::kOps, x);
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      const InputOps& input = ops->inputs[static_cast<int>(InputForm::kQuantized)];
      CpuMemory row(input.row_bytes(x.size()), "test");
      std::memset(row.data(), 0xff, row.size());
      REQUIRE(input.prepare(x.data(), x.size(), row.data()));
      CHECK(std::memcmp(row.data(), expected.data(), row.size()) == 0);
    }
  }
}

TEST_CASE("ties round to even and nothing leaves -127 to 127") {
  const detrun::FpControlScope fp_control;
  std::vector<float> x(32);
  for (int i = 0; i < 31; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i - 15) + 0.5f;
  x[31] = -127.0f;  // id = 1
  check(x);
  const CpuMemory row = quantize(scalar::kOps, x);
  const QuantizedRow q = quantized_row(row.data(), 32);
  CHECK(q.q[15] == 0);   // 0.5
  CHECK(q.q[16] == 2);   // 1.5
  CHECK(q.q[17] == 2);   // 2.5
  CHECK(q.q[14] == 0);   // -0.5
  CHECK(q.q[13] == -2);  // -1.5
  CHECK(q.q[12] == -2);  // -2.5
  CHECK(q.q[31] == -127);
}

}  // namespace
