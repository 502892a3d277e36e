// Norms, RoPE, KV rounding, elementwise operators and functions: every instruction set against the
// scalar reference, over every tail length and, for the functions, the whole range of binary32.
#include <doctest/doctest.h>

#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "inputs.h"
#include "kernels/math.h"

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

TEST_CASE("layernorm has the reference's bits, with and without a bias, in place too") {
  const detrun::FpControlScope fp_control;
  for_lengths([](std::size_t n) {
    CAPTURE(n);
    Inputs inputs(n + 300);
    const std::vector<float> x = inputs.edgy(n);
    const std::vector<float> weight = inputs.plain(n);
    const std::vector<float> bias = inputs.plain(n);
    for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
      std::vector<float> expected(n);
      CHECK(scalar::kOps.layernorm(x.data(), weight.data(), b, 1e-5f, n, expected.data()));
      for (const CpuOps* ops : detrun::available_cpu_ops()) {
        CAPTURE(std::string(ops->name));
        std::vector<float> y(n + 1, 12345.0f);
        CHECK(ops->layernorm(x.data(), weight.data(), b, 1e-5f, n, y.data()));
        CHECK(y.back() == 12345.0f);
        y.pop_back();
        CHECK_SAME_BITS(y, expected, n == 1 && b == nullptr ? 0 : n / 2);
        std::vector<float> in_place = x;
        ops->layernorm(in_place.data(), weight.data(), b, 1e-5f, n, in_place.data());
        CHECK(parity::first_difference(in_place, expected) == -1);
      }
    }
  });
}

TEST_CASE("the reference's layernorm follows the contract's words") {
  const detrun::FpControlScope fp_control;
  for (const std::size_t n : {1u, 5u, 32u, 33u, 100u}) {
    CAPTURE(n);
    Inputs inputs(n + 350);
    const std::vector<float> x = inputs.plain(n);
    const std::vector<float> weight = inputs.plain(n);
    const std::vector<float> bias = inputs.plain(n);
    float lanes[32] = {};
    for (std::size_t i = 0; i < n; ++i) lanes[i % 32] += x[i];
    const float mean = tree_sum<32>(lanes) / static_cast<float>(n);
    float squares[32] = {};
    for (std::size_t i = 0; i < n; ++i) {
      squares[i % 32] = f32_fma(x[i] - mean, x[i] - mean, squares[i % 32]);
    }
    const float r = 1.0f / f32_sqrt(tree_sum<32>(squares) / static_cast<float>(n) + 1e-6f);
    std::vector<float> expected(n);
    for (std::size_t i = 0; i < n; ++i) expected[i] = ((x[i] - mean) * r) * weight[i] + bias[i];
    std::vector<float> y(n);
    scalar::kOps.layernorm(x.data(), weight.data(), bias.data(), 1e-6f, n, y.data());
    CHECK_SAME_BITS(y, expected, n);
  }
}

TEST_CASE("norms report a sum of squares that is not finite") {
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    const std::vector<float> weight(40, 1.0f);
    std::vector<float> y(40);
    for (const float bad : {3e38f, f32_from_bits(kInfBits), f32_from_bits(kNanBits)}) {
      std::vector<float> x(40, 1.0f);
      x[37] = bad;
      CHECK_FALSE(ops->layernorm(x.data(), weight.data(), nullptr, 1e-5f, 40, y.data()));
      CHECK_FALSE(ops->rmsnorm(x.data(), weight.data(), 1e-5f, 40, y.data()));
    }
  }
}

