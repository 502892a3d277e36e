// Products, quantization, rows and functions of the golden cases, through the table of operators.
#include "golden_operators.h"

#include <array>
#include <string_view>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/error.h"
#include "golden_inputs.h"
#include "kernels/contract.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/fp.h"

namespace golden {

using namespace detrun;
using kernels::CpuOps;

namespace {

const QTypeInfo& type_named(const std::string& name) {
  for (std::uint32_t id = 0; id < 64; ++id) {
    const QTypeInfo* type = find_qtype(id);
    if (type != nullptr && type->name == name) return *type;
  }
  throw_usage("no tensor type '" + name + "'");
}

/// The input of a case: tensor `number`, of the kind that key x names.
std::vector<float> input(const Case& c, std::uint64_t n, std::uint64_t number = 0) {
  return values(c.text("x"), c.integer("seed"), number, n);
}

void quantize(const Case& c, const CpuOps& ops, Result& out) {
  const std::uint64_t k = c.integer("k");
  const kernels::InputOps& form = ops.inputs[static_cast<int>(kernels::InputForm::kQuantized)];
  CpuMemory row(form.row_bytes(k), "a golden case");
  DETRUN_CHECK(form.prepare(input(c, k).data(), k, row.data()));
  const kernels::QuantizedRow quantized = kernels::quantized_row(row.data(), k);
  for (std::uint64_t b = 0; b < k / kernels::kActivationBlock; ++b) {
    out.add(quantized.d[b]);
    const std::int8_t* q = quantized.q + b * kernels::kActivationBlock;
    out.add(std::vector<std::int8_t>(q, q + kernels::kActivationBlock));
  }
}

void norm(const Case& c, const CpuOps& ops, Result& out) {
  const std::uint64_t n = c.integer("n");
  const std::vector<float> x = input(c, n);
  const std::vector<float> weight = values("plain", c.integer("seed"), 1, n);
  std::vector<float> y(n);
  if (c.op == "rmsnorm") {
    DETRUN_CHECK(ops.rmsnorm(x.data(), weight.data(), c.fraction("eps"), n, y.data()));
  } else {
    const std::vector<float> bias = values("plain", c.integer("seed"), 2, n);
    const float* b = c.integer("bias") != 0 ? bias.data() : nullptr;
    DETRUN_CHECK(ops.layernorm(x.data(), weight.data(), b, c.fraction("eps"), n, y.data()));
  }
  out.add(y);
}

void elementwise(const Case& c, const CpuOps& ops, Result& out) {
  const std::uint64_t n = c.integer("n");
  const float factor = c.fraction("factor");
  const std::vector<float> a = input(c, n);
  const std::vector<float> b = input(c, n, 1);
  std::vector<float> y = a;
  ops.add(y.data(), b.data(), n);
  out.add(y);
  y = a;
  ops.mul(y.data(), b.data(), n);
  out.add(y);
  y = a;
  ops.scale(y.data(), factor, n);
  out.add(y);
  y = a;
  ops.add_scaled(y.data(), b.data(), factor, n);
  out.add(y);
}

void kv_round(const Case& c, const CpuOps& ops, Result& out) {
  const std::uint64_t n = c.integer("n");
  const std::vector<float> x = input(c, n);
  std::vector<float> y(n);
  if (c.text("kv") == "f32") {
    DETRUN_CHECK(ops.kv_write_f32(x.data(), n, y.data()));
  } else {
    std::vector<std::uint16_t> half(n);
    DETRUN_CHECK(ops.kv_write_f16(x.data(), n, half.data()));
    for (std::uint64_t i = 0; i < n; ++i) y[i] = kernels::f16_to_f32(half[i]);
  }
  out.add(y);
}

/// The functions of clause 4 by name, in the order of kernels::Function.
constexpr std::array<std::string_view, kernels::kFunctions> kFunctionNames = {
    "exp", "log", "tanh", "erf", "sigmoid", "silu", "gelu_tanh", "gelu_erf"};

bool run_function(const Case& c, const CpuOps& ops, Result& out) {
  for (std::size_t f = 0; f < kFunctionNames.size(); ++f) {
    if (c.op != kFunctionNames[f]) continue;
    const std::uint64_t n = c.integer("n");
    std::vector<float> y(n);
    ops.functions[f](input(c, n).data(), n, y.data());
    out.add(y);
    return true;
  }
  return false;
}

}  // namespace

bool run_product(const Case& c, const CpuOps& ops, Result& out) {
  if (c.op != "product") return false;
  const QTypeInfo& type = type_named(c.text("type"));
  const kernels::MatmulOps* matmul = find_matmul(ops, static_cast<std::uint32_t>(type.type));
  if (matmul == nullptr) {
    throw_usage("instruction set " + std::string(ops.name) + " has no product of " +
                c.text("type"));
  }
  const std::uint64_t n = c.integer("n");
  const std::uint64_t k = c.integer("k");
  const std::vector<std::byte> rows = matrix(type, c.text("w"), c.integer("seed"), 0, n, k);
  const std::uint64_t n_groups = (n + matmul->group - 1) / matmul->group;
  CpuMemory packed(matmul->packed_bytes(k, n), "a golden case");
  matmul->pack(rows.data(), k, n, 0, n_groups, packed.data());

  const kernels::InputOps& form = ops.inputs[static_cast<int>(matmul->input)];
  CpuMemory x(form.row_bytes(k), "a golden case");
  DETRUN_CHECK(form.prepare(input(c, k, 1).data(), k, x.data()));
  std::vector<float> y(n);
  const kernels::MatmulArgs args{packed.data(), x.data(), form.row_bytes(k), 1, k, n, y.data()};
  matmul->matmul(&args, 0, n_groups);
  out.add(y);
  std::vector<float> row(k);
  matmul->decode_row(packed.data(), k, n, n - 1, row.data());
  out.add(row);
  return true;
}

bool run_row(const Case& c, const CpuOps& ops, Result& out) {
  if (run_function(c, ops, out)) return true;
  if (c.op == "quantize") {
    quantize(c, ops, out);
  } else if (c.op == "softcap") {
    std::vector<float> x = input(c, c.integer("n"));
    ops.softcap(x.data(), c.fraction("cap"), x.size());
    out.add(x);
  } else if (c.op == "sum32") {
    out.add(kernels::sum32(input(c, c.integer("n")).data(), c.integer("n")));
  } else if (c.op == "rmsnorm" || c.op == "layernorm") {
    norm(c, ops, out);
  } else if (c.op == "elementwise") {
    elementwise(c, ops, out);
  } else if (c.op == "kv") {
    kv_round(c, ops, out);
  } else {
    return false;
  }
  return true;
}

Result run_case(const Case& c, const CpuOps& ops) {
  const FpControlScope fp_control;
  Result out;
  for (const auto run : {run_product, run_row, run_attention, run_choice}) {
    if (run(c, ops, out)) return out;
  }
  throw_usage("no golden operator '" + c.op + "'");
}

std::string result_hash(const Case& c, const CpuOps& ops) {
  return to_hex(xxh3_128(run_case(c, ops).bytes()));
}

}  // namespace golden
