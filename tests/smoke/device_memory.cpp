// Allocation, copies, guard zones. A guard is 256 bytes of one pattern on either side.
#include "device_memory.h"

#include <algorithm>
#include <cstdio>

namespace detrun::smoke {

namespace {

constexpr int kGuardByte = 0xA5;
constexpr int kFreshByte = 0xCD;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw DeviceFailure(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

DeviceMemory::DeviceMemory(std::size_t size) : size_(size) {
  void* base = nullptr;
  require(cudaMalloc(&base, size_ + 2 * kGuard), "cudaMalloc");
  base_ = static_cast<std::byte*>(base);
  require(cudaMemset(base_, kGuardByte, size_ + 2 * kGuard), "cudaMemset");
  require(cudaMemset(base_ + kGuard, kFreshByte, size_), "cudaMemset");
}

DeviceMemory::DeviceMemory(const void* from, std::size_t size) : DeviceMemory(size) {
  write_from(from, size);
}

void DeviceMemory::write_from(const void* from, std::size_t size) {
  if (size > size_) throw DeviceFailure("a copy larger than its memory");
  if (size == 0) return;
  require(cudaMemcpy(base_ + kGuard, from, size, cudaMemcpyHostToDevice), "copy to the device");
}

DeviceMemory::~DeviceMemory() { cudaFree(base_); }

void DeviceMemory::check_guards() {
  require(cudaDeviceSynchronize(), "the kernel");
  std::byte guards[2][kGuard];
  require(cudaMemcpy(guards[0], base_, kGuard, cudaMemcpyDeviceToHost), "copy from the device");
  require(cudaMemcpy(guards[1], base_ + kGuard + size_, kGuard, cudaMemcpyDeviceToHost),
          "copy from the device");
  for (const auto& guard : guards) {
    const auto touched = [](std::byte b) { return b != std::byte{kGuardByte}; };
    if (std::any_of(std::begin(guard), std::end(guard), touched)) {
      throw DeviceFailure("a kernel wrote outside of its output");
    }
  }
}

void DeviceMemory::read_into(void* to) {
  check_guards();
  if (size_ == 0) return;
  require(cudaMemcpy(to, base_ + kGuard, size_, cudaMemcpyDeviceToHost), "copy from the device");
}

bool find_device(DeviceDescription* found, std::string* why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  int driver = 0;
  int runtime = 0;
  if (status != cudaSuccess || count == 0) {
    *why = status != cudaSuccess ? cudaGetErrorString(status) : "no device";
    // The runtime's words for a driver that is too old; none at all is older than any.
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) *why = "no NVIDIA driver";
    return false;
  }
  cudaDeviceProp device{};
  require(cudaSetDevice(0), "cudaSetDevice");
  require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  require(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  require(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  found->name = device.name;
  found->details = "compute capability " + std::to_string(device.major) + "." +
                   std::to_string(device.minor) + ", " +
                   std::to_string(device.multiProcessorCount) + " multiprocessors, " +
                   std::to_string(device.totalGlobalMem >> 20) + " MiB, driver for CUDA " +
                   version_text(driver) + ", runtime " + version_text(runtime);
  return true;
}

}  // namespace detrun::smoke
