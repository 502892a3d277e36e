// What a GPU does at most of one kind of work: launchers of kernels that do nothing else, for
// measuring speed against. The CUDA half of kernels/cpu/ceilings.h. They compute nothing of the
// contract and no result ever depends on them; a caller waits and measures time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace detrun::cuda {

constexpr unsigned kCeilingThreads = 256;  ///< a block
/// Operations of one round of one thread; a multiplication and an addition count two. An mma of
/// 16 x 8 x 32 belongs to the 32 threads of a warp.
constexpr std::uint64_t kCeilingFmaFlops = std::uint64_t{2} * 8 * 16;
constexpr std::uint64_t kCeilingInt8Ops = std::uint64_t{2} * 8 * 16 * 8 * 32 / 32;

/// Copies `n_bytes`, a multiple of 64; addresses at multiples of 16.
cudaError_t ceiling_copy(const void* from, std::size_t n_bytes, void* to, unsigned n_blocks,
                         cudaStream_t stream);
/// `rounds` of 16 fused multiply-adds in each of 8 independent chains of every thread; out
/// (n_blocks * kCeilingThreads) is what each chain adds up to, all of them together.
cudaError_t ceiling_fma(unsigned rounds, float* out, unsigned n_blocks, cudaStream_t stream);
/// `rounds` of one int8 mma of 16 x 8 x 32 in each of 8 independent chains of every warp; out as
/// above.
cudaError_t ceiling_int8(unsigned rounds, int* out, unsigned n_blocks, cudaStream_t stream);

}  // namespace detrun::cuda
