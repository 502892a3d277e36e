// Products of every tensor type: every instruction set against the scalar reference, bit for bit.
#include <doctest/doctest.h>

#include <cmath>

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
  const std::uint64_t block = detrun::find_qtype(type)->block_elems;
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
    // One element in eight is an edge, zero too; so is one block scale in eight.
    CHECK_SAME_BITS(found.y, expected.y,
                    k / block < 8 ? found.y.size() / 2 : found.y.size() * 9 / 10);
    CHECK(parity::first_difference(found.decoded, decoded) == -1);
  }
}

const std::uint32_t kTypes[] = {TypeF32::kGgufId,  TypeF16::kGgufId,    TypeBF16::kGgufId,
                                TypeQ4_0::kGgufId, TypeQ4_1::kGgufId,   TypeQ5_0::kGgufId,
                                TypeQ5_1::kGgufId, TypeQ8_0::kGgufId,   TypeQ2_K::kGgufId,
                                TypeQ3_K::kGgufId, TypeQ4_K::kGgufId,   TypeQ5_K::kGgufId,
                                TypeQ6_K::kGgufId, TypeIQ4_NL::kGgufId, TypeIQ4_XS::kGgufId};

std::uint64_t block_elems(std::uint32_t type) { return detrun::find_qtype(type)->block_elems; }

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
  // Counted in blocks: with 32 elements 1 to 20 of them, with 256 1 to 10 and 17, so that the eight
  // lanes of clause 3 are filled in part, whole, and more than once.
  const detrun::FpControlScope fp_control;
  for (const std::uint32_t type : kTypes) {
    const std::uint64_t unit = block_elems(type);
    for (std::uint64_t k = 1; k <= (unit == 1 ? 70u : unit == 32 ? 20u : 10u); ++k) {
      check_shape(type, k * unit, 37, 1);
      check_shape(type, k * unit, 19, unit == 256 ? 3 : 7);
    }
    if (unit == 256) check_shape(type, 17 * unit, 9, 1);
  }
}

TEST_CASE("products of real sizes have the reference's bits for every count of outputs and rows") {
  const detrun::FpControlScope fp_control;
  for (const std::uint32_t type : kTypes) {
    const std::uint64_t unit = block_elems(type);
    for (const std::uint64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 81, 130}) {
      check_shape(type, unit == 256 ? 256 : 576, n, 1);
    }
    for (const std::uint32_t n_rows : {2u, 3u, 4u, 5u, 6u, 8u, 9u, 13u}) {
      check_shape(type, unit == 256 ? 256 : 96, 41, n_rows);
    }
    check_shape(type, 2048, 70, 1);
    check_shape(type, 2048, 18, 4);
  }
}

TEST_CASE("products of as many rows as a prompt has have the reference's bits") {
  // Kernels take rows of x in strips and k in chunks; each is passed once and left with a tail.
  const detrun::FpControlScope fp_control;
  for (const std::uint32_t type : kTypes) {
    const std::uint64_t unit = block_elems(type);
    for (const std::uint32_t n_rows : {64u, 127u, 128u, 129u, 130u, 131u, 132u, 260u}) {
      check_shape(type, unit == 256 ? 768 : unit == 32 ? 544 : 70, 41, n_rows);
    }
    check_shape(type, unit == 256 ? 2816 : unit == 32 ? 2112 : 300, 33, 131);
  }
}

TEST_CASE("a product of many rows is the products of its rows") {
  const detrun::FpControlScope fp_control;
  constexpr std::uint64_t kN = 45;
  constexpr std::uint32_t kRows = 11;
  for (const std::uint32_t type : kTypes) {
    const std::uint64_t k = block_elems(type) == 256 ? 512 : 160;
    Inputs inputs(77 + type);
    const std::vector<std::byte> matrix = inputs.matrix(type, k, kN);
    const std::vector<float> x = inputs.edgy(kRows * k);
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      CAPTURE(type);
      const Product all = multiply(*ops, type, matrix, k, kN, x);
      for (std::uint32_t r = 0; r < kRows; ++r) {
        const auto at = static_cast<std::ptrdiff_t>(r * k);
        const std::vector<float> row(x.begin() + at, x.begin() + at + static_cast<int>(k));
        const Product one = multiply(*ops, type, matrix, k, kN, row);
        CHECK_SAME_BITS(one.y, std::span(all.y).subspan(r * kN, kN), kN / 2);
      }
    }
  }
}

/// A block whose every byte is `fill` and whose first binary16 field is 1, any other 0.
struct LargestSum {
  std::uint32_t type;
  std::uint8_t fill;
  float sum;  ///< of 32 products with 127, scales included
};

