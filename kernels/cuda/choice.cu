// Launchers of the greedy choice.
#include "kernels/cuda/choice.cuh"
#include "kernels/cuda/launch_rows.h"

namespace detrun::cuda {

using namespace detrun::device;

cudaError_t argmax(const float* logits, unsigned n_rows, unsigned n, int* ids, float* largest,
                   float* margins, int* not_finite, cudaStream_t stream) {
  detrun_argmax<<<blocks_for(n_rows, 1), kChoiceThreads, 0, stream>>>(logits, n, ids, largest,
                                                                      margins, not_finite);
  return cudaGetLastError();
}

cudaError_t logprob(const float* logits, unsigned n_rows, unsigned n, const int* ids,
                    const float* largest, float* logprobs, cudaStream_t stream) {
  detrun_logprob<<<blocks_for(n_rows, 1), kChoiceThreads, 0, stream>>>(logits, n, ids, largest,
                                                                       logprobs);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
