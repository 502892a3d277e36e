// Launchers of the matrix products: device pointers in, work on `stream`, the launch's status out.
// Sizes are at least 1 and below 2^31; every pointer to what is loaded wide starts at a multiple of
// 16 bytes. The layouts of weights and quantized rows are in planes.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/planes.h"

namespace detrun::cuda {

/// y (n_rows) = weight (n_rows, n_cols) times x (n_cols). n_rows >= 1. Contract clause 1.
cudaError_t gemv_f32(const float* weight, const float* x, float* y, unsigned n_rows,
                     unsigned n_cols, cudaStream_t stream);
cudaError_t gemv_f16(const std::uint16_t* weight, const float* x, float* y, unsigned n_rows,
                     unsigned n_cols, cudaStream_t stream);
cudaError_t gemv_bf16(const std::uint16_t* weight, const float* x, float* y, unsigned n_rows,
                      unsigned n_cols, cudaStream_t stream);

/// Contract clause 3 for Q8_0: scales (n_rows, n_blocks) binary16, quants (n_rows, n_blocks * 32),
/// x as clause 2 quantizes it. quants and x_quants are 16-byte aligned.
cudaError_t gemv_q8_0(const std::uint16_t* scales, const std::int8_t* quants,
                      const std::int8_t* x_quants, const float* x_scales, float* y, unsigned n_rows,
                      unsigned n_blocks, cudaStream_t stream);

/// Contract clause 3 for one quantized row: y (n_rows), groups of 256.
cudaError_t gemv_q4_k(PlanesQ4K weight, QuantizedRows x, float* y, unsigned n_rows,
                      unsigned n_groups, cudaStream_t stream);
cudaError_t gemv_q6_k(PlanesQ6K weight, QuantizedRows x, float* y, unsigned n_rows,
                      unsigned n_groups, cudaStream_t stream);

/// Contract clause 3 for m quantized rows: y (m, n). n_groups is k / 32 for Q8_0, else k / 256.
/// x.sums may be nullptr for Q8_0 and Q6_K.
cudaError_t gemm_q8_0(PlanesQ8_0 weight, QuantizedRows x, float* y, unsigned m, unsigned n,
                      unsigned n_groups, cudaStream_t stream);
cudaError_t gemm_q4_k(PlanesQ4K weight, QuantizedRows x, float* y, unsigned m, unsigned n,
                      unsigned n_groups, cudaStream_t stream);
cudaError_t gemm_q6_k(PlanesQ6K weight, QuantizedRows x, float* y, unsigned m, unsigned n,
                      unsigned n_groups, cudaStream_t stream);

/// x (m, k) to panels of kPanelRows rows, panel_elements(m, k, kPanelRows) floats.
cudaError_t pack_rows(const float* x, unsigned m, unsigned k, float* panels, cudaStream_t stream);

/// Contract clause 1: y (m, n) from x in panels of kPanelRows, weight (n, k) in panels of
/// kPanelOutputs (pack_panels).
cudaError_t gemm_f32(const float* weight, const float* x, float* y, unsigned m, unsigned n,
                     unsigned k, cudaStream_t stream);
cudaError_t gemm_f16(const std::uint16_t* weight, const float* x, float* y, unsigned m, unsigned n,
                     unsigned k, cudaStream_t stream);
cudaError_t gemm_bf16(const std::uint16_t* weight, const float* x, float* y, unsigned m, unsigned n,
                      unsigned k, cudaStream_t stream);

}  // namespace detrun::cuda
