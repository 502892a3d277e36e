// What the tests of matrix products share: aligned arrays, random blocks that reach the edges of
// their fields, and the scalar reference.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cuda/pack_planes.h"
#include "tests/cuda/row_support.h"

// For doctest's TEST_CASE_TEMPLATE_APPLY: every quantized type, by name.
#define DETRUN_NAME_TYPE(name) TYPE_TO_STRING_AS(#name, ::detrun::kernels::Type##name);
DETRUN_QUANT_TYPES(DETRUN_NAME_TYPE)

namespace detrun::cuda_test {

template <class First, class... Others>
struct Behind {
  using Types = std::tuple<Others...>;
};
#define DETRUN_COMMA_TYPE(name) , kernels::Type##name
using QuantTypes = Behind<void DETRUN_QUANT_TYPES(DETRUN_COMMA_TYPE)>::Types;

/// `n` elements that start at a multiple of 64 bytes.
template <class T>
class Aligned {
 public:
  explicit Aligned(std::size_t n) : size_(n), lines_((n * sizeof(T) + 63) / 64 + 1) {}
  T* data() { return reinterpret_cast<T*>(lines_.data()); }
  std::size_t size() const { return size_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::size_t size_;
  std::vector<Line> lines_;
};

/// Outputs with room behind them, where a kernel must not write.
class Output {
 public:
  explicit Output(std::size_t n) : n_(n), values_(n + kBehind, kUntouched) {}
  float* data() { return values_.data(); }
  std::vector<float> take() const {
    std::size_t touched = 0;
    for (std::size_t i = n_; i < values_.size(); ++i) touched += values_[i] != kUntouched;
    CHECK(touched == 0);
    return {values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(n_)};
  }

 private:
  static constexpr float kUntouched = 1e30f;
  static constexpr std::size_t kBehind = 64 * 130;  // the rows that a tile reaches beyond the last
  std::size_t n_;
  std::vector<float> values_;
};

/// What a GEMV kernel takes, with one matrix.
template <class Weight>
cuda::GemvMatrices<Weight> one_matrix(Weight weight, float* y, unsigned n_rows) {
  cuda::GemvMatrices<Weight> all{};
  all.matrix[0] = {weight, y, n_rows};
  for (unsigned& end : all.end) end = ~0u;
  return all;
}

inline const kernels::MatmulOps& scalar_matmul(std::uint32_t gguf_id) {
  const kernels::CpuOps& ops = kernels::scalar::kOps;
  for (std::size_t i = 0; i < ops.n_matmuls; ++i) {
    if (ops.matmuls[i]->gguf_id == gguf_id) return *ops.matmuls[i];
  }
  FAIL("the scalar reference lacks type " << gguf_id);
  return *ops.matmuls[0];
}

/// y (m, n) of weight rows as in the file (n, k) and x (m, k), by the scalar reference.
inline std::vector<float> scalar_product(std::uint32_t gguf_id, const void* weight, unsigned m,
                                         unsigned n, unsigned k, const std::vector<float>& x) {
  const kernels::MatmulOps& ops = scalar_matmul(gguf_id);
  const kernels::InputOps& input = kernels::scalar::kOps.inputs[static_cast<int>(ops.input)];
  const std::size_t row_bytes = input.row_bytes(k);
  Aligned<std::byte> packed(ops.packed_bytes(k, n)), rows(m * row_bytes);
  const std::uint64_t groups = (n + ops.group - 1) / ops.group;
  ops.pack(weight, k, n, 0, groups, packed.data());
  for (std::size_t row = 0; row < m; ++row) {
    REQUIRE(input.prepare(x.data() + row * k, k, rows.data() + row * row_bytes));
  }
  std::vector<float> y(std::size_t{m} * n);
  const kernels::MatmulArgs args{packed.data(), rows.data(), row_bytes, m, k, n, y.data()};
  ops.matmul(&args, 0, groups);
  return y;
}

/// m rows of x (m, k), quantized by the scalar reference, as the kernels take them.
class DeviceRows {
 public:
  DeviceRows(const std::vector<float>& x, unsigned m, unsigned k)
      : quants_(std::size_t{m} * k),
        scales_(std::size_t{m} * k / 32),
        sums_(std::size_t{m} * k / 32),
        half_sums_(std::size_t{m} * k / 16) {
    const kernels::InputOps& input =
        kernels::scalar::kOps.inputs[static_cast<int>(kernels::InputForm::kQuantized)];
    Aligned<std::byte> bytes(input.row_bytes(k));
    for (std::size_t row = 0; row < m; ++row) {
      REQUIRE(input.prepare(x.data() + row * k, k, bytes.data()));
      const kernels::QuantizedRow from = kernels::quantized_row(bytes.data(), k);
      const std::size_t n_blocks = k / 32;
      std::memcpy(quants_.data() + row * k, from.q, k);
      std::memcpy(scales_.data() + row * n_blocks, from.d, n_blocks * sizeof(float));
      std::memcpy(sums_.data() + row * n_blocks, from.bx, n_blocks * sizeof(float));
      std::memcpy(half_sums_.data() + row * 2 * n_blocks, from.b16,
                  n_blocks * 2 * sizeof(*from.b16));
    }
  }
  cuda::QuantizedRows view() {
    return {quants_.data(), scales_.data(), sums_.data(), half_sums_.data()};
  }

