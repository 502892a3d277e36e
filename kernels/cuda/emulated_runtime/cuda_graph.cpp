// Capture of streams and graphs: what is queued while a stream is captured is kept instead of done,
// and queued again, with the arguments of then, whenever its graph is launched. Captures are those
// of one thread, as cudaStreamCaptureModeThreadLocal has them.
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "kernels/cuda/emulated_runtime/emulated_stream.h"

namespace {

using detrun::emulation::note;

thread_local cudaStream_t captured_here = nullptr;
std::atomic<std::uint64_t> instantiated = 0;
std::atomic<std::uint64_t> launched = 0;

}  // namespace

namespace detrun::emulation {

bool is_refused_in_capture() {
  if (captured_here == nullptr) return false;
  captured_here->spoil_capture();
  note(cudaErrorStreamCaptureUnsupported);
  return true;
}

std::uint64_t graphs_instantiated() { return instantiated; }
std::uint64_t graphs_launched() { return launched; }

}  // namespace detrun::emulation

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr) return note(cudaErrorStreamCaptureUnsupported);
  const std::lock_guard lock(stream->mutex);
  if (stream->captured || captured_here != nullptr) return note(cudaErrorIllegalState);
  stream->captured = std::make_unique<CUgraph_st>();
  stream->capturer = std::this_thread::get_id();
  stream->spoiled = false;
  captured_here = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (stream == nullptr) return note(cudaErrorIllegalState);
  const std::lock_guard lock(stream->mutex);
  if (!stream->captured) return note(cudaErrorIllegalState);
  if (stream->capturer != std::this_thread::get_id()) {
    stream->spoiled = true;
    return note(cudaErrorStreamCaptureWrongThread);
  }
  captured_here = nullptr;
  std::unique_ptr<CUgraph_st> captured = std::move(stream->captured);
  if (stream->spoiled) return note(cudaErrorStreamCaptureInvalidated);
  *graph = captured.release();  // a handle of C: who called this owns it
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long) {
  if (detrun::emulation::is_refused_in_capture()) return cudaErrorStreamCaptureUnsupported;
  if (graph == nullptr) return note(cudaErrorInvalidValue);
  auto copy = std::make_unique<CUgraphExec_st>();
  copy->nodes = graph->nodes;
  *exec = copy.release();
  ++instantiated;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (exec == nullptr || stream == nullptr) return note(cudaErrorInvalidValue);
  if (stream->spoil_capture()) return note(cudaErrorStreamCaptureUnsupported);
  ++launched;
  cudaError_t status = cudaSuccess;
  for (const EmulatedWork& node : exec->nodes) status = stream->add(node);
  return note(status);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  std::unique_ptr<CUgraph_st>(graph).reset();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  std::unique_ptr<CUgraphExec_st>(exec).reset();
  return cudaSuccess;
}
