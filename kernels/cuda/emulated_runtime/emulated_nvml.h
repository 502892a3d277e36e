// A library with the names of NVIDIA's management library, about the devices of the emulated
// runtime: what the emulated program opens, and what tests bend to be old, broken or hostile.
// Results are NVML's numbers. Plain data, because it crosses the border of a shared library.
#pragma once

namespace detrun::emulation {

/// How the library behaves; a loaded copy has one, which outlives nothing.
struct NvmlBehaviour {
  unsigned init_result, handle_result;
  unsigned device_result;      ///< of every question about a device
  const char* driver_version;  ///< what the emulated driver is called
  char fill;                   ///< not 0: texts are this byte to the end of the buffer, with no end
  unsigned mode;               ///< of every mode: 0 off, 1 on
  unsigned number;             ///< of every limit and clock
  unsigned long long errors;
  unsigned retired_pages;
  int started;     ///< nvmlInit_v2 less nvmlShutdown
  unsigned calls;  ///< of everything
};

/// Type of the one function that NVML does not have: `detrun_emulated_nvml`.
using NvmlBehaviourOf = NvmlBehaviour*();

}  // namespace detrun::emulation
