// Embedding rows, emulated, bit-equal to the decoders of kernels/quant.
#include "kernels/cuda/embedding.cuh"

#include "tests/cuda/product_support.h"

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

TEST_CASE_TEMPLATE_DEFINE("embedding rows of quantized types equal the decoder bit for bit", Type,
                          embed_quant) {
  std::mt19937 random(Type::kGgufId);
  for (const unsigned n_groups : {1u, 2u, 5u}) {
    const unsigned n_cols = n_groups * Type::kBlockElems;
    const auto blocks = random_blocks<Type>(random, std::size_t{kRows} * n_groups);
    std::vector<float> decoded(std::size_t{kRows} * n_cols);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      Type::decode(blocks[b], decoded.data() + b * Type::kBlockElems);
    }
    DeviceBlocks<Type> matrix(blocks);
    check(decoded, n_cols, [&](const int* ids, unsigned n, unsigned k, float* out) {
      device::detrun_embed_quant<Type>(matrix.view(), ids, n, k, out);
    });
  }
}
TEST_CASE_TEMPLATE_APPLY(embed_quant, QuantTypes);

}  // namespace detrun
