// See cublas_lt_api.h: the interface. What the algorithms are is in cublas_lt_algorithm.cpp.
#include <cstring>
#include <memory>

#include "kernels/cuda/emulated_runtime/cublas_lt_algorithm.h"
#include "kernels/cuda/emulated_runtime/emulated_stream.h"

struct cublasLtContext {
  int device = 0;
};
struct EmulatedMatmulDesc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t a_op = CUBLAS_OP_N, b_op = CUBLAS_OP_N;
};
struct EmulatedMatrixLayout {
  cudaDataType_t type;
  std::uint64_t rows, cols;
  std::int64_t ld;
};
struct EmulatedPreference {
  std::uint64_t workspace_bytes = 0, impl_mask = ~std::uint64_t{0};
  std::uint32_t reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace {

using namespace detrun::emulation;

constexpr std::size_t kAlignment = 256;

/// The shape of a product, as far as descriptors tell; k is 0 when they do not fit each other.
CublasLtCall shape_of(const char* name, const EmulatedMatmulDesc& desc,
                      const EmulatedMatrixLayout& a, const EmulatedMatrixLayout& b,
                      const EmulatedMatrixLayout& d) {
  CublasLtCall call;
  call.name = name;
  call.compute = desc.compute;
  call.a_type = a.type;
  call.b_type = b.type;
  call.d_type = d.type;
  call.a_op = static_cast<cublasOperation_t>(desc.a_op);
  call.b_op = static_cast<cublasOperation_t>(desc.b_op);
  call.m = d.rows;
  call.n = d.cols;
  call.a_ld = a.ld;
  call.b_ld = b.ld;
  call.d_ld = d.ld;
  const bool fits = a.rows == b.rows && a.cols == d.rows && b.cols == d.cols &&
                    call.a_op == CUBLAS_OP_T && call.b_op == CUBLAS_OP_N && a.type == b.type &&
                    d.type == CUDA_R_32F && desc.scale == CUDA_R_32F;
  call.k = fits ? a.rows : 0;
  return call;
}

bool is_operand(const void* memory, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0 &&
         is_device_memory(memory, bytes);
}

template <class T>
cublasStatus_t set(T& to, const void* value, std::size_t size) {
  if (value == nullptr || size != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t give(T value, void* to, std::size_t size, std::size_t* written) {
  if (to == nullptr || size != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, &value, size);
  if (written != nullptr) *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

// Handles are C's: who calls this owns them.
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  record_cublas_lt({.name = "create"});
  if (cublas_lt().fails_to_start) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = std::make_unique<cublasLtContext>().release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  record_cublas_lt({.name = "destroy"});
  std::unique_ptr<cublasLtContext>(handle).reset();
  return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() { return cublas_lt().version; }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = std::make_unique<EmulatedMatmulDesc>(EmulatedMatmulDesc{compute, scale}).release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  std::unique_ptr<EmulatedMatmulDesc>(desc).reset();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t size) {
  return set(attribute == CUBLASLT_MATMUL_DESC_TRANSA ? desc->a_op : desc->b_op, value, size);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  *layout =
      std::make_unique<EmulatedMatrixLayout>(EmulatedMatrixLayout{type, rows, cols, ld}).release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  std::unique_ptr<EmulatedMatrixLayout>(layout).reset();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = std::make_unique<EmulatedPreference>().release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  std::unique_ptr<EmulatedPreference>(preference).reset();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t size) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference->workspace_bytes, value, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(preference->reduction_mask, value, size);
    case CUBLASLT_MATMUL_PREF_IMPL_MASK:
      return set(preference->impl_mask, value, size);
    default:
      return set(preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                 value, size);
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  CublasLtCall call = shape_of("heuristic", *desc, *a, *b, *d);
  call.reduction_mask = preference->reduction_mask;
  call.impl_mask = preference->impl_mask;
  call.workspace_bytes = preference->workspace_bytes;
  std::memcpy(call.alignments, preference->alignments, sizeof(call.alignments));
  call.wanted = wanted;
  record_cublas_lt(call);
  const EmulatedCublasLt behaviour = cublas_lt();
  *found = 0;
  for (const LtAlgorithm& algorithm : algorithms_for(call, behaviour.ignores_masks)) {
    const bool allowed = (algorithm.reduction & ~call.reduction_mask) == 0 &&
                         (numerics_of(algorithm) & ~call.impl_mask) == 0;
    const std::uint64_t workspace = workspace_of(algorithm);
    if (*found == wanted || !fits(algorithm, call) || workspace > call.workspace_bytes ||
        (!allowed && !behaviour.ignores_masks)) {
      continue;
    }
    results[(*found)++] = {write_algorithm(algorithm), workspace, CUBLAS_STATUS_SUCCESS, 1.0F, {}};
  }
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  CublasLtCall call = shape_of("check", *desc, *a, *b, *d);
  const LtAlgorithm algorithm = read_algorithm(*algo);
  call.algorithm = algorithm.id;
  record_cublas_lt(call);
  if (!fits(algorithm, call)) return CUBLAS_STATUS_NOT_SUPPORTED;
  result->workspaceSize = workspace_of(algorithm);
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                 cublasLtMatmulAlgoCapAttributes_t, void* value,
                                                 std::size_t size, std::size_t* written) {
  return give(numerics_of(read_algorithm(*algo)), value, size, written);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, std::size_t size,
                                                    std::size_t* written) {
  const LtAlgorithm algorithm = read_algorithm(*algo);
  if (!is_algorithm(algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_ID:
      return give(algorithm.id, value, size, written);
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      return give(algorithm.parts, value, size, written);
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      return give(algorithm.reduction, value, size, written);
    case CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID:
    case CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID:
      return give(std::uint16_t{6}, value, size, written);
    default:
      return give(std::uint32_t{7}, value, size, written);
  }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const LtAlgorithm algorithm = read_algorithm(*algo);
  CublasLtCall call = shape_of("matmul", *desc, *a_layout, *b_layout, *d_layout);
  std::memcpy(&call.alpha, alpha, sizeof(call.alpha));
  std::memcpy(&call.beta, beta, sizeof(call.beta));
  call.a = a;
  call.b = b;
  call.c = c;
  call.d = d;
  call.workspace = workspace;
  call.workspace_bytes = workspace_bytes;
  call.stream = stream;
  call.algorithm = algorithm.id;
  record_cublas_lt(call);
  const bool whole = is_operand(a, call.m * call.k * element_bytes(call.a_type)) &&
                     is_operand(b, call.n * call.k * element_bytes(call.b_type)) &&
                     is_operand(d, call.m * call.n * sizeof(float)) &&
                     is_operand(workspace, workspace_bytes);
  const bool packed = call.a_ld == static_cast<std::int64_t>(call.k) && call.b_ld == call.a_ld &&
                      call.d_ld == static_cast<std::int64_t>(call.m);
  if (!fits(algorithm, call) || !whole || !packed || c != d || call.alpha != 1.0F ||
      call.beta != 0.0F || workspace_of(algorithm) > workspace_bytes || stream == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool flip = is_flipped_product();
  const std::uint32_t parts = algorithm.parts;
  return stream->add([=] { return multiply(call, parts, flip); }) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}
