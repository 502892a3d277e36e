// What the tests of matrix products share: aligned arrays, random blocks that reach the edges of
// their fields, and the scalar reference.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cuda/planes.h"
#include "tests/cuda/row_support.h"

namespace detrun::cuda_test {

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
        sums_(std::size_t{m} * k / 32) {
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
    }
  }
  cuda::QuantizedRows view() { return {quants_.data(), scales_.data(), sums_.data()}; }

 private:
  Aligned<std::int8_t> quants_;
  Aligned<float> scales_, sums_;
};

/// Activations: random, the largest possible quants beside a block below 2^-100.
inline std::vector<float> random_activations(std::mt19937& random, unsigned m, unsigned k) {
  std::vector<float> x = random_floats(random, std::size_t{m} * k, 2.0f);
  for (std::size_t block = 1; block < x.size() / 32; ++block) {
    if (random() % 8 != 0) continue;
    for (std::size_t i = 0; i < 32; ++i) x[32 * block + i] = 0x1p-101f;
  }
  for (std::size_t i = 0; i < 32 && i < x.size(); ++i) x[i] = 3.0f;
  return x;
}

inline std::uint16_t random_half(std::mt19937& random) {
  const float value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0x1p-14f;
  return kernels::f32_to_f16(random() % 16 == 0 ? value * 0x1p-8f : value);
}

/// Every byte random, the scales halves of either sign; the first block reaches all extremes.
inline std::vector<kernels::BlockQ8_0> random_q8_0(std::mt19937& random, std::size_t n) {
  std::vector<kernels::BlockQ8_0> blocks(n);
  for (auto& block : blocks) {
    block.d = random_half(random);
    for (std::int8_t& q : block.q) q = static_cast<std::int8_t>(random() % 256);
  }
  for (std::int8_t& q : blocks[0].q) q = -128;
  return blocks;
}

inline std::vector<kernels::BlockQ4_K> random_q4_k(std::mt19937& random, std::size_t n) {
  std::vector<kernels::BlockQ4_K> blocks(n);
  for (auto& block : blocks) {
    block.d = random_half(random);
    block.dmin = random_half(random);
    for (std::uint8_t& s : block.scales) s = static_cast<std::uint8_t>(random());
    for (std::uint8_t& q : block.qs) q = static_cast<std::uint8_t>(random());
  }
  for (std::uint8_t& s : blocks[0].scales) s = 0xff;
  for (std::uint8_t& q : blocks[0].qs) q = 0xff;
  return blocks;
}

inline std::vector<kernels::BlockQ6_K> random_q6_k(std::mt19937& random, std::size_t n) {
  std::vector<kernels::BlockQ6_K> blocks(n);
  for (auto& block : blocks) {
    block.d = random_half(random);
    for (std::uint8_t& q : block.ql) q = static_cast<std::uint8_t>(random());
    for (std::uint8_t& q : block.qh) q = static_cast<std::uint8_t>(random());
    for (std::int8_t& s : block.scales) s = static_cast<std::int8_t>(random() % 256);
  }
  // -32 times scale -128 times 127: the largest sum there is.
  for (std::uint8_t& q : blocks[0].ql) q = 0;
  for (std::uint8_t& q : blocks[0].qh) q = 0;
  for (std::int8_t& s : blocks[0].scales) s = -128;
  return blocks;
}

/// Weights in device memory, and the view that kernels take.
struct DeviceQ8_0 {
  explicit DeviceQ8_0(const std::vector<kernels::BlockQ8_0>& blocks)
      : scales(blocks.size()), quants(blocks.size() * 32) {
    cuda::split_q8_0(blocks.data(), blocks.size(), scales.data(), quants.data());
  }
  cuda::PlanesQ8_0 view() { return {scales.data(), quants.data()}; }
  Aligned<std::uint16_t> scales;
  Aligned<std::int8_t> quants;
};

struct DeviceQ4K {
  explicit DeviceQ4K(const std::vector<kernels::BlockQ4_K>& blocks)
      : d(blocks.size() * 2), scales(blocks.size() * 16), quants(blocks.size() * 128) {
    cuda::split_q4_k(blocks.data(), blocks.size(), d.data(), scales.data(), quants.data());
  }
  cuda::PlanesQ4K view() { return {d.data(), scales.data(), quants.data()}; }
  Aligned<std::uint16_t> d;
  Aligned<std::uint8_t> scales, quants;
};

struct DeviceQ6K {
  explicit DeviceQ6K(const std::vector<kernels::BlockQ6_K>& blocks)
      : d(blocks.size()),
        scales(blocks.size() * 16),
        low(blocks.size() * 128),
        high(blocks.size() * 64) {
    cuda::split_q6_k(blocks.data(), blocks.size(), d.data(), scales.data(), low.data(),
                     high.data());
  }
  cuda::PlanesQ6K view() { return {d.data(), scales.data(), low.data(), high.data()}; }
  Aligned<std::uint16_t> d;
  Aligned<std::int8_t> scales;
  Aligned<std::uint8_t> low, high;
};

}  // namespace detrun::cuda_test
