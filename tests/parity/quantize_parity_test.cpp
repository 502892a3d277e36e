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
