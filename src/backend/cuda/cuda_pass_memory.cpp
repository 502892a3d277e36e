// See cuda_pass_memory.h.
#include "backend/cuda/cuda_pass_memory.h"

namespace detrun {

void CudaPassMemory::run(const CudaPassKey& key, const std::function<void()>& operators) {
  const auto found = passes_.find(key);
  if (found == passes_.end() || found->second.moves != moves_.count) {
    passes_.erase(key);  // its launches point to memory that is gone
    operators();
    passes_.emplace(key, Pass{CudaGraph(), moves_.count});
    return;
  }
  CudaGraph& graph = found->second.graph;
  if (graph.empty()) {
    CudaCapture capture(stream_);
    operators();
    graph = capture.finish();
  }
  graph.launch(stream_);
}

}  // namespace detrun
