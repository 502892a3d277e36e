// The part of cuBLASLt's interface that the backend uses, on the emulated runtime: found as
// cublasLt.h instead of NVIDIA's in tests. Products run when their stream does, in orders of
// summation of their own that depend on the algorithm and are none of the contract's: who uses
// another algorithm gets other bits. What NVIDIA's library may let pass is refused: operands that
// are not whole in device memory or not aligned, algorithms of another shape or version, a
// workspace that is too small. Nothing here tells what NVIDIA's kernels compute.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_PEDANTIC = 69 };
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4
};
enum cublasLtReductionScheme_t {
  CUBLASLT_REDUCTION_SCHEME_NONE = 0,
  CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
  CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4,
  CUBLASLT_REDUCTION_SCHEME_MASK = 7
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
  CUBLASLT_MATMUL_PREF_IMPL_MASK = 12
};
enum cublasLtMatmulAlgoCapAttributes_t { CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS = 15 };
enum cublasLtMatmulAlgoConfigAttributes_t {
  CUBLASLT_ALGO_CONFIG_ID = 0,
  CUBLASLT_ALGO_CONFIG_TILE_ID = 1,
  CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2,
  CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME = 3,
  CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING = 4,
  CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION = 5,
  CUBLASLT_ALGO_CONFIG_STAGES_ID = 6,
  CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID = 7,
  CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID = 8
};
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA = 1;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK = 0xfe;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F = 1U << 8U;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F = 2U << 8U;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F = 1U << 16U;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF = 2U << 16U;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32 = 4U << 16U;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F = 8U << 16U;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F = 16U << 16U;
constexpr std::uint64_t CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK = 0xffU << 16U;

using cublasLtHandle_t = struct cublasLtContext*;
using cublasLtMatmulDesc_t = struct EmulatedMatmulDesc*;
using cublasLtMatrixLayout_t = struct EmulatedMatrixLayout*;
using cublasLtMatmulPreference_t = struct EmulatedPreference*;
struct cublasLtMatmulAlgo_t {
  std::uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
std::size_t cublasLtGetVersion();
const char* cublasLtGetStatusString(cublasStatus_t status);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t size);
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t size);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found);
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result);
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute,
                                                 void* value, std::size_t size,
                                                 std::size_t* written);
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, std::size_t size,
                                                    std::size_t* written);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream);

namespace detrun::emulation {

/// How the library behaves; as here in the beginning, but for what the environment says:
/// $DETRUN_EMULATED_CUBLASLT is "none" (missing) or a version, $DETRUN_EMULATED_CUBLASLT_FLIP is
/// flipped_call.
struct EmulatedCublasLt {
  bool missing = false;         ///< there is no library
  bool fails_to_start = false;  ///< it opens, and finds no device
  std::size_t version = 10203;  ///< 1.2.3
  /// The heuristic's first choices are such as it was told not to offer: parts of sums added in the
  /// output, sums in binary16, inputs rounded to another type.
  bool ignores_masks = false;
  std::uint64_t refused_outputs = 0;  ///< no algorithm is good for so many outputs a row
  std::uint64_t flipped_call = 0;     ///< the product, from 1, one bit of which is another
};
/// From now on; forgets calls and counts.
void set_cublas_lt(const EmulatedCublasLt& behaviour);
EmulatedCublasLt cublas_lt();

/// A call with its arguments, as far as it has them. A, B, D as cuBLASLt counts them: columns
/// first.
struct CublasLtCall {
  std::string name;  ///< "create", "heuristic", "check", "matmul", "destroy"
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t a_type = CUDA_R_32F, b_type = CUDA_R_32F, d_type = CUDA_R_32F;
  cublasOperation_t a_op = CUBLAS_OP_N, b_op = CUBLAS_OP_N;
  std::uint64_t m = 0, n = 0, k = 0;  ///< D (m, n), the sums of k products
  std::int64_t a_ld = 0, b_ld = 0, d_ld = 0;
  std::uint32_t reduction_mask = 0, alignments[4] = {};
  std::uint64_t impl_mask = 0, workspace_bytes = 0;
  int wanted = 0;
  float alpha = 0, beta = 0;
  const void *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr, *workspace = nullptr;
  cudaStream_t stream = nullptr;
  std::uint32_t algorithm = 0;  ///< its id
};
/// Since set_cublas_lt() was called, in their order, forgotten now.
std::vector<CublasLtCall> take_cublas_lt_calls();

/// Whether all of [memory, memory + size) lies in one allocation of a device.
bool is_device_memory(const void* memory, std::size_t size);

}  // namespace detrun::emulation
