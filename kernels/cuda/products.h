// THE table of tensor types on a device: how a weight of each type lies in device memory and which
// launchers multiply with it. The backend and the smoke test know no type beside it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/ops.h"
#include "kernels/cuda/planes.h"

namespace detrun::cuda {

/// A weight (n, k) in device memory, laid out by the `pack` of its type.
struct DeviceMatrix {
  const void* image;  ///< at a multiple of kImageAlignment bytes
  unsigned n, k;
};

/// Activations of m rows, at multiples of 16 bytes, in the form that the type's `input` names.
struct Activations {
  const float* x;           ///< (m, k), kFloat
  QuantizedRows quantized;  ///< kQuantized: with sums and half_sums, whatever the type needs
  unsigned m;
  /// kFloat: a flag (int, 0 before) that becomes 1 where a row is not finite; nullptr: nobody wants
  /// to know. Quantized rows were looked at when they were made.
  int* not_finite = nullptr;
};

struct GemvProduct {
  DeviceMatrix weight;
  float* y;  ///< (weight.n)
};

struct ProductOps {
  std::uint32_t gguf_id;
  kernels::InputForm input;
  /// Bytes of the image of a matrix (n, k); k is a multiple of the type's block.
  std::size_t (*image_bytes)(std::size_t n, std::size_t k);
  /// Rows [first, last) of the n as in the file, any alignment, to their places in an image in host
  /// memory; `rows` is row 0 of the matrix, `image` the whole image, aligned as on the device.
  /// Calls for different rows touch different bytes, so threads may share an image. What lies
  /// between the planes of an image is never written and never read.
  void (*pack)(const void* rows, std::size_t n, std::size_t k, std::size_t first, std::size_t last,
               void* image);
  /// y of each of n products with the same row, 1 to kGemvMatrices of them, whose k are the same;
  /// x.m is 1. Contract clauses 1 and 3.
  cudaError_t (*gemv)(const GemvProduct* products, unsigned n, const Activations& x,
                      cudaStream_t stream);
  /// Device bytes, at a multiple of kImageAlignment, that `gemm` needs beside its arguments and
  /// may overwrite; 0: none. Grows with m, n and k.
  std::size_t (*workspace_bytes)(std::size_t m, std::size_t n, std::size_t k);
  /// y (m, n), the same bits as m times `gemv`.
  cudaError_t (*gemm)(DeviceMatrix weight, const Activations& x, void* workspace, float* y,
                      cudaStream_t stream);
  /// out (n_tokens, k): rows of the matrix by id, decoded as contract clause 3 says.
  cudaError_t (*embed)(DeviceMatrix matrix, const int* tokens, unsigned n_tokens, float* out,
                       cudaStream_t stream);
  /// Writes the image of a matrix that is made up: what `pack` gives of the bytes of
  /// kernels/quant/synthetic.h. nullptr for a type that is never made up.
  cudaError_t (*fill)(void* image, std::size_t n, std::size_t k, std::uint64_t key,
                      cudaStream_t stream);
};

/// The row of a type; nullptr for a type without kernels.
const ProductOps* find_product(std::uint32_t gguf_id);

}  // namespace detrun::cuda
