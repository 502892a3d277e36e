// See cuda_flag.h.
#include "backend/cuda/cuda_flag.h"

#include <cstring>

#include "detrun/error.h"

namespace detrun {

CudaFlag::CudaFlag(const CudaStream& stream) : stream_(stream) { lower(); }

void CudaFlag::lower() {
  check_cuda(cudaMemsetAsync(memory_.data(), 0, memory_.size(), stream_.get()), "cudaMemset");
}

void CudaFlag::fetch() {
  check_cuda(cudaMemcpyAsync(fetched_.data(), memory_.data(), memory_.size(),
                             cudaMemcpyDeviceToHost, stream_.get()),
             "copy from the device");
}

bool CudaFlag::take_fetched() {
  int raised = 0;
  std::memcpy(&raised, fetched_.data(), sizeof(raised));
  if (raised != 0) lower();
  return raised != 0;
}

void CudaFlag::complain_if(bool raised) {
  was_raised_ = raised;
  if (raised) throw_internal("a value is not finite, or does not fit into the KV cache");
}

void CudaFlag::set_placing(bool on) {
  placing_ = on;
  was_raised_ = false;
}

}  // namespace detrun