TEST_CASE("silu_mul, add and mul have the reference's bits") {
  const detrun::FpControlScope fp_control;
  for_lengths([](std::size_t n) {
    CAPTURE(n);
    Inputs inputs(n + 500);
    const std::vector<float> a = inputs.edgy(n);
    const std::vector<float> b = inputs.edgy(n);
    for (const auto op : {&CpuOps::silu_mul, &CpuOps::add, &CpuOps::mul}) {
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

TEST_CASE("scale, add_scaled and softcap have the reference's bits") {
  const detrun::FpControlScope fp_control;
  for_lengths([](std::size_t n) {
    CAPTURE(n);
    Inputs inputs(n + 700);
    const std::vector<float> a = inputs.edgy(n);
    const std::vector<float> b = inputs.edgy(n);
    const float factor = inputs.plain();
    const auto results = [&](const CpuOps& ops) {
      std::vector<float> all = a;
      all.insert(all.end(), a.begin(), a.end());
      all.insert(all.end(), a.begin(), a.end());
      ops.scale(all.data(), factor, n);
      ops.add_scaled(all.data() + n, b.data(), factor, n);
      ops.softcap(all.data() + 2 * n, 3.0f, n);
      return all;
    };
    const std::vector<float> expected = results(scalar::kOps);
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(f32_bits(expected[i]) == f32_bits(a[i] * factor));
      CHECK(f32_bits(expected[n + i]) == f32_bits(f32_fma(factor, b[i], a[i])));
      CHECK(f32_bits(expected[2 * n + i]) == f32_bits(3.0f * tanh32(a[i] / 3.0f)));
    }
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CHECK_SAME_BITS(results(*ops), expected, n / 2);
    }
  });
}

constexpr float (*kFunctionsByTheBook[kFunctions])(float) = {
    exp32, log32, tanh32, erf32, sigmoid32, silu32, gelu_tanh32, gelu_erf32};

/// Every 9973rd pattern, the neighbours of every place where a function changes its course, and a
/// dense part where results are neither 0 nor 1 nor infinite. The first four functions are defined
/// for NaNs and infinities, the others get finite values: which NaN they make is the machine's.
std::vector<float> function_inputs(bool finite) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < 0x100000000ull; bits += 9973) {
    x.push_back(f32_from_bits(static_cast<std::uint32_t>(bits)));
  }
  for (const std::uint32_t edge :
       {0u, 0x00800000u, 0x3f1fffffu, 0x3f2aaaabu, 0x3f7fffffu, 0x3faaaaabu, 0x40800000u,
        0x42b17217u, 0x42b20000u, 0x42d00000u, 0x7f7fffffu, 0x7f800000u, 0x7fc00000u}) {
    for (std::uint32_t near = 0; near < 9; ++near) {
      x.push_back(f32_from_bits((edge + near - 4) & kAbsMask));
      x.push_back(f32_from_bits(((edge + near - 4) & kAbsMask) | ~kAbsMask));
    }
  }
  for (std::uint32_t i = 0; i < 40000; ++i) {
    x.push_back(-104.5f + 0.005f * static_cast<float>(i));
    x.push_back(-5.0f + 0.00025f * static_cast<float>(i));
  }
  if (finite) std::erase_if(x, [](float v) { return !f32_is_finite(v); });
  return x;
}

TEST_CASE("every function has the reference's bits over the whole range of binary32") {
  const detrun::FpControlScope fp_control;
  for (int which = 0; which < kFunctions; ++which) {
    CAPTURE(which);
    const std::vector<float> x = function_inputs(which >= static_cast<int>(Function::kSigmoid));
    std::vector<float> expected(x.size());
    scalar::kOps.functions[which](x.data(), x.size(), expected.data());
    for (std::size_t i = 0; i < x.size(); i += 97) {
      CHECK(f32_bits(expected[i]) == f32_bits(kFunctionsByTheBook[which](x[i])));
    }
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      std::vector<float> found(x.size());
      ops->functions[which](x.data(), x.size(), found.data());
      CHECK_SAME_BITS(found, expected, x.size() / 4);
    }
  }
}

TEST_CASE("functions keep to their slice, whatever its length, in place too") {
  const detrun::FpControlScope fp_control;
  for (std::size_t n = 0; n <= 20; ++n) {
    Inputs inputs(n + 800);
    const std::vector<float> x = inputs.edgy(n);
    for (int which = 0; which < kFunctions; ++which) {
      std::vector<float> expected(n);
      scalar::kOps.functions[which](x.data(), n, expected.data());
      for (const CpuOps* ops : detrun::available_cpu_ops()) {
        std::vector<float> y = x;
        y.push_back(12345.0f);
        ops->functions[which](y.data(), n, y.data());
        CHECK(y.back() == 12345.0f);
        y.pop_back();
        CHECK(parity::first_difference(y, expected) == -1);
      }
    }
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
