// Products of several weights with the same activations, which are checked or quantized once. One
// row, or few, read the weights row after row, several weights in one launch; many make one
// product. The bits are the same. Where products are pinned (profile cublas), more rows than one
// are CudaPinned's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/cuda/cuda_flag.h"
#include "backend/cuda/cuda_pinned.h"
#include "backend/cuda/cuda_scratch.h"
#include "backend/cuda/cuda_weight.h"
#include "detrun/backend.h"

namespace detrun {

class CudaMatmul {
 public:
  /// All outlive the object.
  CudaMatmul(const CudaStream& stream, CudaFlag& flag, CudaPinned& pinned, ScratchMoves& moves)
      : stream_(stream),
        flag_(flag),
        pinned_(pinned),
        quantized_("activations", moves),
        workspace_("a matrix product", moves) {}
  /// A weight that may come: what scratch_bytes and reserve count with.
  void expect(const CudaWeight& weight);
  /// Of all that were expected: those that many rows are multiplied with.
  std::vector<PinnedWeights> many_rows_weights() const;
  std::uint64_t scratch_bytes(const PassShape& shape) const;
  void reserve(const PassShape& shape);
  /// x (rows, k), k of all weights.
  void run(std::span<const CudaProduct> products, const float* x, std::uint32_t rows);

 private:
  struct Shape {
    const cuda::ProductOps* ops;
    QType type;
    unsigned n, k;
    bool many_rows;
    bool operator==(const Shape&) const = default;
  };
  struct Expected {
    Shape shape;
    std::string name;  ///< of the first weight
  };
  std::uint64_t workspace_bytes(std::uint64_t rows) const;
  bool has(kernels::InputForm form) const;
  cuda::QuantizedRows quantize(const CudaWeight& reader, const float* x, std::uint32_t rows);
  /// Of the first of `products`, at least one: how many are multiplied in one go.
  std::size_t together(std::span<const CudaProduct> products, std::uint32_t rows) const;
  void multiply_checked(std::span<const CudaProduct> products, const cuda::Activations& x);
  /// Products that go together; `row` is the row of y that x begins at.
  void multiply(std::span<const CudaProduct> products, const cuda::Activations& x,
                std::uint32_t row);

  const CudaStream& stream_;
  CudaFlag& flag_;
  CudaPinned& pinned_;
  std::vector<Expected> expected_;  ///< distinct shapes
  CudaScratch quantized_, workspace_;
};

}  // namespace detrun
