// See cuda_matmul.h.
#include "backend/cuda/cuda_matmul.h"

#include <algorithm>
#include <array>

#include "backend/operator_errors.h"
#include "detrun/error.h"
#include "kernels/cuda/launch_rows.h"

namespace detrun {
namespace {

using kernels::InputForm;

// So few rows are read faster one by one than a product of many rows takes.
constexpr std::uint32_t kGemvRowsMax = 3;
constexpr unsigned kVectorFloats = 4;  // what is loaded 16 bytes at a time starts at such a float
constexpr std::uint64_t kActivationBlock = 32;

std::uint64_t round_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

/// Quantized rows in one piece of memory: quants (rows, k), then scales, sums (rows, k / 32) and
/// half sums (rows, k / 16), four bytes a block each.
struct QuantizedParts {
  QuantizedParts(std::uint64_t rows, std::uint64_t k)
      : quants_bytes(round_up(rows * k, cuda::kImageAlignment)),
        part_bytes(round_up(rows * (k / kActivationBlock) * sizeof(float), cuda::kImageAlignment)) {
  }
  std::uint64_t bytes() const { return quants_bytes + 3 * part_bytes; }
  std::uint64_t quants_bytes, part_bytes;
};

template <class T>
T* at(std::byte* memory, std::uint64_t offset) {
  return static_cast<T*>(static_cast<void*>(memory + offset));
}

/// Rows `row` to row + n - 1 of the activations.
cuda::Activations some_rows(const cuda::Activations& x, std::uint64_t row, std::uint32_t n,
                            std::uint64_t k) {
  const std::uint64_t blocks = row * (k / kActivationBlock);
  cuda::Activations out = x;
  out.m = n;
  if (x.x != nullptr) out.x += row * k;
  if (x.quantized.quants != nullptr) {
    out.quantized = {x.quantized.quants + row * k, x.quantized.scales + blocks,
                     x.quantized.sums + blocks, x.quantized.half_sums + 2 * blocks};
  }
  return out;
}

/// Whether every row starts where kernels can load 16 bytes.
bool rows_are_aligned(InputForm form, unsigned k) {
  return form == InputForm::kFloat ? k % kVectorFloats == 0
                                   : k % (kVectorFloats * kActivationBlock) == 0;
}

/// Whether so many rows are multiplied one after another.
bool is_by_row(const CudaWeight& weight, std::uint32_t rows) {
  return rows == 1 || (rows <= kGemvRowsMax && rows_are_aligned(weight.ops->input, weight.k));
}

}  // namespace

void CudaMatmul::expect(const CudaWeight& weight) {
  const Shape shape{weight.ops, weight.type, weight.n, weight.k, weight.many_rows};
  const auto same = [&](const Expected& one) { return one.shape == shape; };
  if (std::none_of(expected_.begin(), expected_.end(), same)) {
    expected_.push_back({shape, weight.name});
  }
}

std::vector<PinnedWeights> CudaMatmul::many_rows_weights() const {
  std::vector<PinnedWeights> weights;
  for (const auto& [shape, name] : expected_) {
    if (shape.many_rows) weights.push_back({shape.type, shape.n, shape.k, name});
  }
  return weights;
}

bool CudaMatmul::has(InputForm form) const {
  return std::any_of(expected_.begin(), expected_.end(),
                     [&](const Expected& one) { return one.shape.ops->input == form; });
}

/// Of our own products of many rows.
std::uint64_t CudaMatmul::workspace_bytes(std::uint64_t rows) const {
  std::uint64_t most = 0;
  for (const auto& [shape, name] : expected_) {
    if (shape.many_rows && pinned_.has_plan()) continue;
    most = std::max<std::uint64_t>(most, shape.ops->workspace_bytes(rows, shape.n, shape.k));
  }
  return most;
}

std::uint64_t CudaMatmul::scratch_bytes(const PassShape& shape) const {
  std::uint64_t bytes = workspace_bytes(shape.rows) + pinned_.scratch_bytes(shape);
  if (has(InputForm::kQuantized)) bytes += QuantizedParts(shape.rows, shape.row_floats).bytes();
  return bytes;
}

void CudaMatmul::reserve(const PassShape& shape) {
  pinned_.reserve(shape);
  workspace_.room(workspace_bytes(shape.rows));
  if (has(InputForm::kQuantized)) {
    quantized_.room(QuantizedParts(shape.rows, shape.row_floats).bytes());
  }
}

cuda::QuantizedRows CudaMatmul::quantize(const CudaWeight& reader, const float* x,
                                         std::uint32_t rows) {
  const std::uint64_t k = reader.k;
  const std::uint64_t blocks = k / kActivationBlock;
  const QuantizedParts parts(rows, k);
  std::byte* memory = quantized_.room(parts.bytes());
  auto* quants = at<std::int8_t>(memory, 0);
  auto* scales = at<float>(memory, parts.quants_bytes);
  auto* sums = at<float>(memory, parts.quants_bytes + parts.part_bytes);
  auto* half_sums = at<std::int16_t>(memory, parts.quants_bytes + 2 * parts.part_bytes);
  flag_.launch_rows(
      rows,
      [&](std::uint32_t first, std::uint32_t n) {
        const std::uint64_t block = first * blocks;
        check_cuda(cuda::quantize(x + first * k, n * blocks, quants + first * k, scales + block,
                                  sums + block, half_sums + 2 * block, flag_.get(), stream_.get()),
                   "matmul");
      },
      [&](std::uint32_t row) { throw_activation_not_finite(reader.name, row, rows); });
  return {quants, scales, sums, half_sums};
}

std::size_t CudaMatmul::together(std::span<const CudaProduct> products, std::uint32_t rows) const {
  const CudaWeight& first = *products[0].weight;
  if (!is_by_row(first, rows)) return 1;
  std::size_t n = 1;
  while (n < products.size() && n < cuda::kGemvMatrices && products[n].weight->ops == first.ops &&
         !pinned_.takes(*products[n].weight, rows)) {
    ++n;
  }
  return n;
}

void CudaMatmul::multiply(std::span<const CudaProduct> products, const cuda::Activations& x,
                          std::uint32_t row) {
  const CudaWeight& first = *products[0].weight;
  if (is_by_row(first, x.m)) {
    for (std::uint32_t i = 0; i < x.m; ++i) {
      std::array<cuda::GemvProduct, cuda::kGemvMatrices> tasks{};
      std::transform(products.begin(), products.end(), tasks.begin(), [&](const CudaProduct& p) {
        return cuda::GemvProduct{p.weight->matrix(), p.y + (std::uint64_t{row} + i) * p.weight->n};
      });
      check_cuda(first.ops->gemv(tasks.data(), static_cast<unsigned>(products.size()),
                                 some_rows(x, i, 1, first.k), stream_.get()),
                 "matmul");
    }
    return;
  }
  DETRUN_CHECK(products.size() == 1);
  std::byte* workspace = workspace_.room(first.ops->workspace_bytes(x.m, first.n, first.k));
  check_cuda(first.ops->gemm(first.matrix(), x, workspace,
                             products[0].y + std::uint64_t{row} * first.n, stream_.get()),
             "matmul");
}

// The first product of float activations looks at them while it reads them.
void CudaMatmul::multiply_checked(std::span<const CudaProduct> products,
                                  const cuda::Activations& x) {
  const CudaWeight& first = *products[0].weight;
  cuda::Activations looked_at = x;
  looked_at.not_finite = flag_.get();
  flag_.launch_rows(
      x.m,
      [&](std::uint32_t row, std::uint32_t n) {
        multiply(products, some_rows(looked_at, row, n, first.k), row);
      },
      [&](std::uint32_t row) { throw_activation_not_finite(first.name, row, x.m); });
}

void CudaMatmul::run(std::span<const CudaProduct> products, const float* x, std::uint32_t rows) {
  cuda::Activations as_floats{};
  cuda::Activations as_quants{};
  const void* rounded = nullptr;
  QType rounded_to{};
  while (!products.empty()) {
    const CudaWeight& weight = *products[0].weight;
    if (pinned_.takes(weight, rows)) {
      if (rounded == nullptr || rounded_to != weight.type) rounded = pinned_.round(weight, x, rows);
      rounded_to = weight.type;
      pinned_.multiply(products[0], rounded, rows);
      products = products.subspan(1);
      continue;
    }
    const auto now = products.first(together(products, rows));
    products = products.subspan(now.size());
    const bool quantized = weight.ops->input == InputForm::kQuantized;
    cuda::Activations& input = quantized ? as_quants : as_floats;
    const bool first = input.m == 0;
    if (first) {
      input.m = rows;
      input.x = x;
      if (quantized) input.quantized = quantize(weight, x, rows);
    }
    if (first && !quantized) {
      multiply_checked(now, input);
    } else {
      multiply(now, input, 0);
    }
  }
}

}  // namespace detrun
