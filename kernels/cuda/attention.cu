// Launchers of the attention kernels.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/launch_rows.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

unsigned query_heads(const AttentionInput& in) {
  return blocks_for(static_cast<std::size_t>(in.n_queries) * in.n_heads, 1);
}

}  // namespace

cudaError_t attention_blocks_f16(const AttentionInput& in, float* states, float* values,
                                 cudaStream_t stream) {
  const dim3 grid(query_heads(in), in.n_blocks);
  detrun_attention_blocks_f16<<<grid, kAttentionThreads, 0, stream>>>(in, states, values);
  return cudaGetLastError();
}

cudaError_t attention_blocks_f32(const AttentionInput& in, float* states, float* values,
                                 cudaStream_t stream) {
  const dim3 grid(query_heads(in), in.n_blocks);
  detrun_attention_blocks_f32<<<grid, kAttentionThreads, 0, stream>>>(in, states, values);
  return cudaGetLastError();
}

cudaError_t attention_merge(const AttentionInput& in, const float* states, const float* values,
                            float* out, cudaStream_t stream) {
  detrun_attention_merge<<<query_heads(in), kAttentionThreads, 0, stream>>>(in, states, values,
                                                                            out);
  return cudaGetLastError();
}

cudaError_t attention_stream_f16(const AttentionInput& in, float* out, cudaStream_t stream) {
  detrun_attention_stream_f16<<<query_heads(in), kAttentionThreads, 0, stream>>>(in, out);
  return cudaGetLastError();
}

cudaError_t attention_stream_f32(const AttentionInput& in, float* out, cudaStream_t stream) {
  detrun_attention_stream_f32<<<query_heads(in), kAttentionThreads, 0, stream>>>(in, out);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
