// See cuda_flag.h.
#include "backend/cuda/cuda_flag.h"

#include "detrun/error.h"

namespace detrun {

CudaFlag::CudaFlag(const CudaStream& stream, CudaTransfer& transfer)
    : stream_(stream), transfer_(transfer) {
  lower();
}

void CudaFlag::lower() {
  check_cuda(cudaMemsetAsync(memory_.data(), 0, memory_.size(), stream_.get()), "cudaMemset");
}

bool CudaFlag::take() {
  int raised = 0;
  transfer_.download(&raised, memory_.data(), sizeof(raised));
  if (raised != 0) lower();
  return raised != 0;
}

void CudaFlag::check() {
  was_raised_ = take();
  if (was_raised_) {
    throw_internal("a value is not finite, or does not fit into the KV cache");
  }
}

void CudaFlag::set_placing(bool on) {
  placing_ = on;
  was_raised_ = false;
}

}  // namespace detrun
