// Inputs are made of integers (splitmix64), so that nothing but the kernel under test computes.
// The shapes cross every boundary: lanes, panels, blocks, rows of a tile, tails.
#include "backend/cpu_self_test.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/quant.h"
#include "kernels/fp.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q6_k.h"

namespace detrun {
namespace {

using kernels::CpuOps;

/// Where the binary16 fields of a block of an integer type lie.
std::vector<std::size_t> half_fields(QType type) {
  switch (type) {
    case QType::kQ2_K:
      return {offsetof(kernels::BlockQ2_K, d), offsetof(kernels::BlockQ2_K, dmin)};
    case QType::kQ3_K:
      return {offsetof(kernels::BlockQ3_K, d)};
    case QType::kQ6_K:
      return {offsetof(kernels::BlockQ6_K, d)};
    case QType::kQ4_1:
    case QType::kQ5_1:
    case QType::kQ4_K:
    case QType::kQ5_K:
      return {0, 2};
    default:
      return {0};
  }
}

class Inputs {
 public:
  explicit Inputs(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Magnitudes 2^-8 to 2^3; now and then -0 or a subnormal.
  float value() {
    const std::uint64_t r = next();
    const std::uint32_t sign = (r & 1) != 0 ? 0x80000000u : 0u;
    if (r % 61 == 0) return kernels::f32_from_bits(sign);
    if (r % 67 == 0) return kernels::f32_from_bits(sign | (static_cast<std::uint32_t>(r >> 44)));
    const auto exponent = static_cast<std::uint32_t>(119 + (r >> 8) % 11);
    return kernels::f32_from_bits(sign | exponent << 23 | static_cast<std::uint32_t>(r >> 41));
  }
  std::vector<float> values(std::size_t n) {
    std::vector<float> v(n);
    for (float& x : v) x = value();
    return v;
  }
  /// A matrix (n, k) as it lies in a file.
  std::vector<std::byte> matrix(QType type, std::uint64_t k, std::uint64_t n) {
    const QTypeInfo& info = qtype_info(type);
    std::vector<std::byte> bytes(k / info.block_elems * n * info.block_bytes);
    const std::vector<std::size_t> halves = half_fields(type);
    for (std::byte* at = bytes.data(); at != bytes.data() + bytes.size(); at += info.block_bytes) {
      put_block(info, halves, at);
    }
    return bytes;
  }

 private:
  void put_block(const QTypeInfo& info, std::span<const std::size_t> halves, std::byte* out) {
    if (info.block_elems == 1) {
      const float v = value();
      const std::uint16_t half =
          info.type == QType::kBF16 ? kernels::f32_to_bf16(v) : kernels::f32_to_f16(v);
      std::memcpy(out, info.type == QType::kF32 ? static_cast<const void*>(&v) : &half,
                  info.block_bytes);
      return;
    }
    // Integers of any value around the scale and, in many types, a minimum.
    for (std::uint32_t i = 0; i < info.block_bytes; i += 8) {
      const std::uint64_t r = next();
      std::memcpy(out + i, &r, std::min<std::size_t>(sizeof r, info.block_bytes - i));
    }
    for (const std::size_t at : halves) {
      const std::uint16_t field = kernels::f32_to_f16(value());
      std::memcpy(out + at, &field, sizeof field);
    }
  }

  std::uint64_t state_;
};

template <class T>
void append(std::vector<std::byte>& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

using Output = std::vector<std::byte>;

struct MatmulShape {
  std::uint32_t n_rows;
  std::uint64_t n;
  std::uint64_t k;
};
// Floats come in panels of 16, integers of 8, in tiles of up to four panels or four rows; each
// shape has a rest beyond them. k is more than the 32 lanes of clause 1, than the 8 of clause 3.
constexpr MatmulShape kFloatVector{1, 83, 75};
constexpr MatmulShape kFloatMatrix{7, 35, 75};
constexpr MatmulShape kShortVector{1, 43, 11 * 32};  // types with 32 elements a block
constexpr MatmulShape kShortMatrix{5, 27, 11 * 32};
constexpr MatmulShape kLongVector{1, 35, 9 * 256};  // with 256
constexpr MatmulShape kLongMatrix{5, 19, 2 * 256};

void run_matmul(const CpuOps& ops, std::uint32_t gguf_id, MatmulShape shape, Output& out) {
  const QTypeInfo& type = *find_qtype(gguf_id);
  const kernels::MatmulOps* matmul = find_matmul(ops, gguf_id);
  const std::uint64_t k = shape.k;
  Inputs inputs(1000 + gguf_id);
  const std::vector<std::byte> rows = inputs.matrix(type.type, k, shape.n);
  const std::uint64_t n_groups = (shape.n + matmul->group - 1) / matmul->group;
  CpuMemory packed(matmul->packed_bytes(k, shape.n), "the self-test");
  matmul->pack(rows.data(), k, shape.n, 0, n_groups, packed.data());

  const kernels::InputOps& input = ops.inputs[static_cast<int>(matmul->input)];
  const std::uint64_t row_bytes = input.row_bytes(k);
  CpuMemory x(row_bytes * shape.n_rows, "the self-test");
  for (std::uint32_t r = 0; r < shape.n_rows; ++r) {
    input.prepare(inputs.values(k).data(), k, x.data() + r * row_bytes);
  }
  std::vector<float> y(shape.n_rows * shape.n);
  const kernels::MatmulArgs args{packed.data(), x.data(), row_bytes, shape.n_rows, k,
                                 shape.n,       y.data()};
  matmul->matmul(&args, 0, n_groups);
  append<float>(out, y);
  std::vector<float> decoded(k);
  matmul->decode_row(packed.data(), k, shape.n, shape.n - 2, decoded.data());
  append<float>(out, decoded);
}

/// What may change the scores of a head, beside q and K.
struct AttentionCase {
  bool f16;
  std::uint32_t window;  ///< 0: every position
  float softcap;         ///< 0: none
  bool sink;
};

void run_attention(const CpuOps& ops, AttentionCase c, Output& out) {
  const bool f16 = c.f16;
  constexpr std::uint32_t kHeadDim = 20;
  constexpr std::uint64_t kStride = 24;
  constexpr std::uint32_t kPositions = 139;  // two blocks of 64 and a rest
  Inputs inputs(2000);
  CpuMemory k(kPositions * kStride * sizeof(float), "the self-test");
  CpuMemory v(kPositions * kStride * sizeof(float), "the self-test");
  for (CpuMemory* part : {&k, &v}) {
    for (std::uint32_t p = 0; p < kPositions; ++p) {
      const std::vector<float> row = inputs.values(kHeadDim);
      if (f16) {
        ops.kv_write_f16(row.data(), kHeadDim, part->as<std::uint16_t>() + p * kStride);
      } else {
        ops.kv_write_f32(row.data(), kHeadDim, part->as<float>() + p * kStride);
      }
    }
  }
  const std::vector<float> q = inputs.values(kHeadDim);
  CpuMemory scratch(ops.attention_scratch_floats(kHeadDim) * sizeof(float), "the self-test");
  std::array<float, kHeadDim> y{};
  const float sink = inputs.value();
  for (const std::uint32_t n : {1u, 63u, 64u, 65u, kPositions}) {
    const kernels::AttentionArgs args{
        .q = q.data(),
        .k = k.data(),
        .v = v.data(),
        .stride = kStride,
        .head_dim = kHeadDim,
        .n_visible = n,
        .first_visible = c.window != 0 && n > c.window ? n - c.window : 0,
        .scale = 0.223606795f,
        .softcap = c.softcap,
        .sink = c.sink ? &sink : nullptr,
        .scratch = scratch.as<float>(),
        .out = y.data(),
    };
    (f16 ? ops.attention_f16 : ops.attention_f32)(&args);
    append<float>(out, y);
  }
}

void run_rope(const CpuOps& ops, bool halves, Output& out) {
  Inputs inputs(3000);
  std::vector<float> x = inputs.values(3 * 24);
  const std::vector<float> cos = inputs.values(11);
  const std::vector<float> sin = inputs.values(11);
  const kernels::RopeArgs args{x.data(), 3, 24, 22, cos.data(), sin.data()};
  (halves ? ops.rope_halves : ops.rope_adjacent)(&args);
  append<float>(out, x);
}

void run_quantize(const CpuOps& ops, Output& out) {
  Inputs inputs(4000);
  std::vector<float> x = inputs.values(96);
  for (std::size_t i = 32; i < 64; ++i) x[i] *= 0x1p-110f;  // below 2^-100: quantizes to zero
  const kernels::InputOps& input = ops.inputs[static_cast<int>(kernels::InputForm::kQuantized)];
  CpuMemory row(input.row_bytes(x.size()), "the self-test");
  input.prepare(x.data(), x.size(), row.data());
  append<std::byte>(out, {row.data(), row.size()});
}

/// run(x, y, n) of an operator that works in place.
template <class Run>
void run_in_place(Output& out, Run run) {
  Inputs inputs(5000);
  std::vector<float> x = inputs.values(77);
  const std::vector<float> y = inputs.values(77);
  run(x.data(), y.data(), x.size());
  append<float>(out, x);
}

/// Enough arguments that a change of any coefficient shows in some last bit. Finite ones: which NaN
/// follows from an infinity is the machine's own affair.
std::vector<float> function_inputs(float factor) {
  Inputs inputs(5500);
  std::vector<float> x = inputs.values(2003);
  for (float& v : x) v *= factor;
  x[3] = 100.0f;
  x[4] = -102.5f;
  return x;
}

constexpr std::array<std::string_view, kernels::kFunctions> kFunctionNames = {
    "exp", "log", "tanh", "erf", "sigmoid", "silu", "gelu_tanh", "gelu_erf"};

void run_function(const CpuOps& ops, std::size_t which, Output& out) {
  for (const float factor : {12.0f, 0.25f}) {
    std::vector<float> x = function_inputs(factor);
    ops.functions[which](x.data(), x.size(), x.data());
    append<float>(out, x);
  }
}

void run_softcap(const CpuOps& ops, Output& out) {
  std::vector<float> x = function_inputs(12.0f);
  ops.softcap(x.data(), 30.0f, x.size());
  append<float>(out, x);
}

void run_layernorm(const CpuOps& ops, Output& out) {
  Inputs inputs(6500);
  const std::vector<float> x = inputs.values(107);
  const std::vector<float> weight = inputs.values(107);
  const std::vector<float> bias = inputs.values(107);
  std::vector<float> y(107);
  for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
    ops.layernorm(x.data(), weight.data(), b, 1e-5f, y.size(), y.data());
    append<float>(out, y);
  }
}

void run_rmsnorm(const CpuOps& ops, Output& out) {
  Inputs inputs(6000);
  const std::vector<float> x = inputs.values(107);
  const std::vector<float> weight = inputs.values(107);
  std::vector<float> y(107);
  ops.rmsnorm(x.data(), weight.data(), 1e-5f, y.size(), y.data());
  append<float>(out, y);
}

void run_kv_write(const CpuOps& ops, Output& out) {
  Inputs inputs(7000);
  const std::vector<float> x = inputs.values(45);
  std::array<std::uint16_t, 45> half{};
  ops.kv_write_f16(x.data(), x.size(), half.data());
  append<std::uint16_t>(out, half);
  std::array<float, 45> full{};
  ops.kv_write_f32(x.data(), x.size(), full.data());
  append<float>(out, full);
}

/// What each operator that can refuse says of values just within and just beyond its limits, placed
/// in the last, partial register.
void run_refusals(const CpuOps& ops, Output& out) {
  constexpr std::size_t kN = 77;
  const std::vector<float> ones(kN, 1.0f);
  std::vector<float> y(kN);
  std::array<std::uint16_t, kN> half{};
  std::vector<bool> good;
  for (const std::uint32_t bits : {0x477fefffu, kernels::kF16OverflowBits, 0x5f000000u, 0x60800000u,
                                   0x7f7fffffu, kernels::kInfBits, kernels::kNanBits}) {
    std::vector<float> x(kN, 0.5f);
    x[75] = kernels::f32_from_bits(bits);
    good.push_back(ops.kv_write_f16(x.data(), kN, half.data()));
    good.push_back(ops.kv_write_f32(x.data(), kN, y.data()));
    good.push_back(ops.rmsnorm(x.data(), ones.data(), 1e-5f, kN, y.data()));
    good.push_back(ops.layernorm(x.data(), ones.data(), nullptr, 1e-5f, kN, y.data()));
    for (const kernels::InputOps& input : ops.inputs) {
      x.resize(96, 0.5f);
      CpuMemory row(input.row_bytes(x.size()), "the self-test");
      good.push_back(input.prepare(x.data(), x.size(), row.data()));
    }
  }
  for (const bool accepted : good) out.push_back(static_cast<std::byte>(accepted));
}

}  // namespace

std::vector<KnownAnswer> run_self_test(const CpuOps& ops) {
  const FpControlScope fp_control;
  std::vector<KnownAnswer> answers;
  const auto answer = [&answers](std::string operation, auto&& run) {
    Output out;
    run(out);
    answers.push_back({std::move(operation), to_hex(xxh3_128(out))});
  };
  for (const kernels::MatmulOps* matmul : std::span(ops.matmuls, ops.n_matmuls)) {
    const std::uint32_t id = matmul->gguf_id;
    const std::string name(find_qtype(id)->name);
    const std::uint32_t elems = find_qtype(id)->block_elems;
    const MatmulShape vector = elems == 1 ? kFloatVector : elems == 32 ? kShortVector : kLongVector;
    const MatmulShape matrix = elems == 1 ? kFloatMatrix : elems == 32 ? kShortMatrix : kLongMatrix;
    answer("vector " + name, [&](Output& out) { run_matmul(ops, id, vector, out); });
    answer("matmul " + name, [&](Output& out) { run_matmul(ops, id, matrix, out); });
  }
  const auto attend = [&](AttentionCase c) {
    return [&ops, c](Output& out) { run_attention(ops, c, out); };
  };
  answer("attention f16", attend({true, 0, 0.0f, false}));
  answer("attention f32", attend({false, 0, 0.0f, false}));
  answer("attention window", attend({true, 67, 0.0f, false}));
  answer("attention softcap", attend({false, 0, 1.5f, false}));
  answer("attention sink", attend({true, 5, 20.0f, true}));
  answer("rope adjacent", [&](Output& out) { run_rope(ops, false, out); });
  answer("rope halves", [&](Output& out) { run_rope(ops, true, out); });
  answer("quantize", [&](Output& out) { run_quantize(ops, out); });
  const auto in_place = [&](const char* operation, auto run) {
    answer(operation, [&](Output& out) { run_in_place(out, run); });
  };
  in_place("silu_mul", ops.silu_mul);
  in_place("add", ops.add);
  in_place("mul", ops.mul);
  in_place("scale", [&](float* x, const float*, std::uint64_t n) { ops.scale(x, 1.7f, n); });
  in_place("add_scaled",
           [&](float* x, const float* y, std::uint64_t n) { ops.add_scaled(x, y, -1.7f, n); });
  answer("softcap", [&](Output& out) { run_softcap(ops, out); });
  for (std::size_t i = 0; i < kFunctionNames.size(); ++i) {
    answer(std::string(kFunctionNames.at(i)), [&](Output& out) { run_function(ops, i, out); });
  }
  answer("rmsnorm", [&](Output& out) { run_rmsnorm(ops, out); });
  answer("layernorm", [&](Output& out) { run_layernorm(ops, out); });
  answer("kv_write", [&](Output& out) { run_kv_write(ops, out); });
  answer("refusals", [&](Output& out) { run_refusals(ops, out); });
  return answers;
}

std::string failed_self_test(const CpuOps& ops) {
  const std::vector<KnownAnswer>& golden = golden_answers();
  const std::vector<KnownAnswer> answers = run_self_test(ops);
  if (answers.size() != golden.size()) return "every kernel";
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].operation != golden[i].operation || answers[i].xxh3 != golden[i].xxh3) {
      return answers[i].operation;
    }
  }
  return {};
}

}  // namespace detrun
