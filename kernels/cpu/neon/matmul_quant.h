// Products with the integer weight types, contract clause 3, written once for all of them and for
// both ways to multiply bytes. The packed form is the file's. A block of weights is unpacked once
// for up to four rows of x; its int32 sums are exact, so their order is free. Internal linkage: the
// two files that include this are compiled with different flags.
#pragma once

#include "kernels/cpu/file_layout.h"
#include "kernels/cpu/neon/lanes.h"
#include "kernels/cpu/neon/neon.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/quant/all.h"

namespace detrun::kernels::neon {

namespace {

constexpr std::uint32_t kRowsMax = 4;

/// Adds the products of sixteen bytes to four int32 lanes. w may be -128, x never is: a pair of
/// products is at most 2 * 128 * 127 and stays in int16.
struct WideningBytes {
  static inline int32x4_t dot(int32x4_t sum, int8x16_t w, int8x16_t x) {
    int16x8_t pairs = vmull_s8(vget_low_s8(w), vget_low_s8(x));
    pairs = vmlal_s8(pairs, vget_high_s8(w), vget_high_s8(x));
    return vpadalq_s16(sum, pairs);
  }
};

#if defined(__ARM_FEATURE_DOTPROD)
struct DotBytes {
  static inline int32x4_t dot(int32x4_t sum, int8x16_t w, int8x16_t x) {
    return vdotq_s32(sum, w, x);
  }
};
#endif

template <class Type>
std::uint64_t packed_bytes(std::uint64_t k, std::uint64_t n) {
  return file_bytes<typename Type::Block>(k, n, Type::kBlockElems);
}

template <class Type>
void pack(const void* rows, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t g0,
          std::uint64_t g1, void* packed) {
  copy_rows(rows, packed_bytes<Type>(k, 1), g0, g1, packed);
}

template <class Type>
void decode_row(const void* packed, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t i,
                float* out) {
  decode_file_row<Type>(packed, k, i, out);
}

/// A 32-block of weights: its integers and the integer scales of its halves.
struct Unpacked {
  int8x16_t q[2];
  std::int32_t scale[2];
};

template <class Type>
inline Unpacked unpack(const typename Type::Block& w, int i) {
  std::int8_t q[kActivationBlock];
  Type::unpack(w, i, q);
  Unpacked out{{vld1q_s8(q), vld1q_s8(q + 16)}, {1, 1}};
  if constexpr (Type::kScaleElems == 16) {
    out.scale[0] = Type::scale(w, 2 * i);
    out.scale[1] = Type::scale(w, 2 * i + 1);
  } else if constexpr (Type::kScaleElems == 32) {
    out.scale[0] = Type::scale(w, i);
  }
  return out;
}

/// S of a 32-block against its activations.
template <class Type, class Bytes>
inline std::int32_t block_sum(const Unpacked& w, const std::int8_t* x) {
  const int32x4_t low = Bytes::dot(vdupq_n_s32(0), w.q[0], vld1q_s8(x));
  if constexpr (Type::kScaleElems == 16) {
    const int32x4_t high = Bytes::dot(vdupq_n_s32(0), w.q[1], vld1q_s8(x + 16));
    return vaddvq_s32(vmlaq_n_s32(vmulq_n_s32(low, w.scale[0]), high, w.scale[1]));
  } else {
    return vaddvq_s32(Bytes::dot(low, w.q[1], vld1q_s8(x + 16))) * w.scale[0];
  }
}

/// f: the integer minima of the group against the sums of the activations above them.
template <class Type>
inline float minima_sum(const typename Type::Block& w, const QuantizedRow& x,
                        std::uint64_t first_block) {
  float f = 0.0f;
  for (int s = 0; s < Type::kBlockElems / Type::kMinElems; ++s) {
    float bx;
    if constexpr (Type::kMinElems == kActivationBlock) {
      bx = x.bx[first_block + static_cast<std::uint64_t>(s)];
    } else {
      const std::uint64_t half = 2 * first_block + static_cast<std::uint64_t>(s);
      bx = f32_mul(x.d[half / 2], static_cast<float>(x.b16[half]));
    }
    f = f32_fma(static_cast<float>(Type::minimum(w, s)), bx, f);
  }
  return f;
}

/// Group g of one output for R rows of x, into the rows' lane of the group.
template <class Type, class Bytes, int R>
inline void group(const typename Type::Block& w, std::uint64_t g, const QuantizedRow (&x)[R],
                  float (&a)[R][kQuantLanes]) {
  constexpr std::uint64_t kBlocks = Type::kBlockElems / kActivationBlock;
  float e[R] = {};
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    const Unpacked unpacked = unpack<Type>(w, static_cast<int>(i));
    const std::uint64_t block = g * kBlocks + i;
    for (int r = 0; r < R; ++r) {
      const std::int32_t sum = block_sum<Type, Bytes>(unpacked, x[r].q + block * kActivationBlock);
      e[r] = f32_fma(x[r].d[block], static_cast<float>(sum), e[r]);
    }
  }
  for (int r = 0; r < R; ++r) {
    float& lane = a[r][g % kQuantLanes];
    lane = f32_fma(Type::d(w), e[r], lane);
    if constexpr (Type::kMinimum == Minimum::kFloat) {
      lane = f32_fma(Type::floor(w), x[r].bx[g], lane);
    }
    if constexpr (Type::kMinimum == Minimum::kInteger) {
      lane = f32_fma(-Type::floor(w), minima_sum<Type>(w, x[r], g * kBlocks), lane);
    }
  }
}

/// Outputs [g0, g1) of R rows of x from `row`.
template <class Type, class Bytes, int R>
void rows_block(const MatmulArgs& args, std::uint64_t row, std::uint64_t g0, std::uint64_t g1) {
  const std::uint64_t n_groups = args.k / Type::kBlockElems;
  QuantizedRow x[R];
  for (int r = 0; r < R; ++r) {
    const std::uint64_t offset = (row + static_cast<std::uint64_t>(r)) * args.x_row_bytes;
    x[r] = quantized_row(static_cast<const char*>(args.x) + offset, args.k);
  }
  for (std::uint64_t i = g0; i < g1; ++i) {
    const auto* w = static_cast<const typename Type::Block*>(args.weight) + i * n_groups;
    float a[R][kQuantLanes] = {};
    for (std::uint64_t g = 0; g < n_groups; ++g) group<Type, Bytes, R>(w[g], g, x, a);
    for (int r = 0; r < R; ++r) {
      args.y[(row + static_cast<std::uint64_t>(r)) * args.n + i] = tree_sum<kQuantLanes>(a[r]);
    }
  }
}

template <class Type, class Bytes>
void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  for (std::uint32_t row = 0; row < args->n_rows; row += kRowsMax) {
    switch (args->n_rows - row) {
      case 1:
        rows_block<Type, Bytes, 1>(*args, row, g0, g1);
        break;
      case 2:
        rows_block<Type, Bytes, 2>(*args, row, g0, g1);
        break;
      case 3:
        rows_block<Type, Bytes, 3>(*args, row, g0, g1);
        break;
      default:
        rows_block<Type, Bytes, kRowsMax>(*args, row, g0, g1);
        break;
    }
  }
}

template <class Type, class Bytes>
constexpr MatmulOps matmul_ops() {
  return {Type::kGgufId,    InputForm::kQuantized, 1, packed_bytes<Type>, pack<Type>,
          decode_row<Type>, matmul<Type, Bytes>};
}

}  // namespace

/// The rows of every integer type, for one way to multiply bytes.
#define DETRUN_NEON_INTEGER_ROWS(Bytes)                                                          \
  {                                                                                              \
    matmul_ops<TypeQ4_0, Bytes>(), matmul_ops<TypeQ4_1, Bytes>(), matmul_ops<TypeQ5_0, Bytes>(), \
        matmul_ops<TypeQ5_1, Bytes>(), matmul_ops<TypeQ8_0, Bytes>(),                            \
        matmul_ops<TypeIQ4_NL, Bytes>(), matmul_ops<TypeQ2_K, Bytes>(),                          \
        matmul_ops<TypeQ3_K, Bytes>(), matmul_ops<TypeQ4_K, Bytes>(),                            \
        matmul_ops<TypeQ5_K, Bytes>(), matmul_ops<TypeQ6_K, Bytes>(),                            \
        matmul_ops<TypeIQ4_XS, Bytes>(),                                                         \
  }

}  // namespace detrun::kernels::neon
