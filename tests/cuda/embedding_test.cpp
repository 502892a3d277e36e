// Embedding rows, emulated, bit-equal to the decoders of kernels/quant.
#include "kernels/cuda/embedding.cuh"

#include "tests/cuda/row_support.h"

namespace detrun {
namespace {

using namespace detrun::kernels;
using namespace detrun::cuda_test;

constexpr unsigned kRows = 6;

// `decoded` is the whole matrix, `kernel` decodes rows of it by id.
void check(const std::vector<float>& decoded, unsigned n_cols,
           const std::function<void(const int*, unsigned, unsigned, float*)>& kernel) {
  const std::vector<int> tokens = {kRows - 1, 0, 3, 3, 1};
  std::vector<float> expected;
  for (const int token : tokens) {
    const auto from = decoded.begin() + static_cast<std::ptrdiff_t>(token) * n_cols;
    expected.insert(expected.end(), from, from + n_cols);
  }
  for (const auto order : kOrders) {
    std::vector<float> out(expected.size(), 1e30f);
    launch_rows(blocks_for(out.size(), device::kRowThreads), device::kRowThreads, order, [&] {
      kernel(tokens.data(), static_cast<unsigned>(tokens.size()), n_cols, out.data());
    });
    CAPTURE(n_cols);
    CHECK(same_bits(expected, out));
  }
}

// Scales: normal ones, subnormal ones, negative ones.
std::uint16_t random_scale(std::mt19937& random) {
  const unsigned sign = random() % 4 == 0 ? 0x8000u : 0;
  return static_cast<std::uint16_t>(
      sign | (random() % 4 == 0 ? 1 + random() % 1000 : 0x2000 + random() % 0x1000));
}

// Blocks with random bytes but for their scales, and their values.
template <class Type>
struct Matrix {
  std::vector<typename Type::Block> blocks;
  std::vector<float> decoded;

  Matrix(std::mt19937& random, unsigned n_cols)
      : blocks(std::size_t{kRows} * n_cols / Type::kBlockElems),
        decoded(std::size_t{kRows} * n_cols) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(&blocks[b]);
      for (std::size_t i = 0; i < sizeof blocks[b]; ++i) {
        bytes[i] = static_cast<std::uint8_t>(random() % 256);
      }
      blocks[b].d = random_scale(random);
      if constexpr (Type::kMinimum == Minimum::kInteger) blocks[b].dmin = random_scale(random);
      Type::decode(blocks[b], decoded.data() + b * Type::kBlockElems);
    }
  }
};

}  // namespace

TEST_CASE("embedding rows of float types are decoded exactly") {
  std::mt19937 random(23);
  for (const unsigned n_cols : {1u, 7u, 64u, 100u}) {
    std::vector<float> wide = random_floats(random, std::size_t{kRows} * n_cols, 2.0f);
    for (std::size_t i = 0; i < wide.size(); i += 5) wide[i] = 1.5f;
    check(wide, n_cols, [&](const int* ids, unsigned n, unsigned k, float* out) {
      device::detrun_embed_f32(wide.data(), ids, n, k, out);
    });
    std::vector<std::uint16_t> half, brain;
    std::vector<float> from_half, from_brain;
    for (const float v : wide) {
      half.push_back(f32_to_f16(v));
      brain.push_back(f32_to_bf16(v));
      from_half.push_back(f16_to_f32(half.back()));
      from_brain.push_back(bf16_to_f32(brain.back()));
    }
    check(from_half, n_cols, [&](const int* ids, unsigned n, unsigned k, float* out) {
      device::detrun_embed_f16(half.data(), ids, n, k, out);
    });
    check(from_brain, n_cols, [&](const int* ids, unsigned n, unsigned k, float* out) {
      device::detrun_embed_bf16(brain.data(), ids, n, k, out);
    });
  }
}

TEST_CASE("embedding rows of Q8_0 are decoded exactly") {
  std::mt19937 random(24);
  for (const unsigned n_cols : {32u, 64u, 160u}) {
    const Matrix<TypeQ8_0> matrix(random, n_cols);
    std::vector<std::uint16_t> scales(matrix.blocks.size());
    std::vector<std::int8_t> quants(matrix.decoded.size());
    cuda::split_q8_0(matrix.blocks.data(), matrix.blocks.size(), scales.data(), quants.data());
    check(matrix.decoded, n_cols, [&](const int* ids, unsigned n, unsigned k, float* out) {
      device::detrun_embed_q8_0({scales.data(), quants.data()}, ids, n, k, out);
    });
  }
}

TEST_CASE("embedding rows of Q4_K equal the decoder bit for bit") {
  std::mt19937 random(25);
  for (const unsigned n_cols : {256u, 768u}) {
    const Matrix<TypeQ4_K> matrix(random, n_cols);
    const std::size_t n = matrix.blocks.size();
    std::vector<std::uint16_t> d(2 * n);
    std::vector<std::uint8_t> scales(16 * n), quants(128 * n);
    cuda::split_q4_k(matrix.blocks.data(), n, d.data(), scales.data(), quants.data());
    check(matrix.decoded, n_cols, [&](const int* ids, unsigned n_ids, unsigned k, float* out) {
      device::detrun_embed_q4_k({d.data(), scales.data(), quants.data()}, ids, n_ids, k, out);
    });
  }
}

TEST_CASE("embedding rows of Q6_K equal the decoder bit for bit") {
  std::mt19937 random(26);
  for (const unsigned n_cols : {256u, 768u}) {
    const Matrix<TypeQ6_K> matrix(random, n_cols);
    const std::size_t n = matrix.blocks.size();
    std::vector<std::uint16_t> d(n);
    std::vector<std::int8_t> scales(16 * n);
    std::vector<std::uint8_t> low(128 * n), high(64 * n);
    cuda::split_q6_k(matrix.blocks.data(), n, d.data(), scales.data(), low.data(), high.data());
    check(matrix.decoded, n_cols, [&](const int* ids, unsigned n_ids, unsigned k, float* out) {
      device::detrun_embed_q6_k({d.data(), scales.data(), low.data(), high.data()}, ids, n_ids, k,
                                out);
    });
  }
}

}  // namespace detrun
