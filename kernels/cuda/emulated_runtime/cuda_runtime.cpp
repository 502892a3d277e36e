// The emulated runtime: devices, allocations, and streams as lists of work not yet done. An error
// of a launch on the null stream stays with the thread until somebody asks; one of another stream
// stays with that stream, whose work then ends, as after a failed kernel on a device.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_runtime/cublas_lt_api.h"
#include "kernels/cuda/emulated_runtime/emulated_stream.h"

namespace {
thread_local cudaError_t last_error = cudaSuccess;
}

namespace detrun::emulation {

cudaError_t note(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

}  // namespace detrun::emulation

namespace {

using detrun::emulation::EmulatedDevice;
using detrun::emulation::is_refused_in_capture;
using detrun::emulation::note;

constexpr std::size_t kAlignment = 256;
constexpr int kFreshByte = 0xCD;  // what nobody wrote is recognisable
thread_local int current_device = 0;

struct Allocation {
  std::size_t size = 0;
  int device = -1;  // -1: pinned memory of the host
};

struct Runtime {
  std::mutex mutex;  // guards everything but what a stream guards itself
  std::vector<EmulatedDevice> devices = first_devices();
  std::map<const std::byte*, Allocation> allocations;
  std::map<cudaStream_t, std::shared_ptr<CUstream_st>> streams;
  std::string complaint;
  bool descending = false;
  std::atomic<std::uint64_t> launches = 0;
  std::atomic<std::uint64_t> waits = 0;

