// What a GPU does at most of one kind of work, measured on it. No operator uses it.
#pragma once

#include <memory>

#include "detrun/backend.h"

namespace detrun {

/// Of the calling thread's current device, which `device` describes. Error kInternal when its
/// memory does not hold two buffers that its caches cannot.
std::unique_ptr<Ceilings> make_cuda_ceilings(const DeviceInfo& device);

}  // namespace detrun
