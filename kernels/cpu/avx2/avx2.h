// The AVX2 + FMA + F16C implementation of the operators, one file a family; kernels/cpu/scalar has
// the same file names and is the reference. These files are compiled with flags of their own, so
// they include no STL: a weak STL function built with AVX2 could be linked into the whole program.
#pragma once

#include "kernels/cpu/ops.h"

namespace detrun::kernels::avx2 {

extern const MatmulOps kMatmulF32;
extern const MatmulOps kMatmulF16;
extern const MatmulOps kMatmulBF16;
extern const MatmulOps kMatmulQ8_0;

std::uint64_t float_row_bytes(std::uint64_t k);
bool prepare_float(const float* x, std::uint64_t k, void* row);
std::uint64_t quantized_row_bytes(std::uint64_t k);
bool quantize(const float* x, std::uint64_t k, void* row);

bool rmsnorm(const float* x, const float* weight, float eps, std::uint64_t n, float* y);
void rope_adjacent(const RopeArgs* args);
void rope_halves(const RopeArgs* args);
bool kv_write_f16(const float* x, std::uint64_t n, std::uint16_t* out);
bool kv_write_f32(const float* x, std::uint64_t n, float* out);
std::uint64_t attention_scratch_floats(std::uint32_t head_dim);
void attention_f16(const AttentionArgs* args);
void attention_f32(const AttentionArgs* args);
void silu_mul(float* gate, const float* up, std::uint64_t n);
void add(float* x, const float* y, std::uint64_t n);
void exp(const float* x, std::uint64_t n, float* y);

}  // namespace detrun::kernels::avx2
