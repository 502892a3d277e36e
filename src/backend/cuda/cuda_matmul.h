// Products of several weights with the same activations, which are checked or quantized once. One
// row, or few, read the weights row after row; many make one product. The bits are the same.
#pragma once

#include <span>
#include <vector>

#include "backend/cuda/cuda_flag.h"
#include "backend/cuda/cuda_scratch.h"
#include "backend/cuda/cuda_weight.h"
#include "detrun/backend.h"

namespace detrun {

struct CudaProduct {
  const CudaWeight* weight;
  float* y;  ///< (rows, weight->n)
};

class CudaMatmul {
 public:
  /// All outlive the object.
  CudaMatmul(const CudaStream& stream, CudaFlag& flag, ScratchMoves& moves)
      : stream_(stream),
        flag_(flag),
        checked_("activations", moves),
        quantized_("activations", moves),
        workspace_("a matrix product", moves) {}
  /// A weight that may come: what scratch_bytes and reserve count with.
  void expect(const CudaWeight& weight);
  std::uint64_t scratch_bytes(const PassShape& shape) const;
  void reserve(const PassShape& shape);
  /// x (rows, k), k of all weights.
  void run(std::span<const CudaProduct> products, const float* x, std::uint32_t rows);

 private:
  struct Shape {
    const cuda::ProductOps* ops;
    unsigned n, k;
    bool operator==(const Shape&) const = default;
  };
  std::uint64_t workspace_bytes(std::uint64_t rows) const;
  bool has(kernels::InputForm form) const;
  void check_finite(const CudaWeight& reader, const float* x, std::uint32_t rows);
  cuda::QuantizedRows quantize(const CudaWeight& reader, const float* x, std::uint32_t rows);
  void multiply(const CudaProduct& product, const cuda::Activations& x);

  const CudaStream& stream_;
  CudaFlag& flag_;
  std::vector<Shape> shapes_;  ///< distinct ones
  CudaScratch checked_, quantized_, workspace_;
};

}  // namespace detrun
