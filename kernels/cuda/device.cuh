// The words kernels are written in beside kernels/contract.h: thread coordinates, warp collectives,
// shared memory, wide loads. nvcc maps them to intrinsics, g++ to the host emulation, so that the
// same kernel source runs on a device and in a test on the CPU. Kernels use nothing else: no plain
// float + - * /, no full-warp collective under a condition that differs between lanes. Sizes are
// unsigned, products of sizes std::size_t.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract.h"
#include "kernels/fp.h"

#ifdef __CUDACC__

#include <cuda_fp16.h>

#define DETRUN_KERNEL static __global__
// The kernel is always launched with so many threads a block: more registers for each.
#define DETRUN_KERNEL_OF(threads) static __global__ __launch_bounds__(threads)
#define DETRUN_DEVICE static __device__ __forceinline__
#define DETRUN_UNROLL _Pragma("unroll")
#define DETRUN_NO_UNROLL _Pragma("unroll 1")
// A shared array of the block, of a trivial type. The first read of an element must follow a write
// and a barrier; a write must follow a barrier after another thread's read.
#define DETRUN_SHARED(type, name, count) __shared__ type name[count]

namespace detrun::device {

using namespace detrun::kernels;

DETRUN_DEVICE unsigned thread_x() { return threadIdx.x; }
DETRUN_DEVICE unsigned thread_y() { return threadIdx.y; }
DETRUN_DEVICE unsigned block_x() { return blockIdx.x; }
DETRUN_DEVICE unsigned block_y() { return blockIdx.y; }
DETRUN_DEVICE unsigned block_z() { return blockIdx.z; }
DETRUN_DEVICE unsigned block_dim_x() { return blockDim.x; }
DETRUN_DEVICE unsigned block_dim_y() { return blockDim.y; }
DETRUN_DEVICE unsigned grid_dim_x() { return gridDim.x; }
DETRUN_DEVICE unsigned grid_dim_y() { return gridDim.y; }

DETRUN_DEVICE float int_to_float(int value) { return __int2float_rn(value); }
// Nearest even; the value is below 2^22 in magnitude.
DETRUN_DEVICE int float_to_int(float value) { return __float2int_rn(value); }
DETRUN_DEVICE float half_to_float(std::uint16_t half) {
  return __half2float(__ushort_as_half(half));
}
// As f32_to_f16, the NaN too.
DETRUN_DEVICE std::uint16_t float_to_half(float value) {
  if ((f32_bits(value) & kAbsMask) > kInfBits) return f32_to_f16(value);
  return __half_as_ushort(__float2half_rn(value));
}
DETRUN_DEVICE int dp4a(int a, int b, int c) { return __dp4a(a, b, c); }
// Four of the eight bytes of `low` and `high`: half byte i of the selector's lower 16 bits, at most
// 7, is the number of byte i of the result.
DETRUN_DEVICE unsigned pick_bytes(unsigned low, unsigned high, unsigned selector) {
  return __byte_perm(low, high, selector);
}

DETRUN_DEVICE float shuffle_xor(float value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
DETRUN_DEVICE int shuffle_xor(int value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
DETRUN_DEVICE unsigned shuffle_xor(unsigned value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
DETRUN_DEVICE void sync_block() { __syncthreads(); }
// All lanes meet. Loads written before it are begun before it: it keeps a batch of them together.
DETRUN_DEVICE void sync_warp() { __syncwarp(); }

// The pointer, said to be one to memory of the device where no compiler would see it: loads through
// it need not find out.
template <class T>
DETRUN_DEVICE T* device_memory(T* pointer) {
  __builtin_assume(__isGlobal(pointer));
  return pointer;
}

struct alignas(8) Int2 {
  int x, y;
};
struct alignas(16) Int4 {
  int x, y, z, w;
};
struct alignas(16) Float4 {
  float x, y, z, w;
};
// A load of 4, 8 or 16 bytes; `source` is aligned to as many.
DETRUN_DEVICE int load_int(const void* source) { return *static_cast<const int*>(source); }
DETRUN_DEVICE Int2 load_int2(const void* source) {
  const int2 v = *static_cast<const int2*>(source);
  return {v.x, v.y};
}
DETRUN_DEVICE Int4 load_int4(const void* source) {
  const int4 v = *static_cast<const int4*>(source);
  return {v.x, v.y, v.z, v.w};
}
DETRUN_DEVICE Float4 load_float4(const float* source) {
  const float4 v = *reinterpret_cast<const float4*>(source);
  return {v.x, v.y, v.z, v.w};
}

// D = A B + D for int8, a whole warp together. Lane l holds, with g = l / 4 and t = l % 4, as the
// PTX ISA draws the fragments of mma.m8n8k16:
//   a      A[g][4 t ..]       four elements of row g of A (8, 16)
//   b      B[4 t ..][g]       four elements of column g of B (16, 8)
//   d[i]   D[g][2 t + i]      of D (8, 8)
DETRUN_DEVICE void mma_s8_m8n8k16(int* d, int a, int b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a), "r"(b));
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// The same for A (16, 16), mma.m16n8k16, compute capability 8.0 and above:
//   a[0], a[1]   A[g][4 t ..], A[g + 8][4 t ..]
//   d[0], d[1]   D[g][2 t], D[g][2 t + 1]            d[2], d[3]   of row g + 8
DETRUN_DEVICE void mma_s8_m16n8k16(int* d, const int* a, int b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}
// And for A (16, 32) and B (32, 8), mma.m16n8k32: a[2], a[3] and b[1] are as a[0], a[1] and b[0],
// 16 elements on.
DETRUN_DEVICE void mma_s8_m16n8k32(int* d, const int* a, const int* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

}  // namespace detrun::device

#else
#include "kernels/cuda/emulation.h"
#endif

namespace detrun::device {

using namespace detrun::kernels;

DETRUN_DEVICE int int_max(int a, int b) { return a > b ? a : b; }
DETRUN_DEVICE int int_min(int a, int b) { return a < b ? a : b; }
DETRUN_DEVICE unsigned uint_max(unsigned a, unsigned b) { return a > b ? a : b; }
DETRUN_DEVICE unsigned uint_min(unsigned a, unsigned b) { return a < b ? a : b; }
// `a` where the two are equal or one is a NaN.
DETRUN_DEVICE float float_max(float a, float b) { return b > a ? b : a; }

DETRUN_DEVICE unsigned lane_id() { return thread_x() % 32; }
DETRUN_DEVICE unsigned warp_id() { return thread_x() / 32; }

// The largest of the 32 lanes' values, for every lane.
DETRUN_DEVICE float warp_max(float value) {
  for (int off = 16; off >= 1; off /= 2) value = float_max(value, shuffle_xor(value, off));
  return value;
}
DETRUN_DEVICE unsigned warp_max(unsigned value) {
  for (int off = 16; off >= 1; off /= 2) value = uint_max(value, shuffle_xor(value, off));
  return value;
}

// The two below put together from m8n8k16: what compute capability 7.5 has.
DETRUN_DEVICE void mma_s8_k16_from_m8n8k16(int* d, const int* a, int b) {
  mma_s8_m8n8k16(d, a[0], b);
  mma_s8_m8n8k16(d + 2, a[1], b);
}
DETRUN_DEVICE void mma_s8_from_m8n8k16(int* d, const int* a, const int* b) {
  mma_s8_k16_from_m8n8k16(d, a, b[0]);
  mma_s8_k16_from_m8n8k16(d, a + 2, b[1]);
}

// D (16, 8) += A (16, 16) B (16, 8), int8, exact; fragments as at mma_s8_m16n8k16.
DETRUN_DEVICE void mma_s8_k16(int* d, const int* a, int b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  mma_s8_k16_from_m8n8k16(d, a, b);
#else
  mma_s8_m16n8k16(d, a, b);
#endif
}
// D (16, 8) += A (16, 32) B (32, 8), int8, exact; fragments as at mma_s8_m16n8k32.
DETRUN_DEVICE void mma_s8(int* d, const int* a, const int* b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  mma_s8_from_m8n8k16(d, a, b);
#else
  mma_s8_m16n8k32(d, a, b);
#endif
}

}  // namespace detrun::device
