// Dot products with F32, F16 and BF16 weights: contract clause 1. The packed form is the file's.
#include "kernels/contract.h"
#include "kernels/cpu/file_layout.h"
#include "kernels/cpu/scalar/scalar.h"
#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"

namespace detrun::kernels::scalar {

namespace {

template <class Type>
std::uint64_t packed_bytes(std::uint64_t k, std::uint64_t n) {
  return file_bytes<typename Type::Block>(k, n, 1);
}

template <class Type>
void pack(const void* rows, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t g0,
          std::uint64_t g1, void* packed) {
  copy_rows(rows, packed_bytes<Type>(k, 1), g0, g1, packed);
}

template <class Type>
void decode_row(const void* packed, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t i,
                float* out) {
  const auto* w = static_cast<const typename Type::Block*>(packed) + i * k;
  for (std::uint64_t j = 0; j < k; ++j) out[j] = Type::widen(w[j]);
}

template <class Type>
float dot(const float* x, const typename Type::Block* w, std::uint64_t k) {
  float a[kFloatLanes] = {};
  for (std::uint64_t j = 0; j < k; ++j) {
    a[j % kFloatLanes] = f32_fma(x[j], Type::widen(w[j]), a[j % kFloatLanes]);
  }
  return tree_sum<kFloatLanes>(a);
}

template <class Type>
void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  const auto* w = static_cast<const typename Type::Block*>(args->weight);
  for (std::uint32_t r = 0; r < args->n_rows; ++r) {
    const void* row = static_cast<const char*>(args->x) + r * args->x_row_bytes;
    for (std::uint64_t i = g0; i < g1; ++i) {
      args->y[r * args->n + i] =
          dot<Type>(static_cast<const float*>(row), w + i * args->k, args->k);
    }
  }
}

template <class Type>
constexpr MatmulOps matmul_ops() {
  return {Type::kGgufId, InputForm::kFloat, 1,           packed_bytes<Type>,
          pack<Type>,    decode_row<Type>,  matmul<Type>};
}

}  // namespace

const MatmulOps kMatmulF32 = matmul_ops<TypeF32>();
const MatmulOps kMatmulF16 = matmul_ops<TypeF16>();
const MatmulOps kMatmulBF16 = matmul_ops<TypeBF16>();

std::uint64_t float_row_bytes(std::uint64_t k) { return (k * sizeof(float) + 63) / 64 * 64; }

bool prepare_float(const float* x, std::uint64_t k, void* row) {
  for (std::uint64_t i = 0; i < k; ++i) {
    if (!f32_is_finite(x[i])) return false;
  }
  std::memcpy(row, x, k * sizeof(float));
  return true;
}

}  // namespace detrun::kernels::scalar
