// Launchers of the kernels that measure what the GPU does at most.
#include "kernels/cuda/ceilings.cuh"

namespace detrun::cuda {

using namespace detrun::device;

static_assert(kCeilingFmaFlops == std::uint64_t{2} * kCeilingChains * kCeilingFmaSteps,
              "what is counted is what is done");
static_assert(kCeilingInt8Ops == std::uint64_t{2} * kCeilingChains * 16 * 8 * 32 / 32,
              "what is counted is what is done");

cudaError_t ceiling_copy(const void* from, std::size_t n_bytes, void* to, unsigned n_blocks,
                         cudaStream_t stream) {
  detrun_ceiling_copy<<<n_blocks, kCeilingThreads, 0, stream>>>(static_cast<const char*>(from),
                                                                n_bytes, static_cast<char*>(to));
  return cudaGetLastError();
}

cudaError_t ceiling_fma(unsigned rounds, float* out, unsigned n_blocks, cudaStream_t stream) {
  constexpr float kX = 0.5f;
  constexpr float kY = 0.25f;
  detrun_ceiling_fma<<<n_blocks, kCeilingThreads, 0, stream>>>(rounds, kX, kY, out);
  return cudaGetLastError();
}

cudaError_t ceiling_int8(unsigned rounds, int* out, unsigned n_blocks, cudaStream_t stream) {
  constexpr int kOnes = 0x01010101;
  constexpr int kMinusTwos = static_cast<int>(0xfefefefeu);
  detrun_ceiling_int8<<<n_blocks, kCeilingThreads, 0, stream>>>(rounds, kOnes, kMinusTwos, out);
  return cudaGetLastError();
}

}  // namespace detrun::cuda