TEST_CASE("the largest sum of 32 products of every type is exact, in every block of a group") {
  // Q6_K has 2^24 - 131072: |q| <= 127 is what keeps it below 2^24.
  const LargestSum largest[] = {
      {TypeQ4_0::kGgufId, 0x00, -8 * 32 * 127.0f},
      {TypeQ4_0::kGgufId, 0xff, 7 * 32 * 127.0f},
      {TypeQ4_1::kGgufId, 0xff, 15 * 32 * 127.0f},
      {TypeQ5_0::kGgufId, 0x00, -16 * 32 * 127.0f},
      {TypeQ5_0::kGgufId, 0xff, 15 * 32 * 127.0f},
      {TypeQ5_1::kGgufId, 0xff, 31 * 32 * 127.0f},
      {TypeQ8_0::kGgufId, 0x80, -128 * 32 * 127.0f},
      {TypeQ8_0::kGgufId, 0x7f, 127 * 32 * 127.0f},
      {TypeIQ4_NL::kGgufId, 0x00, -127 * 32 * 127.0f},
      {TypeIQ4_NL::kGgufId, 0xff, 113 * 32 * 127.0f},
      {TypeQ2_K::kGgufId, 0xff, 15 * 3 * 32 * 127.0f},
      {TypeQ3_K::kGgufId, 0x00, 32 * 4 * 32 * 127.0f},
      {TypeQ3_K::kGgufId, 0xff, 31 * 3 * 32 * 127.0f},
      {TypeQ4_K::kGgufId, 0xff, 63 * 15 * 32 * 127.0f},
      {TypeQ5_K::kGgufId, 0xff, 63 * 31 * 32 * 127.0f},
      {TypeQ6_K::kGgufId, 0x00, 128 * 32 * 32 * 127.0f},
      {TypeQ6_K::kGgufId, 0xff, -128 * 31 * 32 * 127.0f},
      {TypeIQ4_XS::kGgufId, 0x00, 32 * 127 * 32 * 127.0f},
      {TypeIQ4_XS::kGgufId, 0xff, 31 * 113 * 32 * 127.0f},
  };
  const detrun::FpControlScope fp_control;
  for (const LargestSum& l : largest) {
    CAPTURE(l.type);
    CAPTURE(l.fill);
    CHECK(std::fabs(l.sum) < 0x1p24f);
    const parity::BlockShape& shape = *parity::block_shape(l.type);
    std::vector<std::byte> block(shape.bytes, std::byte{l.fill});
    for (std::size_t i = 0; i < shape.halves.size(); ++i) {
      const std::uint16_t half = i == 0 ? 0x3c00 : 0;
      std::memcpy(block.data() + shape.halves[i], &half, sizeof half);
    }
    if (l.type == TypeQ6_K::kGgufId) std::memset(block.data() + 192, 0x80, 16);  // its int8 scales
    for (std::size_t first = 0; first < shape.elems; first += 32) {
      for (const float x_value : {127.0f, -127.0f}) {  // d_x is 1
        std::vector<float> x(shape.elems);
        std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(first), 32, x_value);
        const float expected = x_value < 0 ? -l.sum : l.sum;
        for (const CpuOps* ops : detrun::available_cpu_ops()) {
          CAPTURE(std::string(ops->name));
          CHECK(multiply(*ops, l.type, block, shape.elems, 1, x).y[0] == expected);
        }
        std::vector<float> twice = x;
        twice.insert(twice.end(), x.begin(), x.end());
        for (const CpuOps* ops : detrun::available_cpu_ops()) {
          CHECK(multiply(*ops, l.type, block, shape.elems, 1, twice).y[1] == expected);
        }
      }
    }
  }
}

TEST_CASE("integer minima are subtracted, binary16 ones added, after the products") {
  // d = 0 and minima alone are left: y = -dmin * sum of m * bx, or + m * bx.
  const detrun::FpControlScope fp_control;
  const struct {
    std::uint32_t type;
    std::uint8_t fill;
    float expected;  ///< with dmin or m = 1.5, all activations 127
  } rows[] = {
      {TypeQ4_1::kGgufId, 0x5a, 1.5f * 32 * 127},
      {TypeQ5_1::kGgufId, 0x5a, 1.5f * 32 * 127},
      {TypeQ2_K::kGgufId, 0x5a, -1.5f * 5 * 256 * 127},
      // Minima 0 to 3 are the six bits of 0x11, minima 4 to 7 its upper half with no bits above.
      {TypeQ4_K::kGgufId, 0x11, -1.5f * (4 * 17 + 4 * 1) * 32 * 127},
      {TypeQ5_K::kGgufId, 0x11, -1.5f * (4 * 17 + 4 * 1) * 32 * 127},
  };
  for (const auto& row : rows) {
    CAPTURE(row.type);
    const parity::BlockShape& shape = *parity::block_shape(row.type);
    std::vector<std::byte> block(shape.bytes, std::byte{row.fill});
    const std::uint16_t halves[] = {0, 0x3e00};
    std::memcpy(block.data() + shape.halves[0], &halves[0], 2);
    std::memcpy(block.data() + shape.halves[1], &halves[1], 2);
    const std::vector<float> x(shape.elems, 127.0f);
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      CHECK(multiply(*ops, row.type, block, shape.elems, 1, x).y[0] == row.expected);
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
