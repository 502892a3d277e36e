// See cublas_lt_problem.h.
#include "backend/cuda/cublas_lt_problem.h"

#include "detrun/error.h"

namespace detrun {
namespace {

cudaDataType_t data_type(QType type) {
  switch (type) {
    case QType::kF16:
      return CUDA_R_16F;
    case QType::kBF16:
      return CUDA_R_16BF;
    default:
      DETRUN_CHECK(type == QType::kF32);
      return CUDA_R_32F;
  }
}

LtOwner<cublasLtMatrixLayout_t> layout(const CublasLtCalls& calls, cudaDataType_t type,
                                       std::uint64_t row_elems, std::uint64_t n_rows) {
  cublasLtMatrixLayout_t made = nullptr;
  expect_lt(
      calls,
      calls.layout_create(&made, type, row_elems, n_rows, static_cast<std::int64_t>(row_elems)),
      "cublasLtMatrixLayoutCreate");
  return {made, calls.layout_destroy};
}

}  // namespace

std::uint64_t forbidden_numerics(QType type) {
  constexpr std::uint64_t kWide =
      CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F;
  std::uint64_t exact = kWide;
  if (type == QType::kF16) {
    exact |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
  } else if (type == QType::kBF16) {
    exact |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
  }
  const std::uint64_t units =
      type == QType::kF32 ? CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK : 0;
  return (CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK & ~exact) |
         CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F | units;
}

void expect_lt(const CublasLtCalls& calls, cublasStatus_t status, const std::string& call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw_internal("cuBLASLt failed: " + call + ": " + calls.status_text(status));
}

LtProblem make_lt_problem(const CublasLtCalls& calls, const ProductShape& shape) {
  const cudaDataType_t type = data_type(shape.type);
  // Pedantic: binary32 is not to be made of anything smaller.
  const auto compute = type == CUDA_R_32F ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t made = nullptr;
  expect_lt(calls, calls.desc_create(&made, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  LtOwner<cublasLtMatmulDesc_t> operation{made, calls.desc_destroy};
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, std::int32_t value) {
    expect_lt(calls, calls.desc_set(made, attribute, &value, sizeof(value)),
              "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  return {std::move(operation), layout(calls, type, shape.k, shape.n),
          layout(calls, type, shape.k, shape.rows), layout(calls, CUDA_R_32F, shape.n, shape.rows)};
}

LtOwner<cublasLtMatmulPreference_t> make_lt_preference(const CublasLtCalls& calls, QType type,
                                                       std::uint64_t workspace_bytes) {
  cublasLtMatmulPreference_t made = nullptr;
  expect_lt(calls, calls.preference_create(&made), "cublasLtMatmulPreferenceCreate");
  LtOwner<cublasLtMatmulPreference_t> owner{made, calls.preference_destroy};
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    expect_lt(calls, calls.preference_set(made, attribute, &value, sizeof(value)),
              "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kLtFixedOrders);
  set(CUBLASLT_MATMUL_PREF_IMPL_MASK, ~forbidden_numerics(type));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(attribute, kLtAlignment);
  }
  return owner;
}

}  // namespace detrun
