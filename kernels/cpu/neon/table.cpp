// NEON's two rows in the list of instruction sets: they differ in the products of bytes.
#include "kernels/cpu/neon/neon.h"

namespace detrun::kernels::neon {

namespace {

struct MatmulList {
  const MatmulOps* rows[3 + kIntegerTypes];
};

constexpr MatmulList matmul_list(const MatmulOps* integer) {
  MatmulList list{{&kMatmulF32, &kMatmulF16, &kMatmulBF16}};
  for (int i = 0; i < kIntegerTypes; ++i) list.rows[3 + i] = integer + i;
  return list;
}
constexpr MatmulList kWidening = matmul_list(kMatmulsInteger);
constexpr MatmulList kDotprod = matmul_list(kMatmulsIntegerDotprod);

constexpr CpuOps ops(const char* name, const MatmulList& matmuls) {
  return {
      .name = name,
      .inputs = {{float_row_bytes, prepare_float}, {quantized_row_bytes, quantize}},
      .matmuls = matmuls.rows,
      .n_matmuls = sizeof matmuls.rows / sizeof matmuls.rows[0],
      .rmsnorm = rmsnorm,
      .rope_adjacent = rope_adjacent,
      .rope_halves = rope_halves,
      .kv_write_f16 = kv_write_f16,
      .kv_write_f32 = kv_write_f32,
      .attention_scratch_floats = attention_scratch_floats,
      .attention_f16 = attention_f16,
      .attention_f32 = attention_f32,
      .attention_tile_scratch_floats = attention_tile_scratch_floats,
      .attention_tile_f16 = attention_tile_f16,
      .attention_tile_f32 = attention_tile_f32,
      .attention_blocks_f16 = attention_blocks_f16,
      .attention_blocks_f32 = attention_blocks_f32,
      .attention_merge = attention_merge,
      .layernorm = layernorm,
      .silu_mul = silu_mul,
      .add = add,
      .mul = mul,
      .scale = scale,
      .add_scaled = add_scaled,
      .softcap = softcap,
      .functions = {exp, log, tanh, erf, sigmoid, silu, gelu_tanh, gelu_erf},
  };
}

}  // namespace

const CpuOps kOps = ops("neon", kWidening);
const CpuOps kOpsDotprod = ops("neon-dotprod", kDotprod);

}  // namespace detrun::kernels::neon
