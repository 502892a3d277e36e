// Products of every tensor type: every instruction set against the scalar reference, bit for bit.
#include <doctest/doctest.h>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "detrun/quant.h"
#include "inputs.h"

namespace {

using detrun::CpuMemory;
using parity::Inputs;
using namespace detrun::kernels;

struct Product {
  std::vector<float> y;
  std::vector<float> decoded;  // every row of the packed matrix
  bool finite = true;          // what preparing said
};

/// y (n_rows, n), computed in two slices of groups as two threads would.
Product multiply(const CpuOps& ops, std::uint32_t type, const std::vector<std::byte>& matrix,
                 std::uint64_t k, std::uint64_t n, const std::vector<float>& x) {
  const MatmulOps& op = *detrun::find_matmul(ops, type);
  const std::uint64_t n_groups = (n + op.group - 1) / op.group;
  CpuMemory packed(op.packed_bytes(k, n), "test");
  op.pack(matrix.data(), k, n, 0, n_groups / 2, packed.data());
  op.pack(matrix.data(), k, n, n_groups / 2, n_groups, packed.data());
  const InputOps& input = ops.inputs[static_cast<int>(op.input)];
  const std::uint64_t row_bytes = input.row_bytes(k);
  const auto n_rows = static_cast<std::uint32_t>(x.size() / k);
  CpuMemory rows(row_bytes * n_rows, "test");
  Product product;
  for (std::uint32_t r = 0; r < n_rows; ++r) {
    product.finite &= input.prepare(x.data() + r * k, k, rows.data() + r * row_bytes);
  }
  product.y.assign(n_rows * n, 12345.0f);
  const MatmulArgs args{packed.data(), rows.data(), row_bytes, n_rows, k, n, product.y.data()};
  op.matmul(&args, 0, n_groups / 2);
  op.matmul(&args, n_groups / 2, n_groups);
  product.decoded.resize(n * k);
  for (std::uint64_t i = 0; i < n; ++i) {
    op.decode_row(packed.data(), k, n, i, product.decoded.data() + i * k);
  }
  return product;
}

void check_shape(std::uint32_t type, std::uint64_t k, std::uint64_t n, std::uint32_t n_rows) {
  CAPTURE(type);
  CAPTURE(k);
  CAPTURE(n);
  CAPTURE(n_rows);
  Inputs inputs(type * 1000003 + k * 1009 + n * 31 + n_rows);
  const std::vector<std::byte> matrix = inputs.matrix(type, k, n);
  const std::vector<float> x = inputs.edgy(n_rows * k);
  const Product expected = multiply(scalar::kOps, type, matrix, k, n, x);
  std::vector<float> decoded(n * k);
  detrun::decode_row(static_cast<detrun::QType>(type), matrix, decoded);
  CHECK(parity::first_difference(expected.decoded, decoded) == -1);
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    const Product found = multiply(*ops, type, matrix, k, n, x);
    CHECK(found.finite);
    CHECK_SAME_BITS(found.y, expected.y, k < 8 ? 0 : found.y.size() * 9 / 10);
    CHECK(parity::first_difference(found.decoded, decoded) == -1);
  }
}

const std::uint32_t kTypes[] = {TypeF32::kGgufId, TypeF16::kGgufId, TypeBF16::kGgufId,
                                TypeQ8_0::kGgufId};

TEST_CASE("every instruction set has kernels for every supported type") {
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    std::size_t n_supported = 0;
    for (std::uint32_t id = 0; id < 256; ++id) {
      const detrun::QTypeInfo* info = detrun::find_qtype(id);
      const bool supported = info != nullptr && info->supported;
      n_supported += supported ? 1 : 0;
      CHECK_MESSAGE((detrun::find_matmul(*ops, id) != nullptr) == supported, id);
    }
    CHECK(n_supported == std::size(kTypes));
    CHECK(ops->n_matmuls == n_supported);
  }
}

TEST_CASE("products with rows of every length from 1 to 70 have the reference's bits") {
  const detrun::FpControlScope fp_control;
  for (const std::uint32_t type : kTypes) {
    const std::uint64_t unit = type == TypeQ8_0::kGgufId ? 32 : 1;
    for (std::uint64_t k = 1; k <= (unit == 1 ? 70u : 20u); ++k) {
      check_shape(type, k * unit, 37, 1);
      check_shape(type, k * unit, 19, 7);
    }
  }
}

TEST_CASE("products of real sizes have the reference's bits for every count of outputs and rows") {
  const detrun::FpControlScope fp_control;
  for (const std::uint32_t type : kTypes) {
    for (const std::uint64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 81, 130}) {
      check_shape(type, 576, n, 1);
    }
    for (const std::uint32_t n_rows : {2u, 3u, 4u, 5u, 6u, 8u, 9u, 13u}) {
      check_shape(type, 96, 41, n_rows);
    }
    check_shape(type, 2048, 70, 1);
    check_shape(type, 2048, 18, 4);
  }
}

TEST_CASE("a product of many rows is the products of its rows") {
  const detrun::FpControlScope fp_control;
  constexpr std::uint64_t kK = 160;
  constexpr std::uint64_t kN = 45;
  constexpr std::uint32_t kRows = 11;
  for (const std::uint32_t type : kTypes) {
    Inputs inputs(77 + type);
    const std::vector<std::byte> matrix = inputs.matrix(type, kK, kN);
    const std::vector<float> x = inputs.edgy(kRows * kK);
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      CAPTURE(type);
      const Product all = multiply(*ops, type, matrix, kK, kN, x);
      for (std::uint32_t r = 0; r < kRows; ++r) {
        const std::vector<float> row(x.begin() + r * kK, x.begin() + (r + 1) * kK);
        const Product one = multiply(*ops, type, matrix, kK, kN, row);
        CHECK_SAME_BITS(one.y, std::span(all.y).subspan(r * kN, kN), kN / 2);
      }
    }
  }
}

TEST_CASE("a sum of products that is minus zero is given as plus zero") {
  // fma(1e-30, -1e-30, +0) is -0. With 32 of them every lane is -0, with 31 one lane is +0: only
  // the final addition of +0 makes an absent element and a +0 in its place the same.
  const detrun::FpControlScope fp_control;
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    for (const std::uint64_t k : {1, 31, 32, 33, 64}) {
      CAPTURE(k);
      const std::vector<float> x(k, 1e-30f);
      const std::vector<float> w(k, -1e-30f);
      const auto bytes = std::as_bytes(std::span(w));
      const Product found = multiply(*ops, 0, {bytes.begin(), bytes.end()}, k, 1, x);
      CHECK(f32_bits(found.y[0]) == 0);
    }
  }
}

TEST_CASE("preparing activations reports one value that is not finite, wherever it is") {
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    for (const std::uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xff800001u}) {
      for (std::size_t at = 0; at < 96; ++at) {
        std::vector<float> x(96, 1.0f);
        x[at] = f32_from_bits(bits);
        for (const InputOps& input : ops->inputs) {
          CpuMemory row(input.row_bytes(x.size()), "test");
          CHECK_FALSE(input.prepare(x.data(), x.size(), row.data()));
          x[at] = 3.4028235e38f;
          CHECK(input.prepare(x.data(), x.size(), row.data()));
          x[at] = f32_from_bits(bits);
        }
      }
    }
  }
}

}  // namespace
