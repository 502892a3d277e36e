// The words kernels are written in beside kernels/contract.h: thread coordinates, warp collectives,
// shared memory, wide loads. nvcc maps them to intrinsics, g++ to the host emulation, so that the
// same kernel source runs on a device and in a test on the CPU. Kernels use nothing else: no plain
// float + - * /, no full-warp collective under a condition that differs between lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract.h"
#include "kernels/fp.h"

#ifdef __CUDACC__

#include <cuda_fp16.h>

#define DETRUN_KERNEL static __global__
#define DETRUN_DEVICE static __device__ __forceinline__
// A shared array of the block; the first read of an element must follow a write and a barrier.
#define DETRUN_SHARED(type, name, count) __shared__ type name[count]

namespace detrun::device {

DETRUN_DEVICE float int_to_float(int value) { return __int2float_rn(value); }
DETRUN_DEVICE float half_to_float(std::uint16_t half) {
  return __half2float(__ushort_as_half(half));
}
DETRUN_DEVICE int dp4a(int a, int b, int c) { return __dp4a(a, b, c); }
DETRUN_DEVICE float shuffle_xor(float value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
DETRUN_DEVICE int shuffle_xor(int value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
DETRUN_DEVICE void sync_block() { __syncthreads(); }
DETRUN_DEVICE unsigned thread_x() { return threadIdx.x; }
DETRUN_DEVICE unsigned block_x() { return blockIdx.x; }
DETRUN_DEVICE unsigned block_y() { return blockIdx.y; }

struct Int4 {
  int x, y, z, w;
};
// A 16-byte load; `source` is 16-byte aligned.
DETRUN_DEVICE Int4 load_int4(const void* source) {
  const int4 v = *static_cast<const int4*>(source);
  return {v.x, v.y, v.z, v.w};
}

}  // namespace detrun::device

#else
#include "kernels/cuda/emulation.h"
#endif
