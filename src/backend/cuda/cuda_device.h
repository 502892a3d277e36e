// Which GPU computes: the devices that are there, what they must be able to, the one that is meant.
#pragma once

#include <string>
#include <string_view>

#include "detrun/backend.h"

namespace detrun {

/// The device that `wanted` names (an index, a UUID, or empty for device 0). Errors: see
/// make_cuda_backend.
DeviceInfo find_cuda_device(std::string_view backend_name, std::string_view wanted);

/// Memory of the calling thread's current device, total and free.
BackendMemory cuda_memory(const DeviceInfo& device);

/// "NVIDIA H200, sm_90, 143771 MiB".
std::string describe_device(const DeviceInfo& device);

/// "sm_90".
std::string cuda_isa(const DeviceInfo& device);

}  // namespace detrun
