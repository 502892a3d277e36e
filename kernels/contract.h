// The ground rules of the arithmetic contract, profile `portable` version 1: its constants, single
// operations that round exactly once, and its two fixed summation orders.
//
// Written once for host and device. Not here: the operators (kernels/cpu/scalar is their
// reference). Invariant: `*` and `+` never fuse (-ffp-contract=off on every host file, intrinsics
// on a device), subnormals are kept, rounding is to nearest even.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __FAST_MATH__
#error "-ffast-math changes the bits of the arithmetic contract"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "binary32 operations must be evaluated in binary32"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the contract covers little-endian hosts"
#endif

#if defined(__CUDACC__)
#define DETRUN_HD static __host__ __device__ inline
#else
#define DETRUN_HD static inline
#endif

namespace detrun::kernels {

/// Version of the profile `portable`. Bump rule: any change of any bit of any operator.
constexpr std::uint32_t kPortableVersion = 1;

constexpr int kFloatLanes = 32;       ///< clause 1: chains of a dot product with fp weights
constexpr int kQuantLanes = 8;        ///< clause 3: chains of a dot product with integer weights
constexpr int kScoreLanes = 8;        ///< clause 6: chains of q . k
constexpr int kSumLanes = 32;         ///< S32
constexpr int kKvBlock = 64;          ///< clause 6: absolute positions a block
constexpr int kActivationBlock = 32;  ///< clause 2: elements that share one scale
constexpr int kActivationMax = 127;   ///< clause 2: |q| never exceeds it
/// Clause 2: a block whose largest magnitude is below 2^-100 (these bits) quantizes to zero.
constexpr std::uint32_t kZeroBlockBits = 0x0d800000u;
constexpr std::uint32_t kInfBits = 0x7f800000u;
constexpr std::uint32_t kNanBits = 0x7fc00000u;  ///< the one NaN our functions return
constexpr std::uint32_t kAbsMask = 0x7fffffffu;
/// Clause 7: the smallest magnitude that rounds beyond the largest binary16 (65520).
constexpr std::uint32_t kF16OverflowBits = 0x477ff000u;

#if defined(__CUDA_ARCH__)
DETRUN_HD float f32_add(float a, float b) { return __fadd_rn(a, b); }
DETRUN_HD float f32_sub(float a, float b) { return __fsub_rn(a, b); }
DETRUN_HD float f32_mul(float a, float b) { return __fmul_rn(a, b); }
DETRUN_HD float f32_div(float a, float b) { return __fdiv_rn(a, b); }
DETRUN_HD float f32_sqrt(float a) { return __fsqrt_rn(a); }
DETRUN_HD float f32_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DETRUN_HD std::uint32_t f32_bits(float a) { return __float_as_uint(a); }
DETRUN_HD float f32_from_bits(std::uint32_t a) { return __uint_as_float(a); }
#else
DETRUN_HD float f32_add(float a, float b) { return a + b; }
DETRUN_HD float f32_sub(float a, float b) { return a - b; }
DETRUN_HD float f32_mul(float a, float b) { return a * b; }
DETRUN_HD float f32_div(float a, float b) { return a / b; }
DETRUN_HD float f32_sqrt(float a) { return __builtin_sqrtf(a); }
DETRUN_HD float f32_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DETRUN_HD std::uint32_t f32_bits(float a) {
  std::uint32_t bits;
  std::memcpy(&bits, &a, sizeof bits);
  return bits;
}
DETRUN_HD float f32_from_bits(std::uint32_t bits) {
  float a;
  std::memcpy(&a, &bits, sizeof a);
  return a;
}
#endif

DETRUN_HD bool f32_is_finite(float a) { return (f32_bits(a) & kAbsMask) < kInfBits; }

/// T_L(a): halves the lanes until one is left, then adds +0. The final addition turns -0 into +0,
/// so that skipping a missing element and padding with +0 give the same bits. Destroys `a`.
template <int L>
DETRUN_HD float tree_sum(float* a) {
  for (int off = L / 2; off >= 1; off /= 2) {
    for (int l = 0; l < off; ++l) a[l] = f32_add(a[l], a[l + off]);
  }
  return f32_add(a[0], 0.0f);
}

/// S32(v): 32 chains of additions, then T_32.
DETRUN_HD float sum32(const float* v, std::uint64_t n) {
  float a[kSumLanes] = {};
  for (std::uint64_t i = 0; i < n; ++i) a[i % kSumLanes] = f32_add(a[i % kSumLanes], v[i]);
  return tree_sum<kSumLanes>(a);
}

}  // namespace detrun::kernels
