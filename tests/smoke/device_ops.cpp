// The device behind the table of an instruction set. Functions of a table take no context, so each
// makes its own memory on the device; slow, but these are tests.
#include <algorithm>
#include <array>
#include <cstring>

#include "device_memory.h"
#include "kernels/cpu/attention_slots.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cuda/planes.h"
#include "kernels_under_test.h"

namespace detrun::smoke {

namespace {

using kernels::AttentionArgs;
using kernels::CpuOps;
using kernels::Function;
using kernels::MatmulArgs;
using kernels::MatmulOps;

Kernels& device() {
  static const std::unique_ptr<Kernels> instance = make_device_kernels();
  return *instance;
}

Floats floats(const float* from, std::uint64_t n) { return {from, from + n}; }

/// False for an empty result, which is an error's. Any other size than n is the device's failure.
template <class T>
bool give(const std::vector<T>& result, std::uint64_t n, T* out) {
  if (result.empty() && n != 0) return false;
  if (result.size() != n) throw DeviceFailure("a result of the wrong size");
  std::copy(result.begin(), result.end(), out);
  return true;
}

/// For operators that know no error.
template <class T>
void give_all(const std::vector<T>& result, std::uint64_t n, T* out) {
  if (!give(result, n, out)) throw DeviceFailure("no result");
}

bool prepare_quantized(const float* x, std::uint64_t k, void* row) {
  const Quantized all = device().quantize(floats(x, k));
  const kernels::QuantizedRowOut out = kernels::quantized_row_out(row, k);
  std::copy(all.quants.begin(), all.quants.end(), out.q);
  std::copy(all.scales.begin(), all.scales.end(), out.d);
  std::copy(all.sums.begin(), all.sums.end(), out.bx);
  std::copy(all.half_sums.begin(), all.half_sums.end(), out.b16);
  return all.finite;
}

const MatmulOps& scalar_matmul(std::uint32_t id) {
  const CpuOps& scalar = kernels::scalar::kOps;
  return **std::find_if(scalar.matmuls, scalar.matmuls + scalar.n_matmuls,
                        [id](const MatmulOps* ops) { return ops->gguf_id == id; });
}

/// The scalar reference packs nothing: its packed matrix is the file's bytes, a group is a row.
template <std::uint32_t kId, Form kForm>
void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  const std::uint64_t n = std::min(g1, args->n) - g0;
  const auto* rows = static_cast<const std::byte*>(args->weight) +
                     scalar_matmul(kId).packed_bytes(args->k, 1) * g0;
  const Floats y =
      device_product(kId, rows, n, args->k, {args->x, args->x_row_bytes, args->n_rows}, kForm);
  for (std::uint64_t r = 0; r < args->n_rows; ++r) {
    std::copy_n(y.data() + r * n, n, args->y + r * args->n + g0);
  }
}

template <std::uint32_t kId>
void decode_row(const void* packed, std::uint64_t k, std::uint64_t n, std::uint64_t i, float* out) {
  give_all(device_embed(kId, static_cast<const std::byte*>(packed), n, k, {static_cast<int>(i)}), k,
           out);
}

template <std::uint32_t kId, Form kForm>
const MatmulOps* matmul_ops() {
  static const MatmulOps row = [] {
    MatmulOps ops = scalar_matmul(kId);
    ops.group = 1;
    ops.matmul = matmul<kId, kForm>;
    ops.decode_row = decode_row<kId>;
    return ops;
  }();
  return &row;
}

template <bool kF16, Form kForm>
void attention(const AttentionArgs* args) {
  const std::uint64_t element = kF16 ? sizeof(std::uint16_t) : sizeof(float);
  Attention in{};
  in.q = floats(args->q, args->head_dim);
  if (args->sink != nullptr) in.sinks = {*args->sink};
  for (const auto& [from, to] : {std::pair{args->k, &in.k}, std::pair{args->v, &in.v}}) {
    for (std::uint64_t p = 0; p < args->n_visible; ++p) {
      const auto* row = static_cast<const std::byte*>(from) + p * args->stride * element;
      to->insert(to->end(), row, row + args->head_dim * element);
    }
  }
  in.f16 = kF16;
  in.first_visible = {args->first_visible};
  in.n_visible = {args->n_visible};
  in.n_positions = args->n_visible;
  in.n_heads = in.n_kv_heads = 1;
  in.head_dim = args->head_dim;
  in.scale = args->scale;
  in.softcap = args->softcap;
  give_all(device().attention(in, kForm), args->head_dim, args->out);
}

template <bool kF16, Form kForm>
void attention_tile(const kernels::AttentionTileArgs* args) {
  kernels::for_each_slot(*args, attention<kF16, kForm>);
}

bool rmsnorm(const float* x, const float* weight, float eps, std::uint64_t n, float* y) {
  const auto size = static_cast<unsigned>(n);
  return give(device().rmsnorm({floats(x, n), floats(weight, n), {}, eps, 1, size}), n, y);
}

bool layernorm(const float* x, const float* weight, const float* bias, float eps, std::uint64_t n,
               float* y) {
  const auto size = static_cast<unsigned>(n);
  const Floats b = bias != nullptr ? floats(bias, n) : Floats{};
  return give(device().layernorm({floats(x, n), floats(weight, n), b, eps, 1, size}), n, y);
}

template <Pairs kPairs>
void rope(const kernels::RopeArgs* args) {
  const std::uint64_t n = std::uint64_t{args->n_heads} * args->head_dim;
  const std::uint64_t half = args->rope_dim / 2;
  give_all(device().rope({floats(args->x, n), floats(args->cos, half), floats(args->sin, half), 1,
                          args->n_heads, args->head_dim, args->rope_dim, kPairs}),
           n, args->x);
}

bool kv_write_f16(const float* x, std::uint64_t n, std::uint16_t* out) {
  return give(device().kv_write_f16(floats(x, n)), n, out);
}
bool kv_write_f32(const float* x, std::uint64_t n, float* out) {
  return give(device().kv_write_f32(floats(x, n)), n, out);
}

template <Elementwise kOp>
void with_row(float* x, const float* y, std::uint64_t n) {
  give_all(device().elementwise(kOp, floats(x, n), floats(y, n), 0.0f), n, x);
}
template <Elementwise kOp>
void with_factor(float* x, float factor, std::uint64_t n) {
  give_all(device().elementwise(kOp, floats(x, n), {}, factor), n, x);
}
void add_scaled(float* x, const float* y, float factor, std::uint64_t n) {
  give_all(device().elementwise(Elementwise::kAddScaled, floats(x, n), floats(y, n), factor), n, x);
}

template <int kFunction>
void function(const float* x, std::uint64_t n, float* y) {
  give_all(device().function(static_cast<Function>(kFunction), floats(x, n)), n, y);
}

template <Form kForm>
CpuOps make_table() {
#define DETRUN_MATMUL(name) , matmul_ops<kernels::Type##name::kGgufId, kForm>()
  static const std::array matmuls = {matmul_ops<0, kForm>(), matmul_ops<1, kForm>(),
                                     matmul_ops<30, kForm>() DETRUN_QUANT_TYPES(DETRUN_MATMUL)};
#undef DETRUN_MATMUL
  CpuOps ops = kernels::scalar::kOps;  // row sizes, scratch, preparing floats
  ops.name = kForm == Form::kVector ? "device" : "device, many rows";
  ops.inputs[static_cast<int>(kernels::InputForm::kQuantized)].prepare = prepare_quantized;
  ops.matmuls = matmuls.data();
  ops.n_matmuls = matmuls.size();
  ops.rmsnorm = rmsnorm;
  ops.rope_adjacent = rope<Pairs::kAdjacent>;
  ops.rope_halves = rope<Pairs::kHalves>;
  ops.kv_write_f16 = kv_write_f16;
  ops.kv_write_f32 = kv_write_f32;
  ops.attention_f16 = attention<true, kForm>;
  ops.attention_f32 = attention<false, kForm>;
  ops.attention_tile_f16 = attention_tile<true, kForm>;
  ops.attention_tile_f32 = attention_tile<false, kForm>;
  // The device splits over blocks inside its kernels and hands out no state of a block.
  ops.attention_blocks_f16 = nullptr;
  ops.attention_blocks_f32 = nullptr;
  ops.attention_merge = nullptr;
  ops.layernorm = layernorm;
  ops.silu_mul = with_row<Elementwise::kSiluMul>;
  ops.add = with_row<Elementwise::kAdd>;
  ops.mul = with_row<Elementwise::kMul>;
  ops.scale = with_factor<Elementwise::kScale>;
  ops.add_scaled = add_scaled;
  ops.softcap = with_factor<Elementwise::kSoftcap>;
  [&ops]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    ((ops.functions[kIndex] = function<kIndex>), ...);
  }
  (std::make_integer_sequence<int, kernels::kFunctions>{});
  return ops;
}

}  // namespace

const CpuOps& device_ops(Form form) {
  static const CpuOps vector = make_table<Form::kVector>();
  static const CpuOps matrix = make_table<Form::kMatrix>();
  return form == Form::kVector ? vector : matrix;
}

}  // namespace detrun::smoke
