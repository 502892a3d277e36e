// Dot products with the integer weight types: contract clause 3, written once for all of them. A
// group is a block of the file. The packed form is the file's.
#include "kernels/contract.h"
#include "kernels/cpu/file_layout.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cpu/scalar/scalar.h"
#include "kernels/quant/all.h"

namespace detrun::kernels::scalar {

namespace {

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

/// S_i: 32-block i of the group against 32 quantized activations. Below 2^24 in magnitude.
template <class Type>
std::int32_t block_sum(const typename Type::Block& w, int i, const std::int8_t* x) {
  constexpr int kElems = Type::kScaleElems != 0 ? Type::kScaleElems : kActivationBlock;
  std::int8_t q[kActivationBlock];
  Type::unpack(w, i, q);
  std::int32_t sum = 0;
  for (int first = 0; first < kActivationBlock; first += kElems) {
    std::int32_t part = 0;
    for (int l = first; l < first + kElems; ++l) part += std::int32_t{q[l]} * x[l];
    sum += Type::scale(w, (kActivationBlock * i + first) / kElems) * part;
  }
  return sum;
}

/// f: the integer minima of the group against the sums of the activations below them.
template <class Type>
float minima_sum(const typename Type::Block& w, const QuantizedRow& x, std::uint64_t first_block) {
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

template <class Type>
float dot(const QuantizedRow& x, const typename Type::Block* w, std::uint64_t n_groups) {
  constexpr std::uint64_t kBlocks = Type::kBlockElems / kActivationBlock;
  float a[kQuantLanes] = {};
  for (std::uint64_t g = 0; g < n_groups; ++g) {
    float& lane = a[g % kQuantLanes];
    float e = 0.0f;
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      const std::uint64_t block = g * kBlocks + i;
      const std::int32_t sum =
          block_sum<Type>(w[g], static_cast<int>(i), x.q + block * kActivationBlock);
      e = f32_fma(x.d[block], static_cast<float>(sum), e);
    }
    lane = f32_fma(Type::d(w[g]), e, lane);
    if constexpr (Type::kMinimum == Minimum::kFloat) {
      lane = f32_fma(Type::floor(w[g]), x.bx[g], lane);
    }
    if constexpr (Type::kMinimum == Minimum::kInteger) {
      lane = f32_fma(-Type::floor(w[g]), minima_sum<Type>(w[g], x, g * kBlocks), lane);
    }
  }
  return tree_sum<kQuantLanes>(a);
}

template <class Type>
void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  const std::uint64_t n_groups = args->k / Type::kBlockElems;
  const auto* w = static_cast<const typename Type::Block*>(args->weight);
  for (std::uint32_t r = 0; r < args->n_rows; ++r) {
    const void* row = static_cast<const char*>(args->x) + r * args->x_row_bytes;
    const QuantizedRow x = quantized_row(row, args->k);
    for (std::uint64_t i = g0; i < g1; ++i) {
      args->y[r * args->n + i] = dot<Type>(x, w + i * n_groups, n_groups);
    }
  }
}

template <class Type>
constexpr MatmulOps matmul_ops() {
  return {Type::kGgufId, InputForm::kQuantized, 1,           packed_bytes<Type>,
          pack<Type>,    decode_row<Type>,      matmul<Type>};
}

}  // namespace

const MatmulOps kMatmulQ4_0 = matmul_ops<TypeQ4_0>();
const MatmulOps kMatmulQ4_1 = matmul_ops<TypeQ4_1>();
const MatmulOps kMatmulQ5_0 = matmul_ops<TypeQ5_0>();
const MatmulOps kMatmulQ5_1 = matmul_ops<TypeQ5_1>();
const MatmulOps kMatmulQ8_0 = matmul_ops<TypeQ8_0>();
const MatmulOps kMatmulIQ4_NL = matmul_ops<TypeIQ4_NL>();
const MatmulOps kMatmulQ2_K = matmul_ops<TypeQ2_K>();
const MatmulOps kMatmulQ3_K = matmul_ops<TypeQ3_K>();
const MatmulOps kMatmulQ4_K = matmul_ops<TypeQ4_K>();
const MatmulOps kMatmulQ5_K = matmul_ops<TypeQ5_K>();
const MatmulOps kMatmulQ6_K = matmul_ops<TypeQ6_K>();
const MatmulOps kMatmulIQ4_XS = matmul_ops<TypeIQ4_XS>();

}  // namespace detrun::kernels::scalar
