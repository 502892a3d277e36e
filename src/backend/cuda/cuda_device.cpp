// See cuda_device.h. Everything is asked of the runtime; nothing is cached, for devices come and go
// between commands.
#include "backend/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "backend/cuda/cuda_handles.h"
#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun {
namespace {

// Integer products of 8 bits in tensor cores, and what the kernels are compiled for.
constexpr std::uint32_t kLeastMajor = 7;
constexpr std::uint32_t kLeastMinor = 5;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// As nvidia-smi prints it.
std::string uuid_text(const cudaDeviceProp& device) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(device.uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(device.uuid.bytes[i]);
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

struct Versions {
  int driver = 0, runtime = 0;
};
Versions versions() {
  Versions found;
  check_cuda(cudaDriverGetVersion(&found.driver), "cudaDriverGetVersion");
  check_cuda(cudaRuntimeGetVersion(&found.runtime), "cudaRuntimeGetVersion");
  return found;
}

[[noreturn]] void refuse(std::string_view backend_name, const std::string& why,
                         const std::string& hint = "use --backend cpu") {
  throw_usage("backend " + std::string(backend_name) + ": " + why, hint);
}

std::vector<DeviceInfo> list_devices(std::string_view backend_name) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    static_cast<void>(cudaGetLastError());
    const Versions found = versions();
    refuse(backend_name, found.driver == 0
                             ? std::string("there is no NVIDIA driver")
                             : "the NVIDIA driver is for CUDA " + version_text(found.driver) +
                                   ", " + version_text(found.runtime) + " is needed");
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    static_cast<void>(cudaGetLastError());
    refuse(backend_name, "there is no NVIDIA GPU (or CUDA_VISIBLE_DEVICES hides it)");
  }
  check_cuda(status, "cudaGetDeviceCount");
  const Versions found = versions();
  std::vector<DeviceInfo> devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp device{};
    check_cuda(cudaGetDeviceProperties(&device, i), "cudaGetDeviceProperties");
    devices.push_back(
        {static_cast<std::uint32_t>(i), static_cast<const char*>(device.name), uuid_text(device),
         static_cast<std::uint32_t>(device.major), static_cast<std::uint32_t>(device.minor),
         device.totalGlobalMem, static_cast<std::uint32_t>(device.multiProcessorCount),
         device.ECCEnabled != 0, version_text(found.driver), version_text(found.runtime)});
  }
  return devices;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

DeviceInfo pick(std::string_view backend_name, const std::vector<DeviceInfo>& devices,
                std::string_view wanted) {
  if (wanted.empty()) return devices.front();
  std::string known;
  for (const DeviceInfo& device : devices) {
    if (parse_u64(wanted) == device.index || lower(wanted) == lower(device.uuid)) return device;
    known += (known.empty() ? "" : "; ") + std::to_string(device.index) + " " + device.uuid + " (" +
             device.name + ")";
  }
  refuse(backend_name, "there is no device '" + std::string(wanted) + "'", "there are: " + known);
}

}  // namespace

std::string cuda_isa(const DeviceInfo& device) {
  return "sm_" + std::to_string(device.major) + std::to_string(device.minor);
}

std::string describe_device(const DeviceInfo& device) {
  return device.name + ", " + cuda_isa(device) + ", " + std::to_string(device.memory_bytes >> 20U) +
         " MiB";
}

DeviceInfo find_cuda_device(std::string_view backend_name, std::string_view wanted) {
  DeviceInfo device = pick(backend_name, list_devices(backend_name), wanted);
  const std::string what = "device " + std::to_string(device.index) + " (" + device.name + ")";
  if (std::pair(device.major, device.minor) < std::pair(kLeastMajor, kLeastMinor)) {
    refuse(backend_name, what + " has compute capability " + std::to_string(device.major) + "." +
                             std::to_string(device.minor) + ", " + std::to_string(kLeastMajor) +
                             "." + std::to_string(kLeastMinor) + " is needed");
  }
  // The runtime has no other word for it: an instance is a device with this in its name.
  if (device.name.find(" MIG ") != std::string::npos) {
    refuse(backend_name, what + " is a part of a divided GPU (MIG) of " +
                             std::to_string(device.memory_bytes >> 20U) + " MiB and " +
                             std::to_string(device.n_multiprocessors) +
                             " multiprocessors, which is not supported");
  }
  return device;
}

BackendMemory cuda_memory(const DeviceInfo& device) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  return {" on device " + std::to_string(device.index) + " (" + device.name + ")", total_bytes,
          free_bytes};
}

// ---- of the front door --------------------------------------------------------------------------

std::string cuda_backend_name() { return DETRUN_CUDA_BACKEND_NAME; }

CudaSupport cuda_support() {
  try {
    return {true, describe_device(find_cuda_device(DETRUN_CUDA_BACKEND_NAME, {}))};
  } catch (const Error& error) {
    std::string_view why = error.what();
    const std::string prefix = "backend " DETRUN_CUDA_BACKEND_NAME ": ";
    if (why.starts_with(prefix)) why.remove_prefix(prefix.size());
    return {false, std::string(why)};
  }
}

void require_cuda_device(const CudaOptions& options) {
  find_cuda_device(DETRUN_CUDA_BACKEND_NAME, options.device);
}

}  // namespace detrun
