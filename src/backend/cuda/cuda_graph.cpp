// See cuda_graph.h. Captures are of one thread: others may allocate meanwhile, for backends of
// their own.
#include "backend/cuda/cuda_graph.h"

#include <utility>

namespace detrun {

CudaGraph::~CudaGraph() {
  if (exec_ != nullptr) static_cast<void>(cudaGraphExecDestroy(exec_));
}

CudaGraph::CudaGraph(CudaGraph&& other) noexcept : exec_(std::exchange(other.exec_, nullptr)) {}

CudaGraph& CudaGraph::operator=(CudaGraph&& other) noexcept {
  std::swap(exec_, other.exec_);
  return *this;
}

void CudaGraph::launch(const CudaStream& stream) const {
  check_cuda(cudaGraphLaunch(exec_, stream.get()), "cudaGraphLaunch");
}

CudaCapture::CudaCapture(const CudaStream& stream) : stream_(stream) {
  check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
}

CudaCapture::~CudaCapture() {
  if (!open_) return;
  cudaGraph_t kept = nullptr;
  static_cast<void>(cudaStreamEndCapture(stream_.get(), &kept));
  if (kept != nullptr) static_cast<void>(cudaGraphDestroy(kept));
  static_cast<void>(cudaGetLastError());  // whoever unwinds has reported the first error
}

CudaGraph CudaCapture::finish() {
  open_ = false;
  cudaGraph_t kept = nullptr;
  check_cuda(cudaStreamEndCapture(stream_.get(), &kept), "cudaStreamEndCapture");
  CudaGraph graph;
  const cudaError_t status = cudaGraphInstantiateWithFlags(&graph.exec_, kept, 0);
  static_cast<void>(cudaGraphDestroy(kept));
  check_cuda(status, "cudaGraphInstantiate");
  return graph;
}

}  // namespace detrun
