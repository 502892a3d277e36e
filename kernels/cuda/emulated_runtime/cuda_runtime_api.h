// The part of the CUDA runtime's interface that launchers, backend and smoke test use, on the host
// emulation of kernels/cuda/emulation.h. Found instead of NVIDIA's header in tests. Memory of the
// device is ordinary memory. The null stream runs at once; any other stream runs only what somebody
// waits for, at the last moment allowed, so that a missing wait is seen. Every launch reverses the
// order of lanes of the one before it. What a device would let pass is refused: copies beyond an
// allocation, asynchronous copies of memory that is not pinned. While a thread captures a stream,
// all that NVIDIA calls unsafe then is refused to it, and spoils the capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/emulation.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorIllegalState = 401,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3
};
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDisableTiming = 2;
constexpr unsigned cudaHostAllocDefault = 0;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}  // NOLINT
};

struct cudaUUID_t {
  char bytes[16];
};

struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem;
  int major, minor, multiProcessorCount, ECCEnabled;
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);
cudaError_t cudaMalloc(void** memory, std::size_t size);
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, std::size_t size, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemset(void* memory, int value, std::size_t size);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t size, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);

namespace detrun::emulation {

/// A GPU that the runtime claims to have; all of them compute on this CPU.
struct EmulatedDevice {
  std::string name = "host emulation";
  int major = 9, minor = 0;
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;  ///< allocations beyond it fail
  std::uint64_t others_bytes = 0;                       ///< of it, in use by other processes
  bool operator==(const EmulatedDevice&) const = default;
};
/// Replaces the devices; one EmulatedDevice in the beginning, whose memory
/// $DETRUN_EMULATED_MEMORY (bytes) sets, and none with $DETRUN_SMOKE_NO_DEVICE. The UUID of device
/// i is 16 bytes of i + 1. For tests, while nothing is allocated.
void set_devices(const std::vector<EmulatedDevice>& devices);
/// Why kernels failed, one sentence; empty when none did since the last call.
std::string take_complaint();
/// Bytes allocated on all devices.
std::uint64_t allocated_bytes();
/// Launches executed so far, by all streams.
std::uint64_t launches_executed();
/// Times that somebody had to wait for a stream or an event, because not all of its work was done.
std::uint64_t waits();
/// Graphs made ready to be launched, and launches of graphs, so far.
std::uint64_t graphs_instantiated();
std::uint64_t graphs_launched();

/// Runs a kernel's body on a grid, now or when the stream is waited for, and notes what the
/// emulation complains about.
void launch_emulated(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> body);

/// What `kernel<<<grid, block, shared, stream>>>(arguments)` is rewritten to:
/// EmulatedLaunch(grid, block, shared, stream).of(kernel)(arguments).
class EmulatedLaunch {
 public:
  EmulatedLaunch(dim3 grid, dim3 block, std::size_t = 0, cudaStream_t stream = nullptr)
      : grid_(grid), block_(block), stream_(stream) {}
  template <class... Parameters>
  auto of(void (*kernel)(Parameters...)) const {
    return [*this, kernel](Parameters... arguments) {
      launch_emulated(grid_, block_, stream_, [=] { kernel(arguments...); });
    };
  }

 private:
  dim3 grid_, block_;
  cudaStream_t stream_;
};

}  // namespace detrun::emulation
