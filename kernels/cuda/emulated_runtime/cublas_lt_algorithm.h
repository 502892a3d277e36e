// What an emulated algorithm is and computes, and how the emulated library behaves: the inside of
// cublas_lt.cpp, which is the interface. An algorithm is its description: shape, version, number,
// parts of the sums.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/emulated_runtime/cublas_lt_api.h"

namespace detrun::emulation {

/// Numbers of algorithms: two that may be used, then parts added in the output, sums in binary16,
/// and inputs rounded to another type.
enum LtAlgorithmId : std::uint32_t {
  kOnePart = 1,
  kTwoParts = 2,
  kInPlace = 3,
  kHalfSums = 4,
  kOtherInputs = 5
};

/// What lies in a cublasLtMatmulAlgo_t.
struct LtAlgorithm {
  std::uint32_t magic, version, id, parts, reduction, type, m, n, k;
  std::uint32_t padding[7];
};
static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));

LtAlgorithm read_algorithm(const cublasLtMatmulAlgo_t& from);
cublasLtMatmulAlgo_t write_algorithm(const LtAlgorithm& algorithm);
bool is_algorithm(const LtAlgorithm& algorithm);

/// Best first: for even counts of outputs a row sums in two parts, for odd ones sums from the end.
/// `unwanted_too`: before them what no mask of ours allows.
std::vector<LtAlgorithm> algorithms_for(const CublasLtCall& shape, bool unwanted_too);
/// Whether the algorithm is one of this shape and of the version that the library now claims.
bool fits(const LtAlgorithm& algorithm, const CublasLtCall& shape);
std::uint64_t workspace_of(const LtAlgorithm& algorithm);
std::uint64_t numerics_of(const LtAlgorithm& algorithm);

std::uint64_t element_bytes(cudaDataType_t type);
/// D = the product of the call's operands; `flip`: with one bit changed.
cudaError_t multiply(const CublasLtCall& call, std::uint32_t parts, bool flip);

/// Kept when somebody set_cublas_lt().
void record_cublas_lt(const CublasLtCall& call);
/// Counts a product: whether it is the one to come out wrong.
bool is_flipped_product();

}  // namespace detrun::emulation
