// Inputs are made of integers (splitmix64), so that nothing but the kernel under test computes.
// The shapes cross every boundary: lanes, panels, blocks, rows of a tile, tails.
#include "backend/cpu_self_test.h"

#include <array>
#include <cstring>
#include <span>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/quant.h"
#include "kernels/fp.h"

namespace detrun {
namespace {

using kernels::CpuOps;

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
  /// One block of a type as it lies in a file.
  std::vector<std::byte> block(QType type) {
    std::vector<std::byte> bytes(qtype_info(type).block_bytes);
    const float v = value();
    const std::uint16_t half = kernels::f32_to_f16(v);
    const std::uint16_t brain = kernels::f32_to_bf16(v);
    switch (type) {
      case QType::kF32:
        std::memcpy(bytes.data(), &v, sizeof v);
        break;
      case QType::kBF16:
        std::memcpy(bytes.data(), &brain, sizeof brain);
        break;
      default:  // a binary16, alone or followed by integers of any value
        for (std::byte& b : bytes) b = static_cast<std::byte>(next() >> 56);
        std::memcpy(bytes.data(), &half, sizeof half);
    }
    return bytes;
  }
  std::vector<std::byte> matrix(QType type, std::uint64_t k, std::uint64_t n) {
    std::vector<std::byte> bytes;
    for (std::uint64_t i = 0; i < k / qtype_info(type).block_elems * n; ++i) {
      const std::vector<std::byte> one = block(type);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return bytes;
  }

 private:
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
};
constexpr MatmulShape kVector{1, 83};  // five panels of 16 and a rest
constexpr MatmulShape kMatrix{7, 35};  // two panels and a rest; a tile of rows and one more

void run_matmul(const CpuOps& ops, std::uint32_t gguf_id, MatmulShape shape, Output& out) {
  const QTypeInfo& type = *find_qtype(gguf_id);
  const kernels::MatmulOps* matmul = find_matmul(ops, gguf_id);
  const std::uint64_t k = type.block_elems == 1 ? 75 : 11 * type.block_elems;
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

void run_attention(const CpuOps& ops, bool f16, Output& out) {
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
  for (const std::uint32_t n : {1u, 63u, 64u, 65u, kPositions}) {
    const kernels::AttentionArgs args{q.data(), k.data(), v.data(),     kStride,
                                      kHeadDim, n,        0.223606795f, scratch.as<float>(),
                                      y.data()};
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

void run_elementwise(const CpuOps& ops, int which, Output& out) {
  Inputs inputs(5000);
  std::vector<float> x = inputs.values(77);
  const std::vector<float> y = inputs.values(77);
  switch (which) {
    case 0:
      ops.silu_mul(x.data(), y.data(), x.size());
      break;
    case 1:
      ops.add(x.data(), y.data(), x.size());
      break;
    default:  // enough arguments that a change of any coefficient shows in some last bit
      x = inputs.values(2003);
      for (float& v : x) v *= 12.0f;
      x[3] = 100.0f;
      x[4] = -102.5f;
      ops.exp(x.data(), x.size(), x.data());
      break;
  }
  append<float>(out, x);
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
    answer("vector " + name, [&](Output& out) { run_matmul(ops, id, kVector, out); });
    answer("matmul " + name, [&](Output& out) { run_matmul(ops, id, kMatrix, out); });
  }
  answer("attention f16", [&](Output& out) { run_attention(ops, true, out); });
  answer("attention f32", [&](Output& out) { run_attention(ops, false, out); });
  answer("rope adjacent", [&](Output& out) { run_rope(ops, false, out); });
  answer("rope halves", [&](Output& out) { run_rope(ops, true, out); });
  answer("quantize", [&](Output& out) { run_quantize(ops, out); });
  answer("silu_mul", [&](Output& out) { run_elementwise(ops, 0, out); });
  answer("add", [&](Output& out) { run_elementwise(ops, 1, out); });
  answer("exp", [&](Output& out) { run_elementwise(ops, 2, out); });
  answer("rmsnorm", [&](Output& out) { run_rmsnorm(ops, out); });
  answer("kv_write", [&](Output& out) { run_kv_write(ops, out); });
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
