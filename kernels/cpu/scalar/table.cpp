// The scalar reference's row in the list of instruction sets.
#include "kernels/cpu/scalar/scalar.h"

namespace detrun::kernels::scalar {

namespace {
constexpr const MatmulOps* kMatmuls[] = {&kMatmulF32, &kMatmulF16, &kMatmulBF16, &kMatmulQ8_0};
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
    .silu_mul = silu_mul,
    .add = add,
    .exp = exp,
};

}  // namespace detrun::kernels::scalar
