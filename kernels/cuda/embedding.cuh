// Rows of the embedding matrix by token id, decoded as contract clause 3 says: one thread an
// element. The matrix lies as the GEMV kernels read it, so that a tied output matrix is stored
// once.
#pragma once

#include "kernels/cuda/quants.cuh"
#include "kernels/cuda/warp.cuh"

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

template <class Type>
DETRUN_KERNEL_OF(kRowThreads)
void detrun_embed_quant(cuda::Planes matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                        float* out) {
  using Layout = QuantLayout<Type>;
  const EmbeddingElement element = embedding_element(tokens, n_tokens, n_cols);
  if (!element.live) return;
  const std::size_t group = element.at / Type::kBlockElems;
  const int e = static_cast<int>(element.at % Type::kBlockElems);
  int q = quant_of<Layout>(matrix, element.at / 32, static_cast<unsigned>(e) % 32);
  if constexpr (Layout::kScales != 0) q *= scale_of<Layout>(matrix, group, e / Type::kScaleElems);
  float value = f32_mul(d_of<Layout>(matrix, group), int_to_float(q));
  if constexpr (Type::kMinimum == Minimum::kFloat) {
    value = f32_add(value, floor_of<Layout>(matrix, group));
  }
  if constexpr (Type::kMinimum == Minimum::kInteger) {
    const int minimum = minimum_of<Layout>(matrix, group, e / Type::kMinElems);
    value = f32_sub(value, f32_mul(floor_of<Layout>(matrix, group), int_to_float(minimum)));
  }
  out[element.out] = value;
}

}  // namespace detrun::device
