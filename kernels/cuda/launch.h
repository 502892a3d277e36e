// Launchers of the matrix products and of weights that are made up: device pointers in, work on
// `stream`, the launch's status out. Sizes are at least 1 and below 2^31; every pointer to what is
// loaded wide starts at a multiple of 16 bytes. The layouts of weights and quantized rows are in
// planes.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/planes.h"

namespace detrun::cuda {

/// y (n_rows) = weight (n_rows, n_cols) times x (n_cols), contract clause 1, for the first n of
/// `matrices`, 1 to kGemvMatrices, n_rows >= 1. The flag (int, 0 before) becomes 1 where x is not
/// finite; nullptr: nobody wants to know.
cudaError_t gemv_f32(const GemvMatrix<const float*>* matrices, unsigned n, const float* x,
                     unsigned n_cols, int* not_finite, cudaStream_t stream);
cudaError_t gemv_f16(const GemvMatrix<const std::uint16_t*>* matrices, unsigned n, const float* x,
                     unsigned n_cols, int* not_finite, cudaStream_t stream);
cudaError_t gemv_bf16(const GemvMatrix<const std::uint16_t*>* matrices, unsigned n, const float* x,
                      unsigned n_cols, int* not_finite, cudaStream_t stream);

/// Contract clause 3 for one quantized row, n matrices as above. A group is a block of the file.
/// For every type of DETRUN_QUANT_TYPES.
template <class Type>
cudaError_t gemv_quant(const GemvMatrix<Planes>* matrices, unsigned n, QuantizedRows x,
                       unsigned n_groups, cudaStream_t stream);
/// Contract clause 3 for m quantized rows: y (m, n). What a type does not need of x may be nullptr.
template <class Type>
cudaError_t gemm_quant(Planes weight, QuantizedRows x, float* y, unsigned m, unsigned n,
                       unsigned n_groups, cudaStream_t stream);

/// Contract clause 1: y (m, n) from x (m, k) and weight (n, k). The workspace has
/// gemm_float_workspace bytes, at a multiple of kImageAlignment; element_bytes is 4 or 2. The flag
/// as of a GEMV.
std::size_t gemm_float_workspace(std::size_t m, std::size_t n, std::size_t k,
                                 std::size_t element_bytes);
cudaError_t gemm_f32(const float* weight, const float* x, void* workspace, float* y, unsigned m,
                     unsigned n, unsigned k, int* not_finite, cudaStream_t stream);
cudaError_t gemm_f16(const std::uint16_t* weight, const float* x, void* workspace, float* y,
                     unsigned m, unsigned n, unsigned k, int* not_finite, cudaStream_t stream);
cudaError_t gemm_bf16(const std::uint16_t* weight, const float* x, void* workspace, float* y,
                      unsigned m, unsigned n, unsigned k, int* not_finite, cudaStream_t stream);

/// Images of made-up weights, the same that packing the bytes of kernels/quant/synthetic.h gives: n
/// elements, or n_groups groups of a type of DETRUN_SYNTHETIC_TYPES.
cudaError_t fill_f32(void* image, std::size_t n, std::uint64_t key, cudaStream_t stream);
cudaError_t fill_f16(void* image, std::size_t n, std::uint64_t key, cudaStream_t stream);
cudaError_t fill_bf16(void* image, std::size_t n, std::uint64_t key, cudaStream_t stream);
template <class Type>
cudaError_t fill_quant(Planes planes, std::size_t n_groups, std::uint64_t key, cudaStream_t stream);

}  // namespace detrun::cuda
