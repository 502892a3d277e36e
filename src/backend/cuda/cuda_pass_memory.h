// The graphs of one context's passes. A pass runs the ordinary way the first time, which loads its
// kernels and sizes its scratch memory; the second time it is captured; from then on it is one
// launch. What runs once is not worth a graph.
#pragma once

#include <compare>
#include <functional>
#include <map>

#include "backend/cuda/cuda_graph.h"
#include "backend/cuda/cuda_scratch.h"
#include "detrun/backend.h"

namespace detrun {

/// What decides the launches of a pass of one row; values and positions are in device memory.
struct CudaPassKey {
  std::uint32_t grid_blocks;  ///< of attention
  bool logits;
  auto operator<=>(const CudaPassKey&) const = default;
};

class CudaPassMemory final : public PassMemory {
 public:
  /// Both outlive the object.
  CudaPassMemory(const CudaStream& stream, const ScratchMoves& moves)
      : stream_(stream), moves_(moves) {}
  /// Queues what `operators` queues. It queues the same for the same key as long as scratch memory
  /// does not move, and waits for nothing.
  void run(const CudaPassKey& key, const std::function<void()>& operators);

 private:
  struct Pass {
    CudaGraph graph;
    std::uint64_t moves;  ///< of scratch memory, after the pass last ran the ordinary way
  };
  const CudaStream& stream_;
  const ScratchMoves& moves_;
  std::map<CudaPassKey, Pass> passes_;
};

}  // namespace detrun
