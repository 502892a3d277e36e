// Products of many rows under profile cublas: by cuBLASLt, with algorithms that a plan pins. Their
// bits are the library's, the same for the same plan on the same stack; which rows are computed
// together decides about none of them, for every product is one of plan.rows rows, those that are
// missing filled up with zeros.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/cublas_lt.h"
#include "backend/cuda/cuda_flag.h"
#include "backend/cuda/cuda_scratch.h"
#include "backend/cuda/cuda_transfer.h"
#include "backend/cuda/cuda_weight.h"
#include "detrun/backend.h"

namespace detrun {

struct CudaProduct {
  const CudaWeight* weight;
  float* y;                ///< (rows, weight->n), the beginning of device memory
  std::uint64_t y_floats;  ///< that there is room for, all of them ours to write
};

/// Weights of one type and shape that many rows are multiplied with.
struct PinnedWeights {
  QType type;
  std::uint32_t n, k;
  std::string name;  ///< of one of them
};

class CudaPinned {
 public:
  /// All outlive the object.
  CudaPinned(const CudaStream& stream, CudaTransfer& transfer, CudaFlag& flag, ScratchMoves& moves)
      : stream_(stream),
        transfer_(transfer),
        flag_(flag),
        rounded_("activations", moves),
        padded_("the padding of products", moves),
        workspace_("the workspace of cuBLASLt", moves) {}

  /// See Backend::product_library, pin_products, use_products, test_products.
  std::string cublaslt_version();
  const ProductPlan& pin(std::span<const PinnedWeights> weights, std::uint32_t rows);
  void use(const ProductPlan& plan);
  void stop() { plan_.reset(); }
  void test(std::uint32_t times);

  bool has_plan() const { return plan_.has_value(); }
  /// Whether products of `rows` rows with such a weight are for multiply().
  bool takes(const CudaWeight& weight, std::uint32_t rows) const {
    return plan_.has_value() && weight.many_rows && rows > 1;
  }
  std::uint64_t scratch_bytes(const PassShape& shape) const;
  void reserve(const PassShape& shape);

  /// x (rows, reader.k) rounded to the type of `reader`, in memory of its own, good until the next
  /// call. Rows are the plan's, or Error kInconclusive.
  const void* round(const CudaWeight& reader, const float* x, std::uint32_t rows);
  /// `rounded` from round() with a weight of the same type and k. Error kInconclusive when the plan
  /// has no such product.
  void multiply(const CudaProduct& product, const void* rounded, std::uint32_t rows);

 private:
  ProductShape shape_of(const PinnedProduct& product) const;
  CublasLt& library();
  std::uint64_t rounded_bytes() const;
  std::uint64_t padded_bytes(const PassShape& shape) const;
  void test_one(const PinnedProduct& product, std::uint32_t times);

  const CudaStream& stream_;
  CudaTransfer& transfer_;
  CudaFlag& flag_;
  std::unique_ptr<CublasLt> library_;  ///< from the first plan on
  std::optional<ProductPlan> plan_;
  CudaScratch rounded_, padded_, workspace_;
};

}  // namespace detrun
