// RMSNorm, RoPE, KV rounding, SiLU, addition, exp: every instruction set against the scalar
// reference, over every tail length.
#include <doctest/doctest.h>

#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "inputs.h"

namespace {

using parity::Inputs;
using namespace detrun::kernels;

constexpr std::size_t kLengths[] = {576, 2047, 2048};

/// Calls check(n) for 1 to 70 and some real sizes.
template <class Check>
void for_lengths(Check check) {
  for (std::size_t n = 1; n <= 70; ++n) check(n);
  for (const std::size_t n : kLengths) check(n);
}

TEST_CASE("rmsnorm has the reference's bits, in place too") {
  const detrun::FpControlScope fp_control;
  for_lengths([](std::size_t n) {
    CAPTURE(n);
    Inputs inputs(n);
    const std::vector<float> x = inputs.edgy(n);
    const std::vector<float> weight = inputs.plain(n);
    std::vector<float> expected(n);
    scalar::kOps.rmsnorm(x.data(), weight.data(), 1e-5f, n, expected.data());
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      std::vector<float> y(n + 1, 12345.0f);
      ops->rmsnorm(x.data(), weight.data(), 1e-5f, n, y.data());
      CHECK(y.back() == 12345.0f);
      y.pop_back();
      CHECK_SAME_BITS(y, expected, n / 2);
      std::vector<float> in_place = x;
      ops->rmsnorm(in_place.data(), weight.data(), 1e-5f, n, in_place.data());
      CHECK(parity::first_difference(in_place, expected) == -1);
    }
  });
}

TEST_CASE("both kinds of rope have the reference's bits and leave the rest of a head alone") {
  const detrun::FpControlScope fp_control;
  for (const std::uint32_t head_dim : {2u, 4u, 6u, 8u, 10u, 64u, 72u, 80u, 96u, 112u, 128u, 256u}) {
    for (std::uint32_t rope_dim = head_dim; rope_dim >= 2; rope_dim -= rope_dim > 16 ? 14 : 2) {
      CAPTURE(head_dim);
      CAPTURE(rope_dim);
      Inputs inputs(head_dim * 1000 + rope_dim);
      const std::vector<float> x = inputs.edgy(3 * head_dim);
      const std::vector<float> cos = inputs.edgy(rope_dim / 2);
      const std::vector<float> sin = inputs.edgy(rope_dim / 2);
      for (const bool halves : {true, false}) {
        const auto rotate = [&](const CpuOps& ops) {
          std::vector<float> y = x;
          const RopeArgs args{y.data(), 3, head_dim, rope_dim, cos.data(), sin.data()};
          (halves ? ops.rope_halves : ops.rope_adjacent)(&args);
          return y;
        };
        const std::vector<float> expected = rotate(scalar::kOps);
        for (std::uint32_t d = rope_dim; d < head_dim; ++d) {
          CHECK(f32_bits(expected[head_dim + d]) == f32_bits(x[head_dim + d]));
        }
        for (const CpuOps* ops : detrun::available_cpu_ops()) {
          CHECK_SAME_BITS(rotate(*ops), expected, head_dim);
        }
      }
    }
  }
}

TEST_CASE("silu_mul and add have the reference's bits") {
  const detrun::FpControlScope fp_control;
  for_lengths([](std::size_t n) {
    CAPTURE(n);
    Inputs inputs(n + 500);
    const std::vector<float> a = inputs.edgy(n);
    const std::vector<float> b = inputs.edgy(n);
    for (const auto op : {&CpuOps::silu_mul, &CpuOps::add}) {
      std::vector<float> expected = a;
      (scalar::kOps.*op)(expected.data(), b.data(), n);
      for (const CpuOps* ops : detrun::available_cpu_ops()) {
        std::vector<float> found = a;
        (ops->*op)(found.data(), b.data(), n);
        CHECK_SAME_BITS(found, expected, n / 2);
      }
    }
  });
}

TEST_CASE("exp has the reference's bits over the whole range of binary32") {
  const detrun::FpControlScope fp_control;
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < 0x100000000ull; bits += 9973) {
    x.push_back(f32_from_bits(static_cast<std::uint32_t>(bits)));
  }
  for (std::uint32_t i = 0; i < 40000; ++i) {  // the range where results are neither 0 nor inf
    x.push_back(-104.5f + 0.005f * static_cast<float>(i));
  }
  std::vector<float> expected(x.size());
  scalar::kOps.exp(x.data(), x.size(), expected.data());
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    std::vector<float> found(x.size());
    ops->exp(x.data(), x.size(), found.data());
    CHECK_SAME_BITS(found, expected, x.size() / 4);
  }
}

TEST_CASE("values written to the cache have the reference's bits and misfits are reported") {
  const detrun::FpControlScope fp_control;
  // 65519.996 is the largest binary32 that rounds to a finite half; 65520 does not fit.
  const float fitting[] = {65504.0f,   65519.996f,      -65519.996f,    0x1p-24f,       0x1p-25f,
                           0x1.8p-25f, 0x1.000002p-25f, 1.00048828125f, 1.00146484375f, -0.0f};
  const float misfits[] = {65520.0f, -65520.0f, 1e30f, f32_from_bits(kInfBits),
                           f32_from_bits(kNanBits)};
  for_lengths([&](std::size_t n) {
    CAPTURE(n);
    Inputs inputs(n + 900);
    std::vector<float> x = inputs.edgy(n);
    x[inputs.below(n)] = fitting[inputs.below(std::size(fitting))];
    std::vector<std::uint16_t> expected(n);
    CHECK(scalar::kOps.kv_write_f16(x.data(), n, expected.data()));
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CAPTURE(std::string(ops->name));
      std::vector<std::uint16_t> half(n + 1, 0x1234);
      CHECK(ops->kv_write_f16(x.data(), n, half.data()));
      CHECK(half.back() == 0x1234);
      half.pop_back();
      CHECK(half == expected);
      std::vector<float> full(n);
      CHECK(ops->kv_write_f32(x.data(), n, full.data()));
      CHECK_SAME_BITS(full, x, n / 2);
      for (const float misfit : misfits) {
        std::vector<float> bad = x;
        bad[inputs.below(n)] = misfit;
        half.resize(n);
        CHECK_FALSE(ops->kv_write_f16(bad.data(), n, half.data()));
        CHECK(ops->kv_write_f32(bad.data(), n, full.data()) == f32_is_finite(misfit));
      }
    }
  });
}

TEST_CASE("all 65536 halves widen and narrow to themselves on every instruction set") {
  const detrun::FpControlScope fp_control;
  std::vector<float> wide;
  std::vector<std::uint16_t> halves;
  for (std::uint32_t h = 0; h < 65536; ++h) {
    if ((h & 0x7c00u) == 0x7c00u) continue;
    halves.push_back(static_cast<std::uint16_t>(h));
    wide.push_back(f16_to_f32(static_cast<std::uint16_t>(h)));
  }
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    std::vector<std::uint16_t> narrow(wide.size());
    CHECK(ops->kv_write_f16(wide.data(), wide.size(), narrow.data()));
    CHECK(narrow == halves);
    const MatmulOps& op = *detrun::find_matmul(*ops, TypeF16::kGgufId);
    std::vector<std::uint16_t> packed(op.packed_bytes(halves.size(), 1) / 2);
    op.pack(halves.data(), halves.size(), 1, 0, 1, packed.data());
    std::vector<float> decoded(halves.size());
    op.decode_row(packed.data(), halves.size(), 1, 0, decoded.data());
    CHECK_SAME_BITS(decoded, wide, wide.size() - 2);
  }
}

}  // namespace
