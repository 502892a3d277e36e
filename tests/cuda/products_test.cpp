// The table of tensor types on a device, through its launchers on the emulated runtime: each row
// against the scalar reference, as the backend would call it.
#include "kernels/cuda/products.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "tests/cuda/product_support.h"

namespace detrun {
namespace {

using namespace cuda_test;
using cuda::ProductOps;

constexpr std::uint32_t kIds = 64;  // GGUF's are below

// Rows of the file (n, k) of any type.
std::vector<std::byte> random_rows(std::mt19937& random, std::uint32_t id, unsigned n, unsigned k) {
  std::vector<std::byte> rows;
  const auto append = [&rows](const auto& values) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    rows.assign(bytes, bytes + values.size() * sizeof(values[0]));
  };
  const std::size_t size = std::size_t{n} * k;
  if (id <= 1 || id == 30) {
    const std::vector<float> wide = random_floats(random, size, 2.0f);
    std::vector<std::uint16_t> narrow;
    narrow.reserve(wide.size());
    for (const float v : wide) {
      narrow.push_back(id == 1 ? kernels::f32_to_f16(v) : kernels::f32_to_bf16(v));
    }
    id == 0 ? append(wide) : append(narrow);
  }
#define DETRUN_RANDOM(name)               \
  if (id == kernels::Type##name::kGgufId) \
    append(random_blocks<kernels::Type##name>(random, size / kernels::Type##name::kBlockElems));
  DETRUN_QUANT_TYPES(DETRUN_RANDOM)
#undef DETRUN_RANDOM
  return rows;
}

// A weight, its activations and all memory that a product touches, with bytes behind each that must
// stay as they were.
class Product {
 public:
  // `another`: of products with the same state of `random`, who has other weights.
  Product(std::mt19937& random, const ProductOps& ops, unsigned m, unsigned n, unsigned k,
          unsigned another = 0)
      : ops_(ops),
        m_(m),
        floats_(random_activations(random, m, k)),
        rows_(rows_after(random, another, ops.gguf_id, n, k)),
        image_(ops.image_bytes(n, k)),
        x_(floats_.size()),
        workspace_(ops.workspace_bytes(m, n, k) + kBehind) {
    std::copy(floats_.begin(), floats_.end(), x_.data());
    ops.pack(rows_.data(), n, k, 0, n, image_.data());
    if (ops.input == kernels::InputForm::kQuantized) quantized_.emplace(floats_, m, k);
    weight_ = {image_.data(), n, k};
    std::memset(workspace_.data(), 0x5a, workspace_.size());
  }

  std::vector<float> expected() const {
    return scalar_product(ops_.gguf_id, rows_.data(), m_, weight_.n, weight_.k, floats_);
  }
  std::vector<float> by_gemm() {
    Output y(std::size_t{m_} * weight_.n);
    CHECK(ops_.gemm(weight_, activations(), workspace_.data(), y.data(), nullptr) == cudaSuccess);
    for (std::size_t i = workspace_.size() - kBehind; i < workspace_.size(); ++i) {
      REQUIRE(workspace_.data()[i] == std::byte{0x5a});
    }
    return y.take();
  }
  // Whether a product says that activations with `value` in the last row's last place are finite.
  int flag_with(float value) {
    x_.data()[x_.size() - 1] = value;
    flag_ = 0;
    m_ == 1 ? by_gemv() : by_gemm();
    return flag_;
  }
  std::vector<float> by_gemv() {
    Output y(weight_.n);
    const cuda::GemvProduct product{weight_, y.data()};
    CHECK(ops_.gemv(&product, 1, activations(), nullptr) == cudaSuccess);
    return y.take();
  }

  cuda::Activations activations() {
    cuda::Activations x{x_.data(), {}, m_, &flag_};
    if (quantized_) x = {nullptr, quantized_->view(), m_};
    return x;
  }
  cuda::DeviceMatrix weight() const { return weight_; }

 private:
  static constexpr std::size_t kBehind = 1024;
  static std::vector<std::byte> rows_after(std::mt19937& random, unsigned skipped, std::uint32_t id,
                                           unsigned n, unsigned k) {
    random.discard(skipped);
    return random_rows(random, id, n, k);
  }
  const ProductOps& ops_;
  unsigned m_;
  std::vector<float> floats_;
  std::vector<std::byte> rows_;
  Aligned<std::byte> image_;
  Aligned<float> x_;
  Aligned<std::byte> workspace_;
  std::optional<DeviceRows> quantized_;
  cuda::DeviceMatrix weight_{};
  int flag_ = 0;
};

void check_product(std::mt19937& random, const ProductOps& ops, unsigned m, unsigned n,
                   unsigned k) {
  CAPTURE(ops.gguf_id);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  Product product(random, ops, m, n, k);
  const std::vector<float> expected = product.expected();
  CHECK(same_bits(expected, product.by_gemm()));
  if (m == 1) CHECK(same_bits(expected, product.by_gemv()));
}

}  // namespace

TEST_CASE("the device has the types of the scalar reference, in the same form") {
  const kernels::CpuOps& scalar = kernels::scalar::kOps;
  std::size_t found = 0;
  for (std::uint32_t id = 0; id < kIds; ++id) {
    const ProductOps* ops = cuda::find_product(id);
    if (ops == nullptr) continue;
    ++found;
    CHECK(ops->gguf_id == id);
    CHECK(ops->input == scalar_matmul(id).input);
  }
  CHECK(found == scalar.n_matmuls);
}

TEST_CASE("products through the table equal the scalar reference bit for bit") {
  std::mt19937 random(5);
  for (std::uint32_t id = 0; id < kIds; ++id) {
    const ProductOps* ops = cuda::find_product(id);
    if (ops == nullptr) continue;
    const bool floats = ops->input == kernels::InputForm::kFloat;
    for (const unsigned m : {1u, 2u, 33u, 65u}) {
      check_product(random, *ops, m, 67, floats ? 45 : 512);
      check_product(random, *ops, m, 5, floats ? 264 : 256);
    }
  }
}

TEST_CASE("several matrices in one launch have the bits of each alone, whatever rows they have") {
  std::mt19937 random(9);
  constexpr unsigned kRows[][3] = {{1, 1, 1}, {31, 32, 33}, {65, 3, 4}, {4, 129, 5}};
  for (std::uint32_t id = 0; id < kIds; ++id) {
    const ProductOps* ops = cuda::find_product(id);
    if (ops == nullptr) continue;
    const unsigned k = ops->input == kernels::InputForm::kFloat ? 72 : 512;
    for (const auto& rows : kRows) {
      for (const unsigned n : {2u, 3u}) {
        CAPTURE(id);
        CAPTURE(n);
        std::vector<std::unique_ptr<Product>> products;
        std::vector<Output> outputs;
        std::vector<cuda::GemvProduct> tasks;
        for (unsigned i = 0; i < n; ++i) {
          random.seed(77);  // the same row of x
          products.push_back(std::make_unique<Product>(random, *ops, 1, rows[i], k, i));
          outputs.emplace_back(rows[i]);
        }
        for (unsigned i = 0; i < n; ++i) {
          tasks.push_back({products[i]->weight(), outputs[i].data()});
        }
        CHECK(ops->gemv(tasks.data(), n, products[0]->activations(), nullptr) == cudaSuccess);
        for (unsigned i = 0; i < n; ++i) {
          CHECK(same_bits(products[i]->expected(), outputs[i].take()));
        }
      }
    }
  }
}

TEST_CASE("products of floats through the table raise the flag where activations are not finite") {
  std::mt19937 random(8);
  for (const std::uint32_t id : {0u, 1u, 30u}) {
    for (const unsigned m : {1u, 2u, 65u}) {
      for (const unsigned n : {1u, 32u, 33u, 129u}) {
        CAPTURE(id);
        CAPTURE(m);
        CAPTURE(n);
        Product product(random, *cuda::find_product(id), m, n, 72);
        CHECK(product.flag_with(1.0f) == 0);
        CHECK(product.flag_with(HUGE_VALF) == 1);
      }
    }
  }
}

TEST_CASE("a float weight that the workspace holds only in strips gives the same bits") {
  std::mt19937 random(6);
  for (const std::uint32_t id : {0u, 1u, 30u}) {
    const ProductOps& ops = *cuda::find_product(id);
    CHECK(ops.workspace_bytes(2, 1u << 20, 3) == ops.workspace_bytes(2, 8192, 3));
    check_product(random, ops, 2, 8192 + 70, 3);
  }
}

TEST_CASE("rows through the table equal those of the scalar reference") {
  std::mt19937 random(7);
  const std::vector<int> tokens = {8, 0, 3, 3, 7};
  for (std::uint32_t id = 0; id < kIds; ++id) {
    const ProductOps* ops = cuda::find_product(id);
    if (ops == nullptr) continue;
    const unsigned n = 9;
    const unsigned k = ops->input == kernels::InputForm::kFloat ? 45 : 512;
    const std::vector<std::byte> rows = random_rows(random, id, n, k);
    Aligned<std::byte> image(ops->image_bytes(n, k));
    // A call that reached beyond its rows would bring zeros.
    const auto row_bytes = static_cast<std::ptrdiff_t>(rows.size() / n);
    std::vector<std::byte> early = rows;
    std::vector<std::byte> late = rows;
    std::fill(early.begin() + 4 * row_bytes, early.end(), std::byte{0});
    std::fill(late.begin(), late.begin() + 4 * row_bytes, std::byte{0});
    ops->pack(late.data(), n, k, 4, n, image.data());
    ops->pack(early.data(), n, k, 0, 4, image.data());
    ops->pack(late.data(), n, k, 6, n, image.data());
    std::vector<float> expected(tokens.size() * k);
    const kernels::MatmulOps& scalar = scalar_matmul(id);
    Aligned<std::byte> packed(scalar.packed_bytes(k, n));
    scalar.pack(rows.data(), k, n, 0, (n + scalar.group - 1) / scalar.group, packed.data());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      scalar.decode_row(packed.data(), k, n, static_cast<std::uint64_t>(tokens[i]),
                        expected.data() + i * k);
    }
    Output out(expected.size());
    CHECK(ops->embed({image.data(), n, k}, tokens.data(), static_cast<unsigned>(tokens.size()),
                     out.data(), nullptr) == cudaSuccess);
    CAPTURE(id);
    CHECK(same_bits(expected, out.take()));
  }
}

}  // namespace detrun
