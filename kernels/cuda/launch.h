// Launchers of the CUDA kernels: device pointers in, work on `stream`, the launch's status out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

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

}  // namespace detrun::cuda
