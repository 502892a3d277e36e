// Inputs are made of integers (splitmix64), so that nothing but the kernel under test computes.
// The shapes cross every boundary: lanes, panels, blocks, rows of a tile, tails.
#include "backend/cpu_self_test.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <span>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "backend/self_test_attention.h"
#include "backend/self_test_inputs.h"
#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/quant.h"
#include "kernels/fp.h"

namespace detrun {
namespace {

using kernels::CpuOps;

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

/// Memory that one product after the other uses: fresh pages would take longer than the products.
class Scratch {
 public:
  std::vector<std::byte> rows;
  std::vector<float> x, y, decoded;

  std::byte* packed(std::uint64_t n_bytes) { return zeroed(packed_, n_bytes); }
  std::byte* prepared(std::uint64_t n_bytes) { return zeroed(prepared_, n_bytes); }

 private:
  static std::byte* zeroed(CpuMemory& memory, std::uint64_t n_bytes) {
    if (memory.size() < n_bytes) {
      memory = CpuMemory(n_bytes, "the self-test");
    } else {
      std::memset(memory.data(), 0, n_bytes);
    }
    return memory.data();
  }
  CpuMemory packed_, prepared_;
};

void run_matmul(const CpuOps& ops, std::uint32_t gguf_id, MatmulShape shape, Scratch& scratch,
                Output& out) {
  const QTypeInfo& type = *find_qtype(gguf_id);
  const kernels::MatmulOps* matmul = find_matmul(ops, gguf_id);
  const std::uint64_t k = shape.k;
  Inputs inputs(1000 + gguf_id);
  inputs.fill(type.type, k, shape.n, scratch.rows);
  const std::uint64_t n_groups = (shape.n + matmul->group - 1) / matmul->group;
  std::byte* packed = scratch.packed(matmul->packed_bytes(k, shape.n));
  matmul->pack(scratch.rows.data(), k, shape.n, 0, n_groups, packed);

  const kernels::InputOps& input = ops.inputs[static_cast<int>(matmul->input)];
  const std::uint64_t row_bytes = input.row_bytes(k);
  std::byte* x = scratch.prepared(row_bytes * shape.n_rows);
  scratch.x.resize(k);
  for (std::uint32_t r = 0; r < shape.n_rows; ++r) {
    inputs.fill(scratch.x);
    input.prepare(scratch.x.data(), k, x + r * row_bytes);
  }
  scratch.y.assign(shape.n_rows * shape.n, 0.0f);
  const kernels::MatmulArgs args{packed, x, row_bytes, shape.n_rows, k, shape.n, scratch.y.data()};
  matmul->matmul(&args, 0, n_groups);
  append<float>(out, scratch.y);
  scratch.decoded.assign(k, 0.0f);
  matmul->decode_row(packed, k, shape.n, shape.n - 2, scratch.decoded.data());
  append<float>(out, scratch.decoded);
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

/// One operation of the self-test.
struct Question {
  std::string operation;
  std::function<void(Scratch&, Output&)> run;
};

std::vector<Question> all_questions(const CpuOps& ops) {
  std::vector<Question> questions;
  const auto ask_in = [&questions](std::string operation, auto&& run) {
    questions.push_back({std::move(operation), run});
  };
  const auto ask = [&questions](std::string operation, auto&& run) {
    questions.push_back(
        {std::move(operation), [run](Scratch& /*unused*/, Output& out) { run(out); }});
  };
  for (const kernels::MatmulOps* matmul : std::span(ops.matmuls, ops.n_matmuls)) {
    const std::uint32_t id = matmul->gguf_id;
    const std::string name(find_qtype(id)->name);
    const std::uint32_t elems = find_qtype(id)->block_elems;
    const MatmulShape vector = elems == 1 ? kFloatVector : elems == 32 ? kShortVector : kLongVector;
    const MatmulShape matrix = elems == 1 ? kFloatMatrix : elems == 32 ? kShortMatrix : kLongMatrix;
    const auto multiply = [&ops, id](MatmulShape shape) {
      return [&ops, id, shape](Scratch& scratch, Output& out) {
        run_matmul(ops, id, shape, scratch, out);
      };
    };
    ask_in("vector " + name, multiply(vector));
    ask_in("matmul " + name, multiply(matrix));
  }
  const auto attend = [&](AttentionCase c) {
    return [&ops, c](Output& out) { ask_attention(ops, c, out); };
  };
  ask("attention f16", attend({true, 0, 0.0f, false}));
  ask("attention f32", attend({false, 0, 0.0f, false}));
  ask("attention window", attend({true, 67, 0.0f, false}));
  ask("attention softcap", attend({false, 0, 1.5f, false}));
  ask("attention sink", attend({true, 5, 20.0f, true}));
  const auto attend_tile = [&](AttentionCase c, bool split) {
    return [&ops, c, split](Output& out) { ask_attention_tile(ops, c, split, out); };
  };
  ask("attention tile f16", attend_tile({true, 0, 0.0f, false}, false));
  ask("attention tile f32", attend_tile({false, 0, 0.0f, false}, false));
  ask("attention tile sinks", attend_tile({true, 67, 1.5f, true}, false));
  ask("attention blocks f16", attend_tile({true, 0, 0.0f, false}, true));
  ask("attention blocks f32", attend_tile({false, 0, 0.0f, true}, true));
  ask("rope adjacent", [&ops](Output& out) { run_rope(ops, false, out); });
  ask("rope halves", [&ops](Output& out) { run_rope(ops, true, out); });
  ask("quantize", [&ops](Output& out) { run_quantize(ops, out); });
  const auto in_place = [&](const char* operation, auto run) {
    ask(operation, [run](Output& out) { run_in_place(out, run); });
  };
  in_place("silu_mul", ops.silu_mul);
  in_place("add", ops.add);
  in_place("mul", ops.mul);
  in_place("scale", [&ops](float* x, const float*, std::uint64_t n) { ops.scale(x, 1.7f, n); });
  in_place("add_scaled",
           [&ops](float* x, const float* y, std::uint64_t n) { ops.add_scaled(x, y, -1.7f, n); });
  ask("softcap", [&ops](Output& out) { run_softcap(ops, out); });
  for (std::size_t i = 0; i < kFunctionNames.size(); ++i) {
    ask(std::string(kFunctionNames.at(i)), [&ops, i](Output& out) { run_function(ops, i, out); });
  }
  ask("rmsnorm", [&ops](Output& out) { run_rmsnorm(ops, out); });
  ask("layernorm", [&ops](Output& out) { run_layernorm(ops, out); });
  ask("kv_write", [&ops](Output& out) { run_kv_write(ops, out); });
  ask("refusals", [&ops](Output& out) { run_refusals(ops, out); });
  return questions;
}

}  // namespace

std::vector<KnownAnswer> run_self_test(const CpuOps& ops, ThreadPool* pool) {
  const std::vector<Question> questions = all_questions(ops);
  std::vector<KnownAnswer> answers(questions.size());
  std::vector<Scratch> scratch(pool == nullptr ? 1 : pool->n_threads());
  std::vector<std::exception_ptr> errors(scratch.size());
  auto answer = [&](std::uint32_t i, std::uint32_t thread) {
    try {  // out of memory, on a thread that nobody else would hear of
      Output out;
      questions[i].run(scratch[thread], out);
      answers[i] = {questions[i].operation, to_hex(xxh3_128(out))};
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  const auto n = static_cast<std::uint32_t>(questions.size());
  if (pool != nullptr) {
    pool->run(n, answer);
  } else {
    const FpControlScope fp_control;
    for (std::uint32_t i = 0; i < n; ++i) answer(i, 0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return answers;
}

std::string failed_self_test(const CpuOps& ops, ThreadPool* pool) {
  const std::vector<KnownAnswer>& golden = golden_answers();
  const std::vector<KnownAnswer> answers = run_self_test(ops, pool);
  if (answers.size() != golden.size()) return "every kernel";
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].operation != golden[i].operation || answers[i].xxh3 != golden[i].xxh3) {
      return answers[i].operation;
    }
  }
  return {};
}

}  // namespace detrun
