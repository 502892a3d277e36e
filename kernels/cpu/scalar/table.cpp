// The scalar reference's row in the list of instruction sets.
#include "kernels/cpu/scalar/scalar.h"

namespace detrun::kernels::scalar {

namespace {
constexpr const MatmulOps* kMatmuls[] = {&kMatmulF32,    &kMatmulF16,  &kMatmulBF16,  &kMatmulQ4_0,
                                         &kMatmulQ4_1,   &kMatmulQ5_0, &kMatmulQ5_1,  &kMatmulQ8_0,
                                         &kMatmulIQ4_NL, &kMatmulQ2_K, &kMatmulQ3_K,  &kMatmulQ4_K,
                                         &kMatmulQ5_K,   &kMatmulQ6_K, &kMatmulIQ4_XS};
}  // namespace

const CpuOps kOps = {
    .name = "scalar",
    .inputs = {{float_row_bytes, prepare_float}, {quantized_row_bytes, quantize}},
    .matmuls = kMatmuls,
    .n_matmuls = sizeof kMatmuls / sizeof kMatmuls[0],
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

}  // namespace detrun::kernels::scalar
