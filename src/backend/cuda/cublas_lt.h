// cuBLASLt as profile cublas needs it: algorithms for one kind of product, and the product.
// NVIDIA's types do not leave cublas_lt.cpp; where the library comes from is decided when a program
// is linked (cublas_lt_load.cpp, cublas_lt_linked.cpp, or cublas_lt_absent.cpp for nowhere).
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detrun/quant.h"

namespace detrun {

/// y (rows, n) in binary32 = x (rows, k) times weight (n, k) transposed, both of the type, rows
/// without gaps; summed in binary32.
struct ProductShape {
  QType type;  ///< F32, F16 or BF16
  std::uint32_t rows, n, k;
  auto operator<=>(const ProductShape&) const = default;
};
/// "F16 4096x1024 with 512 rows".
inline std::string product_text(const ProductShape& shape) {
  return std::string(qtype_info(shape.type).name) + " " + std::to_string(shape.n) + "x" +
         std::to_string(shape.k) + " with " + std::to_string(shape.rows) + " rows";
}

/// What starts at a multiple of this is aligned for every algorithm; of any pointer to come.
inline constexpr std::uint32_t kLtAlignment = 256;

using LtAlgorithmBytes = std::array<std::byte, 64>;

struct LtAlgorithm {
  LtAlgorithmBytes bytes;         ///< cublasLtMatmulAlgo_t
  std::uint64_t workspace_bytes;  ///< that it needs
  std::string description;        ///< numbers as in cublasLt.h
  std::string unfit;  ///< why its bits would not be fixed or not as said; empty: they are
};

/// Device pointers at multiples of kLtAlignment.
struct LtOperands {
  const void *weight, *x;
  float* y;
  void* workspace;
  std::uint64_t workspace_bytes;
};

/// Of the device that was current when it was opened. Error kInternal where the library fails.
class CublasLt {
 public:
  virtual ~CublasLt() = default;
  virtual std::string version() const = 0;  ///< "13.1.0"
  /// One question to the heuristic: best first, none when there is none. `workspace_bytes`: at most
  /// so many. Those that are unfit may be among them.
  virtual std::vector<LtAlgorithm> choose(const ProductShape& shape,
                                          std::uint64_t workspace_bytes) = 0;
  /// What the library makes of the bytes for this shape; nothing, and in `why` its words, when it
  /// does not take them.
  virtual std::optional<LtAlgorithm> check(const ProductShape& shape, const LtAlgorithmBytes& bytes,
                                           std::string& why) = 0;
  /// Queues the product.
  virtual void multiply(const ProductShape& shape, const LtAlgorithmBytes& bytes,
                        const LtOperands& operands, cudaStream_t stream) = 0;
};

/// Error kUsage: no library, or one that lacks a function; kInternal: it does not start.
std::unique_ptr<CublasLt> open_cublas_lt();

}  // namespace detrun
