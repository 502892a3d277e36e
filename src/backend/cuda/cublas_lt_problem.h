// What is told to cuBLASLt about a product before it multiplies: descriptors, and the preferences
// of the heuristic. cuBLASLt counts columns first: what is rows of ours are columns there, so the
// weight (n, k) is A, transposed, and x is B. Leading dimensions are the lengths of rows.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "backend/cuda/cublas_lt.h"
#include "backend/cuda/cublas_lt_calls.h"

namespace detrun {

/// A handle or descriptor, destroyed by the library that made it.
template <class Handle>
using LtOwner = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;

/// Everything that describes products of one shape.
struct LtProblem {
  LtOwner<cublasLtMatmulDesc_t> operation;
  LtOwner<cublasLtMatrixLayout_t> weight, x, y;
};

// Parts of a sum are kept in the workspace and added in their order by a step of its own; the third
// scheme adds them in the output, where they come one after another as blocks get ready.
inline constexpr std::uint32_t kLtFixedOrders =
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;

/// Ways to multiply (cublasLtNumericalImplFlags_t) that give other products than those of the type:
/// sums of less than binary32, inputs rounded once more, of F32 all tensor cores.
std::uint64_t forbidden_numerics(QType type);

/// Error kInternal naming the call unless it succeeded.
void expect_lt(const CublasLtCalls& calls, cublasStatus_t status, const std::string& call);
LtProblem make_lt_problem(const CublasLtCalls& calls, const ProductShape& shape);
LtOwner<cublasLtMatmulPreference_t> make_lt_preference(const CublasLtCalls& calls, QType type,
                                                       std::uint64_t workspace_bytes);

}  // namespace detrun
