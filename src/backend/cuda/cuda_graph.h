// Work on a stream kept to be queued again in one call, and its owner. Which work that is, and
// whether it still fits, is for the caller to know.
#pragma once

#include "backend/cuda/cuda_handles.h"

namespace detrun {

/// Launches and copies with the arguments that they had, ready to be queued.
class CudaGraph {
 public:
  CudaGraph() = default;
  ~CudaGraph();
  CudaGraph(CudaGraph&& other) noexcept;
  CudaGraph& operator=(CudaGraph&& other) noexcept;

  bool empty() const { return exec_ == nullptr; }
  void launch(const CudaStream& stream) const;

 private:
  friend class CudaCapture;
  cudaGraphExec_t exec_ = nullptr;
};

/// While it lives, what this thread queues on the stream is kept and not done. Until finish() or
/// the end nothing may wait for the stream, and this thread allocates no memory of the device.
class CudaCapture {
 public:
  /// The stream outlives the object.
  explicit CudaCapture(const CudaStream& stream);
  ~CudaCapture();  ///< drops what was kept
  CudaCapture(const CudaCapture&) = delete;
  CudaCapture& operator=(const CudaCapture&) = delete;
  /// Errors: kInternal, also when something was asked for that a capture does not allow.
  CudaGraph finish();

 private:
  const CudaStream& stream_;
  bool open_ = true;
};

}  // namespace detrun
