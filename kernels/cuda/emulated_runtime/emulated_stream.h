// Streams, events and graphs of the emulated runtime: lists of work not yet done. Not their
// interface, which is cuda_runtime_api.h; for its sources alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using EmulatedWork = std::function<cudaError_t()>;

struct CUgraph_st {
  std::vector<EmulatedWork> nodes;
};
struct CUgraphExec_st {
  std::vector<EmulatedWork> nodes;
};

struct CUstream_st {
  std::mutex mutex;
  std::deque<EmulatedWork> work;
  std::uint64_t n_queued = 0, n_done = 0;
  cudaError_t failed = cudaSuccess;
  // Between the beginning and the end of a capture: by whom, and whether something was asked for
  // that a capture does not allow, which makes it worthless.
  std::unique_ptr<CUgraph_st> captured;
  std::thread::id capturer;
  bool spoiled = false;

  cudaError_t add(EmulatedWork item) {
    const std::lock_guard lock(mutex);
    if (captured) {
      captured->nodes.push_back(std::move(item));
      return cudaSuccess;
    }
    work.push_back(std::move(item));
    ++n_queued;
    return failed;
  }
  /// Whether work is being captured, of which the caller asks what is not allowed then.
  bool spoil_capture() {
    const std::lock_guard lock(mutex);
    if (captured) spoiled = true;
    return captured != nullptr;
  }
  bool is_done(std::uint64_t count) {
    const std::lock_guard lock(mutex);
    return n_done >= count;
  }
  /// Until `count` pieces of work are done.
  cudaError_t run(std::uint64_t count) {
    const std::lock_guard lock(mutex);
    while (n_done < count) {
      if (failed == cudaSuccess) failed = work.front()();
      work.pop_front();
      ++n_done;
    }
    return failed;
  }
  std::uint64_t all_queued() {
    const std::lock_guard lock(mutex);
    return n_queued;
  }
  cudaError_t run_all() { return run(all_queued()); }
};

struct CUevent_st {
  cudaStream_t stream = nullptr;
  std::uint64_t count = 0;  // pieces of its work that came before
  bool captured = false;    // recorded in a capture: nobody can wait for it
};

namespace detrun::emulation {

/// The status, which the thread's cudaGetLastError() repeats if it is an error.
cudaError_t note(cudaError_t status);
/// Whether the calling thread captures a stream: then the capture is spoiled, and the caller
/// returns cudaErrorStreamCaptureUnsupported.
bool is_refused_in_capture();

}  // namespace detrun::emulation
