// The emulated runtime. An error of a launch stays until somebody asks, as on a device.
#include <cstdlib>
#include <cstring>
#include <string>

#include "cuda_runtime_api.h"

namespace {

struct Runtime {
  cudaError_t last = cudaSuccess;
  std::string complaint;
  bool descending = false;
};
Runtime& runtime() {
  static Runtime instance;
  return instance;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = std::getenv("DETRUN_SMOKE_NO_DEVICE") == nullptr ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"host emulation", 9, 0, 1, 0};
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaMalloc(void** memory, std::size_t size) {
  *memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  return *memory != nullptr ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, std::size_t size) {
  std::memset(memory, value, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind) {
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return runtime().last; }
cudaError_t cudaGetLastError() {
  const cudaError_t last = runtime().last;
  runtime().last = cudaSuccess;
  return last;
}
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorLaunchFailure) return runtime().complaint.c_str();
  return error == cudaSuccess ? "no error" : "invalid argument";
}

namespace detrun::emulation {

void launch_emulated(dim3 grid, dim3 block, const std::function<void()>& body) {
  Runtime& r = runtime();
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    r.last = cudaErrorInvalidValue;
    return;
  }
  r.descending = !r.descending;
  const LaneOrder order = r.descending ? LaneOrder::kDescending : LaneOrder::kAscending;
  const Problem problem =
      launch({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, order, body);
  if (!problem.empty()) {
    r.last = cudaErrorLaunchFailure;
    r.complaint = problem;
  }
}

}  // namespace detrun::emulation
