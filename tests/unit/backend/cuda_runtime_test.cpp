// The emulated runtime: that it is stricter than a device where a device would hide a mistake.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backend/cuda/cuda_handles.h"
#include "detrun/error.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/launch_rows.h"

using namespace detrun;

namespace {

constexpr std::size_t kBytes = 1024;

// Raises what the emulation reports: half of a warp reaches a collective.
void diverging_kernel() {
  if (device::thread_x() < 16) device::shuffle_xor(1, 1);
}

}  // namespace

TEST_CASE("work on a stream runs when somebody waits, not before") {
  const CudaStream stream;
  const DeviceMemory memory(kBytes, "memory");
  PinnedMemory pinned(kBytes);
  std::memset(pinned.data(), 1, kBytes);
  check_cuda(
      cudaMemcpyAsync(memory.data(), pinned.data(), kBytes, cudaMemcpyHostToDevice, stream.get()),
      "copy");
  std::memset(pinned.data(), 2, kBytes);  // too early: the copy takes these bytes
  stream.synchronize();
  std::vector<unsigned char> out(kBytes);
  check_cuda(cudaMemcpy(out.data(), memory.data(), kBytes, cudaMemcpyDeviceToHost), "copy");
  CHECK(out == std::vector<unsigned char>(kBytes, 2));
}

TEST_CASE("an event waits for what was queued before it and for nothing later") {
  const CudaStream stream;
  CudaEvent event;
  event.synchronize();  // never recorded: nothing to wait for
  const DeviceMemory memory(kBytes, "memory");
  check_cuda(cudaMemsetAsync(memory.data(), 3, kBytes, stream.get()), "memset");
  event.record(stream);
  check_cuda(cudaMemsetAsync(memory.data(), 4, kBytes, stream.get()), "memset");
  event.synchronize();
  unsigned char byte = 0;
  check_cuda(cudaMemcpy(&byte, memory.data(), 1, cudaMemcpyDeviceToHost), "copy");
  CHECK(byte == 3);
  stream.synchronize();
  check_cuda(cudaMemcpy(&byte, memory.data(), 1, cudaMemcpyDeviceToHost), "copy");
  CHECK(byte == 4);
}

TEST_CASE("a wait counts when there is something to wait for") {
  const CudaStream stream;
  CudaEvent event;
  const DeviceMemory memory(kBytes, "memory");
  const std::uint64_t before = emulation::waits();
  stream.synchronize();
  event.synchronize();
  CHECK(emulation::waits() == before);
  for (int i = 0; i < 2; ++i) {
    check_cuda(cudaMemsetAsync(memory.data(), 3, kBytes, stream.get()), "memset");
    event.record(stream);
  }
  event.synchronize();
  CHECK(emulation::waits() == before + 1);
  stream.synchronize();  // the event had waited for all
  CHECK(emulation::waits() == before + 1);
  check_cuda(cudaMemsetAsync(memory.data(), 3, kBytes, stream.get()), "memset");
  stream.synchronize();
  CHECK(emulation::waits() == before + 2);
}

TEST_CASE("copies beyond an allocation or of memory that is not pinned are refused") {
  const CudaStream stream;
  const DeviceMemory memory(kBytes, "memory");
  PinnedMemory pinned(2 * kBytes);
  std::vector<std::byte> ordinary(kBytes);
  const auto upload = [&](std::byte* to, const std::byte* from, std::size_t n) {
    return cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, stream.get());
  };
  CHECK(upload(memory.data(), pinned.data(), kBytes) == cudaSuccess);
  CHECK(upload(memory.data() + 1, pinned.data(), kBytes) == cudaErrorInvalidValue);
  CHECK(upload(memory.data(), pinned.data() + 1, 2 * kBytes) == cudaErrorInvalidValue);
  CHECK(upload(memory.data(), ordinary.data(), kBytes) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(memory.data(), 0, kBytes + 1, stream.get()) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("fresh memory is no zeros, and the last byte of a device can be allocated but once") {
  const auto device = emulation::EmulatedDevice{.memory_bytes = 4096};
  emulation::set_devices({device});
  {
    const DeviceMemory memory(4096, "memory");
    unsigned char byte = 0;
    check_cuda(cudaMemcpy(&byte, memory.data(), 1, cudaMemcpyDeviceToHost), "copy");
    CHECK(byte == 0xCD);
    try {
      const DeviceMemory more(1, "one byte more");
      FAIL("allocated");
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kInternal);
      CHECK(std::string(error.what()) ==
            "out of memory on the device: one byte more needs 1 bytes, "
            "0 of 4096 are free");
    }
  }
  emulation::set_devices({{}});
}

TEST_CASE("a kernel that fails is reported by the wait and by every later one") {
  cudaStream_t raw = nullptr;
  {
    const CudaStream stream;
    raw = stream.get();
    emulation::launch_emulated(dim3(1), dim3(32), raw, diverging_kernel);
    CHECK(cudaGetLastError() == cudaSuccess);
    for (int i = 0; i < 2; ++i) {
      try {
        stream.synchronize();
        FAIL("nothing was reported");
      } catch (const Error& error) {
        CHECK(error.kind() == ExitCode::kInternal);
        CHECK(std::string(error.what())
                  .find("the GPU failed: cudaStreamSynchronize: a warp collective") == 0);
      }
    }
  }
  CHECK(!emulation::take_complaint().empty());
}

TEST_CASE("a launch without blocks is an error at once") {
  const CudaStream stream;
  emulation::launch_emulated(dim3(0), dim3(32), stream.get(), diverging_kernel);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  stream.synchronize();
}
