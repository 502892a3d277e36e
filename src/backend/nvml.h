// What NVIDIA's management library (NVML, a part of the driver) says of a GPU beyond CUDA. It is
// opened here, asked and closed again: no program needs it to run, and nothing is decided by it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "detrun/backend.h"

namespace detrun {

/// Facts about the GPU with this UUID ("GPU-01234567-89ab-..."), from the first of `libraries` that
/// opens, in an order that is always the same. The first one, "nvml", is the library's version, or
/// one sentence why there is no more; what this driver or this GPU does not answer is left out.
/// Names, as detrun-fingerprint(1) lists them. Takes milliseconds; safe on any thread.
std::vector<DeviceFact> ask_nvml(std::span<const char* const> libraries, const std::string& uuid);

}  // namespace detrun