  static std::vector<EmulatedDevice> first_devices() {
    if (std::getenv("DETRUN_SMOKE_NO_DEVICE") != nullptr) return {};
    EmulatedDevice device;
    const char* memory = std::getenv("DETRUN_EMULATED_MEMORY");
    if (memory != nullptr) device.memory_bytes = std::strtoull(memory, nullptr, 10);
    return {device};
  }
};
Runtime& runtime() {
  static Runtime instance;
  return instance;
}

std::uint64_t bytes_on(const Runtime& r, int device) {
  std::uint64_t bytes = 0;
  for (const auto& [memory, allocation] : r.allocations) {
    if (allocation.device == device) bytes += allocation.size;
  }
  return bytes;
}

// The allocation that holds all of [memory, memory + size), if there is one.
const Allocation* holder(const Runtime& r, const void* memory, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(memory);
  auto next = r.allocations.upper_bound(first);
  if (next == r.allocations.begin()) return nullptr;
  const auto& [start, allocation] = *--next;
  const auto offset = static_cast<std::size_t>(first - start);
  return offset <= allocation.size && size <= allocation.size - offset ? &allocation : nullptr;
}
bool is_on_device(const void* memory, std::size_t size) {
  const std::lock_guard lock(runtime().mutex);
  const Allocation* found = holder(runtime(), memory, size);
  return found != nullptr && found->device >= 0;
}
bool is_pinned(const void* memory, std::size_t size) {
  const std::lock_guard lock(runtime().mutex);
  const Allocation* found = holder(runtime(), memory, size);
  return found != nullptr && found->device < 0;
}

cudaError_t allocate(void** memory, std::size_t size, int device) {
  *memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  if (*memory == nullptr) return note(cudaErrorMemoryAllocation);
  std::memset(*memory, kFreshByte, size);
  const std::lock_guard lock(runtime().mutex);
  runtime().allocations[static_cast<std::byte*>(*memory)] = {size, device};
  return cudaSuccess;
}

cudaError_t set(void* memory, int value, std::size_t size) {
  if (!is_on_device(memory, size)) return note(cudaErrorInvalidValue);
  std::memset(memory, value, size);
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  const bool from_device = kind != cudaMemcpyHostToDevice;
  const bool to_device = kind != cudaMemcpyDeviceToHost;
  if ((from_device && !is_on_device(from, size)) || (to_device && !is_on_device(to, size))) {
    return note(cudaErrorInvalidValue);
  }
  std::memcpy(to, from, size);
  return cudaSuccess;
}

cudaError_t release(void* memory, bool pinned) {
  if (memory == nullptr) return cudaSuccess;
  {
    const std::lock_guard lock(runtime().mutex);
    auto& all = runtime().allocations;
    const auto found = all.find(static_cast<std::byte*>(memory));
    if (found == all.end() || (found->second.device < 0) != pinned) {
      return note(cudaErrorInvalidValue);
    }
    all.erase(found);
  }
  std::free(memory);
  return cudaSuccess;
}

cudaError_t run_kernel(dim3 grid, dim3 block, const std::function<void()>& body) {
  using detrun::emulation::LaneOrder;
  Runtime& r = runtime();
  LaneOrder order{};
  {
    const std::lock_guard lock(r.mutex);
    r.descending = !r.descending;
    order = r.descending ? LaneOrder::kDescending : LaneOrder::kAscending;
  }
  ++r.launches;
  const auto problem =
      detrun::emulation::launch({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, order, body);
  if (problem.empty()) return cudaSuccess;
  const std::lock_guard lock(r.mutex);
  r.complaint = problem;
  return cudaErrorLaunchFailure;
}

}  // namespace

namespace {

cudaError_t run_every_stream() {
  // Another thread may destroy its stream meanwhile.
  std::vector<std::shared_ptr<CUstream_st>> streams;
  {
    const std::lock_guard lock(runtime().mutex);
    for (const auto& [stream, owner] : runtime().streams) streams.push_back(owner);
  }
  cudaError_t status = cudaSuccess;
  for (const auto& stream : streams) {
    const cudaError_t found = stream->run_all();
    if (status == cudaSuccess) status = found;
  }
  return status;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  const std::lock_guard lock(runtime().mutex);
  *count = static_cast<int>(runtime().devices.size());
  return *count > 0 ? cudaSuccess : note(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  const std::lock_guard lock(runtime().mutex);
  if (device < 0 || static_cast<std::size_t>(device) >= runtime().devices.size()) {
    return note(cudaErrorInvalidDevice);
  }
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  constexpr int kMultiprocessors = 4;
  const std::lock_guard lock(runtime().mutex);
  if (device < 0 || static_cast<std::size_t>(device) >= runtime().devices.size()) {
    return note(cudaErrorInvalidDevice);
  }
  const EmulatedDevice& found = runtime().devices[static_cast<std::size_t>(device)];
  *properties = {};
  found.name.copy(properties->name, sizeof(properties->name) - 1);
  std::memset(properties->uuid.bytes, device + 1, sizeof(properties->uuid.bytes));
  properties->totalGlobalMem = found.memory_bytes;
  properties->major = found.major;
  properties->minor = found.minor;
  properties->multiProcessorCount = kMultiprocessors;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const std::lock_guard lock(runtime().mutex);
  const EmulatedDevice& device = runtime().devices[static_cast<std::size_t>(current_device)];
  const std::uint64_t used = device.others_bytes + bytes_on(runtime(), current_device);
  *total_bytes = device.memory_bytes;
  *free_bytes = device.memory_bytes - std::min(used, device.memory_bytes);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t size) {
  if (is_refused_in_capture()) return cudaErrorStreamCaptureUnsupported;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  if (size > free_bytes) return note(cudaErrorMemoryAllocation);
  return allocate(memory, size, current_device);
}
cudaError_t cudaFree(void* memory) {
  if (is_refused_in_capture()) return cudaErrorStreamCaptureUnsupported;
  run_every_stream();
  return release(memory, false);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t size, unsigned) {
  if (is_refused_in_capture()) return cudaErrorStreamCaptureUnsupported;
  return allocate(memory, size, -1);
}
cudaError_t cudaFreeHost(void* memory) {
  if (is_refused_in_capture()) return cudaErrorStreamCaptureUnsupported;
  run_every_stream();
  return release(memory, true);
}

cudaError_t cudaMemset(void* memory, int value, std::size_t size) {
  if (is_refused_in_capture()) return cudaErrorStreamCaptureUnsupported;
  return set(memory, value, size);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  if (is_refused_in_capture()) return cudaErrorStreamCaptureUnsupported;
  return copy(to, from, size, kind);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t size, cudaStream_t stream) {
  if (stream == nullptr) return cudaMemset(memory, value, size);
  if (!is_on_device(memory, size)) return note(cudaErrorInvalidValue);
  return stream->add([=] { return set(memory, value, size); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (stream == nullptr) return cudaMemcpy(to, from, size, kind);
  const bool from_ok =
      kind == cudaMemcpyHostToDevice ? is_pinned(from, size) : is_on_device(from, size);
  const bool to_ok = kind == cudaMemcpyDeviceToHost ? is_pinned(to, size) : is_on_device(to, size);
  if (!from_ok || !to_ok) {
    const bool capturing = stream->spoil_capture();
    return note(capturing ? cudaErrorStreamCaptureUnsupported : cudaErrorInvalidValue);
  }
  return stream->add([=] { return copy(to, from, size, kind); });
}

// Handles are C's: who calls this owns them.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const auto owner = std::make_shared<CUstream_st>();
  *stream = owner.get();
  const std::lock_guard lock(runtime().mutex);
  runtime().streams.emplace(*stream, owner);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  stream->run_all();
  const std::lock_guard lock(runtime().mutex);
  runtime().streams.erase(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return last_error;
  if (stream->spoil_capture()) return note(cudaErrorStreamCaptureUnsupported);
  if (!stream->is_done(stream->all_queued())) ++runtime().waits;
  return stream->run_all();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = std::make_unique<CUevent_st>().release();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::unique_ptr<CUevent_st>(event).reset();
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream == nullptr) return note(cudaErrorInvalidValue);
  const std::lock_guard lock(stream->mutex);
  *event = {stream, stream->n_queued, stream->captured != nullptr};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream == nullptr) return cudaSuccess;
  if (event->captured) {
    event->stream->spoil_capture();
    return note(cudaErrorCapturedEvent);
  }
  if (!event->stream->is_done(event->count)) ++runtime().waits;
  return event->stream->run(event->count);
}

cudaError_t cudaDeviceSynchronize() {
  if (is_refused_in_capture()) return cudaErrorStreamCaptureUnsupported;
  const cudaError_t of_streams = run_every_stream();
  return of_streams != cudaSuccess ? of_streams : last_error;
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorLaunchFailure:
      return runtime().complaint.c_str();
    default:
      return "invalid argument";
  }
}

namespace detrun::emulation {

void set_devices(const std::vector<EmulatedDevice>& devices) {
  const std::lock_guard lock(runtime().mutex);
  runtime().devices = devices;
  current_device = 0;
}

std::string take_complaint() {
  const std::lock_guard lock(runtime().mutex);
  return std::exchange(runtime().complaint, {});
}

std::uint64_t allocated_bytes() {
  const std::lock_guard lock(runtime().mutex);
  std::uint64_t bytes = 0;
  for (const auto& [memory, allocation] : runtime().allocations) {
    if (allocation.device >= 0) bytes += allocation.size;
  }
  return bytes;
}

bool is_device_memory(const void* memory, std::size_t size) { return is_on_device(memory, size); }

std::uint64_t launches_executed() { return runtime().launches; }

std::uint64_t waits() { return runtime().waits; }

void launch_emulated(dim3 grid, dim3 block, cudaStream_t stream, std::function<void()> body) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    note(cudaErrorInvalidValue);
    return;
  }
  if (stream == nullptr) {
    note(run_kernel(grid, block, body));
    return;
  }
  note(stream->add([=, body = std::move(body)] { return run_kernel(grid, block, body); }));
}

}  // namespace detrun::emulation
