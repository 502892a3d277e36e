// Rows of the embedding matrix by token id, decoded as contract clause 3 says: one thread an
// element. The matrix lies as the GEMV kernels read it, so that a tied output matrix is stored
// once.
#pragma once

#include "kernels/cuda/planes.h"
#include "kernels/cuda/warp.cuh"
#include "kernels/fp.h"

namespace detrun::device {

// Which element of the matrix a thread decodes into out (n_tokens, n_cols).
struct EmbeddingElement {
  std::size_t out, at;
  bool live;
};

DETRUN_DEVICE EmbeddingElement embedding_element(const int* tokens, unsigned n_tokens,
                                                 unsigned n_cols) {
  const std::size_t out = element_index();
  const std::size_t row = out / n_cols;
  if (row >= n_tokens) return {0, 0, false};
  return {out, static_cast<std::size_t>(tokens[row]) * n_cols + out % n_cols, true};
}

// matrix (rows, n_cols); every token is a row of it. Grid ceil(n_tokens * n_cols / kRowThreads).
DETRUN_KERNEL_OF(kRowThreads)
void detrun_embed_f32(const float* matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                      float* out) {
  const EmbeddingElement element = embedding_element(tokens, n_tokens, n_cols);
  if (element.live) out[element.out] = matrix[element.at];
}
DETRUN_KERNEL_OF(kRowThreads)
void detrun_embed_f16(const std::uint16_t* matrix, const int* tokens, unsigned n_tokens,
                      unsigned n_cols, float* out) {
  const EmbeddingElement element = embedding_element(tokens, n_tokens, n_cols);
  if (element.live) out[element.out] = half_to_float(matrix[element.at]);
}
DETRUN_KERNEL_OF(kRowThreads)
void detrun_embed_bf16(const std::uint16_t* matrix, const int* tokens, unsigned n_tokens,
                       unsigned n_cols, float* out) {
  const EmbeddingElement element = embedding_element(tokens, n_tokens, n_cols);
  if (element.live) out[element.out] = bf16_to_f32(matrix[element.at]);
}

DETRUN_KERNEL_OF(kRowThreads)
void detrun_embed_q8_0(cuda::PlanesQ8_0 matrix, const int* tokens, unsigned n_tokens,
                       unsigned n_cols, float* out) {
  const EmbeddingElement element = embedding_element(tokens, n_tokens, n_cols);
  if (!element.live) return;
  const float d = half_to_float(matrix.scales[element.at / 32]);
  out[element.out] = f32_mul(d, int_to_float(matrix.quants[element.at]));
}

// Element e of a block: byte 32 (e / 64) + e mod 32, its high half where e / 32 is odd.
DETRUN_KERNEL_OF(kRowThreads)
void detrun_embed_q4_k(cuda::PlanesQ4K matrix, const int* tokens, unsigned n_tokens,
                       unsigned n_cols, float* out) {
  const EmbeddingElement element = embedding_element(tokens, n_tokens, n_cols);
  if (!element.live) return;
  const std::size_t block = element.at / 256;
  const unsigned e = static_cast<unsigned>(element.at % 256);
  const int byte = matrix.quants[block * 128 + e / 64 * 32 + e % 32];
  const int q = byte >> (e / 32 % 2 * 4) & 15;
  const int scale = matrix.scales[block * 16 + e / 32];
  const int minimum = matrix.scales[block * 16 + 8 + e / 32];
  const float value = f32_mul(half_to_float(matrix.d[2 * block]), int_to_float(scale * q));
  const float below = f32_mul(half_to_float(matrix.d[2 * block + 1]), int_to_float(minimum));
  out[element.out] = f32_sub(value, below);
}

// Element e = 128 n + 32 j + l of a block: the low or high half of byte 64 n + 32 (j mod 2) + l,
// and bits 2 j, 2 j + 1 of byte 32 n + l.
DETRUN_KERNEL_OF(kRowThreads)
void detrun_embed_q6_k(cuda::PlanesQ6K matrix, const int* tokens, unsigned n_tokens,
                       unsigned n_cols, float* out) {
  const EmbeddingElement element = embedding_element(tokens, n_tokens, n_cols);
  if (!element.live) return;
  const std::size_t block = element.at / 256;
  const unsigned e = static_cast<unsigned>(element.at % 256);
  const unsigned n = e / 128;
  const unsigned j = e / 32 % 4;
  const int low = matrix.low[block * 128 + 64 * n + j % 2 * 32 + e % 32] >> (j / 2 * 4) & 15;
  const int high = matrix.high[block * 64 + 32 * n + e % 32] >> (2 * j) & 3;
  const int scaled = matrix.scales[block * 16 + e / 16] * ((low | high << 4) - 32);
  out[element.out] = f32_mul(half_to_float(matrix.d[block]), int_to_float(scaled));
}

}  // namespace detrun::device
