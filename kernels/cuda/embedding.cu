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

template <class Type>
cudaError_t embed_quant(Planes matrix, const int* tokens, unsigned n_tokens, unsigned n_cols,
                        float* out, cudaStream_t stream) {
  detrun_embed_quant<Type><<<embedding_blocks(n_tokens, n_cols), kRowThreads, 0, stream>>>(
      matrix, tokens, n_tokens, n_cols, out);
  return cudaGetLastError();
}

#define DETRUN_INSTANCE(name)                                                                   \
  template cudaError_t embed_quant<kernels::Type##name>(Planes, const int*, unsigned, unsigned, \
                                                        float*, cudaStream_t);
DETRUN_QUANT_TYPES(DETRUN_INSTANCE)
#undef DETRUN_INSTANCE

}  // namespace detrun::cuda
