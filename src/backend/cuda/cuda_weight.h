// A matrix in device memory: checked and packed on the host once, at load, or made up where it
// lies.
#pragma once

#include <memory>
#include <string>

#include "backend/cuda/cuda_handles.h"
#include "backend/cuda/cuda_transfer.h"
#include "backend/thread_pool.h"
#include "detrun/backend.h"
#include "kernels/cuda/products.h"

namespace detrun {

struct CudaWeight final : Weight {
  std::string name;
  const cuda::ProductOps* ops = nullptr;
  QType type = QType::kF32;
  unsigned n = 0, k = 0;   ///< outputs, length of the dot products
  bool many_rows = false;  ///< see WeightView
  DeviceMemory image;
  cuda::DeviceMatrix matrix() const { return {image.data(), n, k}; }
};

/// Errors: see Backend::load_weight; kInternal when the device has not enough memory.
std::unique_ptr<CudaWeight> load_cuda_weight(CudaTransfer& transfer, ThreadPool& pool,
                                             const WeightView& view);
/// See Backend::make_up_weight; queued on the stream. The type has a `fill`.
std::unique_ptr<CudaWeight> make_up_cuda_weight(const CudaStream& stream, const WeightView& view,
                                                std::uint64_t key);

}  // namespace detrun
