// CUDA in a program that was built without a toolkit: none, and it says so.
#include "detrun/backend.h"
#include "detrun/error.h"

namespace detrun {

std::string cuda_backend_name() { return {}; }

CudaSupport cuda_support() { return {false, "built without CUDA"}; }

void require_cuda_device(const CudaOptions& /*options*/) {
  throw_usage("backend cuda: this program was built without CUDA", "use --backend cpu");
}

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  require_cuda_device(options);
  return nullptr;
}

}  // namespace detrun
