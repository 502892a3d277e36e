// Launchers of the embedding kernels.
#include "kernels/cuda/embedding.cuh"
#include "kernels/cuda/launch_rows.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

unsigned embedding_blocks(unsigned n_tokens, unsigned n_cols) {
  return blocks_for(static_cast<std::size_t>(n_tokens) * n_cols, kRowThreads);
}

}  // namespace

cudaError_t embed_f32(const float* matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                      float* out, cudaStream_t stream) {
  detrun_embed_f32<<<embedding_blocks(n_tokens, n_cols), kRowThreads, 0, stream>>>(
      matrix, tokens, n_tokens, n_cols, out);
  return cudaGetLastError();
}

cudaError_t embed_f16(const std::uint16_t* matrix, const int* tokens, unsigned n_tokens,
                      unsigned n_cols, float* out, cudaStream_t stream) {
  detrun_embed_f16<<<embedding_blocks(n_tokens, n_cols), kRowThreads, 0, stream>>>(
      matrix, tokens, n_tokens, n_cols, out);
  return cudaGetLastError();
}

cudaError_t embed_bf16(const std::uint16_t* matrix, const int* tokens, unsigned n_tokens,
                       unsigned n_cols, float* out, cudaStream_t stream) {
  detrun_embed_bf16<<<embedding_blocks(n_tokens, n_cols), kRowThreads, 0, stream>>>(
      matrix, tokens, n_tokens, n_cols, out);
  return cudaGetLastError();
}

cudaError_t embed_q8_0(PlanesQ8_0 matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                       float* out, cudaStream_t stream) {
  detrun_embed_q8_0<<<embedding_blocks(n_tokens, n_cols), kRowThreads, 0, stream>>>(
      matrix, tokens, n_tokens, n_cols, out);
  return cudaGetLastError();
}

cudaError_t embed_q4_k(PlanesQ4K matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                       float* out, cudaStream_t stream) {
  detrun_embed_q4_k<<<embedding_blocks(n_tokens, n_cols), kRowThreads, 0, stream>>>(
      matrix, tokens, n_tokens, n_cols, out);
  return cudaGetLastError();
}

cudaError_t embed_q6_k(PlanesQ6K matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                       float* out, cudaStream_t stream) {
  detrun_embed_q6_k<<<embedding_blocks(n_tokens, n_cols), kRowThreads, 0, stream>>>(
      matrix, tokens, n_tokens, n_cols, out);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
