// The functions of cuBLASLt that are called, as pointers, and the library that keeps them good.
// Included by cublas_lt*.cpp and their tests only.
#pragma once

#include <cublasLt.h>

#include <optional>

#include "backend/shared_library.h"

namespace detrun {

// NAME(member, symbol)
#define DETRUN_CUBLAS_LT_CALLS(NAME)                         \
  NAME(create, cublasLtCreate)                               \
  NAME(destroy, cublasLtDestroy)                             \
  NAME(version, cublasLtGetVersion)                          \
  NAME(status_text, cublasLtGetStatusString)                 \
  NAME(desc_create, cublasLtMatmulDescCreate)                \
  NAME(desc_destroy, cublasLtMatmulDescDestroy)              \
  NAME(desc_set, cublasLtMatmulDescSetAttribute)             \
  NAME(layout_create, cublasLtMatrixLayoutCreate)            \
  NAME(layout_destroy, cublasLtMatrixLayoutDestroy)          \
  NAME(preference_create, cublasLtMatmulPreferenceCreate)    \
  NAME(preference_destroy, cublasLtMatmulPreferenceDestroy)  \
  NAME(preference_set, cublasLtMatmulPreferenceSetAttribute) \
  NAME(heuristic, cublasLtMatmulAlgoGetHeuristic)            \
  NAME(check, cublasLtMatmulAlgoCheck)                       \
  NAME(capability, cublasLtMatmulAlgoCapGetAttribute)        \
  NAME(configuration, cublasLtMatmulAlgoConfigGetAttribute)  \
  NAME(matmul, cublasLtMatmul)

struct CublasLtCalls {
#define DETRUN_MEMBER(member, symbol) decltype(&::symbol) member = nullptr;  // NOLINT
  DETRUN_CUBLAS_LT_CALLS(DETRUN_MEMBER)
#undef DETRUN_MEMBER
  std::optional<SharedLibrary> opened;  ///< nothing where the functions are linked in
};

/// Error kUsage: no library, or one that lacks a function.
CublasLtCalls load_cublas_lt();

}  // namespace detrun