 private:
  Aligned<std::int8_t> quants_;
  Aligned<float> scales_, sums_;
  Aligned<std::int16_t> half_sums_;
};

/// Activations: random; in the first group the largest possible quants; blocks below 2^-100.
inline std::vector<float> random_activations(std::mt19937& random, unsigned m, unsigned k) {
  std::vector<float> x = random_floats(random, std::size_t{m} * k, 2.0f);
  for (std::size_t block = 1; block < x.size() / 32; ++block) {
    if (random() % 8 != 0) continue;
    for (std::size_t i = 0; i < 32; ++i) x[32 * block + i] = 0x1p-101f;
  }
  for (std::size_t i = 0; i < 256 && i < x.size(); ++i) x[i] = 3.0f;
  return x;
}

inline std::uint16_t random_half(std::mt19937& random) {
  const float value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0x1p-14f;
  return kernels::f32_to_f16(random() % 16 == 0 ? value * 0x1p-8f : value);
}

/// Every byte random, the scales halves of either sign. Of nine blocks or more the first reach all
/// extremes: every bit 0, every bit 1, and the lowest integer scale beside the lowest quant.
template <class Type>
std::vector<typename Type::Block> random_blocks(std::mt19937& random, std::size_t n) {
  std::vector<typename Type::Block> blocks(n);
  for (std::size_t b = 0; b < n; ++b) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(&blocks[b]);
    const std::size_t kind = n >= 9 ? b : 3;
    for (std::size_t i = 0; i < sizeof blocks[b]; ++i) {
      bytes[i] = static_cast<std::uint8_t>(kind == 0 || kind == 2 ? 0 : kind == 1 ? 255 : random());
    }
    if constexpr (std::is_same_v<Type, kernels::TypeQ6_K>) {
      if (kind == 2) std::memset(blocks[b].scales, 0x80, sizeof blocks[b].scales);
    }
    blocks[b].d = random_half(random);
    if constexpr (Type::kMinimum == kernels::Minimum::kFloat) blocks[b].m = random_half(random);
    if constexpr (Type::kMinimum == kernels::Minimum::kInteger) {
      blocks[b].dmin = random_half(random);
    }
  }
  return blocks;
}

/// A quantized weight in device memory.
template <class Type>
class DeviceBlocks {
 public:
  explicit DeviceBlocks(const std::vector<typename Type::Block>& blocks)
      : n_(blocks.size()), image_(cuda::QuantLayout<Type>::image_bytes(n_)) {
    cuda::pack_groups<Type>(blocks.data(), 0, n_, view());
  }
  cuda::Planes view() { return cuda::QuantLayout<Type>::planes(image_.data(), n_); }

 private:
  std::size_t n_;
  Aligned<std::byte> image_;
};

}  // namespace detrun::cuda_test
