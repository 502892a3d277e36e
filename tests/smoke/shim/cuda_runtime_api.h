// The part of the CUDA runtime's interface that launchers and smoke test use, on the host emulation
// of kernels/cuda/emulation.h: device memory is ordinary memory, a launch runs to its end. Found
// instead of NVIDIA's header when the smoke test is rehearsed. Every launch reverses the order of
// lanes of the one before it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/emulation.h"

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorLaunchFailure = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
using cudaStream_t = void*;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}  // NOLINT
};

struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount;
  std::size_t totalGlobalMem;
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaMalloc(void** memory, std::size_t size);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemset(void* memory, int value, std::size_t size);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);

namespace detrun::emulation {

/// Runs a kernel's body on a grid and notes what the emulation complains about.
void launch_emulated(dim3 grid, dim3 block, const std::function<void()>& body);

/// What `kernel<<<grid, block, shared, stream>>>(arguments)` is rewritten to:
/// EmulatedLaunch(grid, block, shared, stream).of(kernel)(arguments).
class EmulatedLaunch {
 public:
  EmulatedLaunch(dim3 grid, dim3 block, std::size_t = 0, cudaStream_t = nullptr)
      : grid_(grid), block_(block) {}
  template <class... Parameters>
  auto of(void (*kernel)(Parameters...)) const {
    return [grid = grid_, block = block_, kernel](Parameters... arguments) {
      launch_emulated(grid, block, [&] { kernel(arguments...); });
    };
  }

 private:
  dim3 grid_, block_;
};

}  // namespace detrun::emulation
