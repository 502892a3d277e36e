// Dot products with Q8_0 weights: contract clause 3, a group is one block. The packed form is the
// file's.
#include "kernels/contract.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cpu/scalar/scalar.h"
#include "kernels/quant/q8_0.h"

namespace detrun::kernels::scalar {

namespace {

std::uint64_t packed_bytes(std::uint64_t k, std::uint64_t n) {
  return k / TypeQ8_0::kBlockElems * n * sizeof(BlockQ8_0);
}

void pack(const void* rows, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t g0,
          std::uint64_t g1, void* packed) {
  const std::uint64_t row_bytes = packed_bytes(k, 1);
  std::memcpy(static_cast<char*>(packed) + g0 * row_bytes,
              static_cast<const char*>(rows) + g0 * row_bytes, (g1 - g0) * row_bytes);
}

void decode_row(const void* packed, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t i,
                float* out) {
  const std::uint64_t n_blocks = k / TypeQ8_0::kBlockElems;
  const auto* w = static_cast<const BlockQ8_0*>(packed) + i * n_blocks;
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    TypeQ8_0::decode(w[b], out + b * TypeQ8_0::kBlockElems);
  }
}

float dot(const QuantizedRow& x, const BlockQ8_0* w, std::uint64_t n_blocks) {
  float a[kQuantLanes] = {};
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    std::int32_t sum = 0;  // |sum| <= 32 * 128 * 127: exact in binary32 too
    for (int i = 0; i < TypeQ8_0::kBlockElems; ++i) {
      sum += std::int32_t{w[b].q[i]} * x.q[b * kActivationBlock + i];
    }
    const float e = f32_fma(x.d[b], static_cast<float>(sum), 0.0f);
    a[b % kQuantLanes] = f32_fma(f16_to_f32(w[b].d), e, a[b % kQuantLanes]);
  }
  return tree_sum<kQuantLanes>(a);
}

void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  const std::uint64_t n_blocks = args->k / TypeQ8_0::kBlockElems;
  const auto* w = static_cast<const BlockQ8_0*>(args->weight);
  for (std::uint32_t r = 0; r < args->n_rows; ++r) {
    const void* row = static_cast<const char*>(args->x) + r * args->x_row_bytes;
    const QuantizedRow x = quantized_row(row, args->k);
    for (std::uint64_t i = g0; i < g1; ++i) {
      args->y[r * args->n + i] = dot(x, w + i * n_blocks, n_blocks);
    }
  }
}

}  // namespace

const MatmulOps kMatmulQ8_0 = {
    TypeQ8_0::kGgufId, InputForm::kQuantized, 1, packed_bytes, pack, decode_row, matmul};

}  // namespace detrun::kernels::scalar
