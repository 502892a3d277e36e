// The AVX2 + FMA + F16C implementation of the operators, one file a family; kernels/cpu/scalar has
// the same file names and is the reference. These files are compiled with flags of their own, so
// they include no STL: a weak STL function built with AVX2 could be linked into the whole program.
#pragma once

#include "kernels/cpu/ops.h"

namespace detrun::kernels::avx2 {

extern const MatmulOps kMatmulF32;
extern const MatmulOps kMatmulF16;
extern const MatmulOps kMatmulBF16;
extern const MatmulOps kMatmulQ4_0;
extern const MatmulOps kMatmulQ4_1;
extern const MatmulOps kMatmulQ5_0;
extern const MatmulOps kMatmulQ5_1;
extern const MatmulOps kMatmulQ8_0;
extern const MatmulOps kMatmulIQ4_NL;
extern const MatmulOps kMatmulQ2_K;
extern const MatmulOps kMatmulQ3_K;
extern const MatmulOps kMatmulQ4_K;
extern const MatmulOps kMatmulQ5_K;
extern const MatmulOps kMatmulQ6_K;
extern const MatmulOps kMatmulIQ4_XS;

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
std::uint64_t attention_tile_scratch_floats(std::uint32_t head_dim);
void attention_tile_f16(const AttentionTileArgs* args);
void attention_tile_f32(const AttentionTileArgs* args);
void attention_blocks_f16(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                          float* states);
void attention_blocks_f32(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                          float* states);
void attention_merge(const AttentionMergeArgs* args);
bool layernorm(const float* x, const float* weight, const float* bias, float eps, std::uint64_t n,
               float* y);
void silu_mul(float* gate, const float* up, std::uint64_t n);
void add(float* x, const float* y, std::uint64_t n);
void mul(float* x, const float* y, std::uint64_t n);
void scale(float* x, float factor, std::uint64_t n);
void add_scaled(float* x, const float* y, float factor, std::uint64_t n);
void softcap(float* x, float cap, std::uint64_t n);
void exp(const float* x, std::uint64_t n, float* y);
void log(const float* x, std::uint64_t n, float* y);
void tanh(const float* x, std::uint64_t n, float* y);
void erf(const float* x, std::uint64_t n, float* y);
void sigmoid(const float* x, std::uint64_t n, float* y);
void silu(const float* x, std::uint64_t n, float* y);
void gelu_tanh(const float* x, std::uint64_t n, float* y);
void gelu_erf(const float* x, std::uint64_t n, float* y);

}  // namespace detrun::kernels::avx2
