// See emulated_nvml.h. Its signatures are those of nvml.h, API 12 and 13, written down a second
// time: a mistake of the caller's declarations would show as a wrong value.
#include "kernels/cuda/emulated_runtime/emulated_nvml.h"

using detrun::emulation::NvmlBehaviour;

extern "C" {

typedef unsigned nvmlReturn_t;
struct nvmlDevice_st;
typedef nvmlDevice_st* nvmlDevice_t;
struct nvmlPciInfo_t {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

NvmlBehaviour* detrun_emulated_nvml();
nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlShutdown();
const char* nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length);
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version, unsigned length);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending);
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned* current, unsigned* pending);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned* mode);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned* mode);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type, unsigned counter,
                                         unsigned long long* count);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned cause, unsigned* pages,
                                       unsigned long long* addresses);
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned* pending);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* corrected,
                                       unsigned* uncorrected, unsigned* pending, unsigned* failed);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned clock, unsigned* mhz);
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned clock, unsigned* mhz);

}  // extern "C"

namespace {

constexpr nvmlReturn_t kSuccess = 0;
constexpr nvmlReturn_t kUninitialized = 1;
constexpr nvmlReturn_t kNotFound = 6;
constexpr nvmlReturn_t kInsufficientSize = 7;

NvmlBehaviour behaviour = {kSuccess, kSuccess, kSuccess, "580.95.05", 0, 0, 1000, 0, 0, 0, 0};
// Device i + 1 of the emulated runtime has the handle of byte i; nobody looks into it.
char handles[9];

nvmlReturn_t give_text(const char* text, char* buffer, unsigned length) {
  for (unsigned i = 0; i < length; ++i) {
    buffer[i] = behaviour.fill != 0 ? behaviour.fill : *text;
    if (behaviour.fill == 0 && *text++ == 0) return kSuccess;
  }
  return behaviour.fill != 0 ? kSuccess : kInsufficientSize;
}

nvmlReturn_t about_system() {
  ++behaviour.calls;
  return behaviour.started > 0 ? kSuccess : kUninitialized;
}

// The number of the device with this UUID, which the emulated runtime makes of 16 equal bytes: the
// number. 0 for none.
unsigned number_of(const char* uuid) {
  const char* form = "GPU-0d0d0d0d-0d0d-0d0d-0d0d-0d0d0d0d0d0d";
  char digit = 0;
  for (; *form != 0; ++form, ++uuid) {
    if (*form == 'd' && digit == 0 && *uuid >= '1' && *uuid <= '9') digit = *uuid;
    if (*uuid != (*form == 'd' ? digit : *form)) return 0;
  }
  return *uuid == 0 ? static_cast<unsigned>(digit - '0') : 0;
}

}  // namespace

NvmlBehaviour* detrun_emulated_nvml() { return &behaviour; }

nvmlReturn_t nvmlInit_v2() {
  ++behaviour.calls;
  if (behaviour.init_result == kSuccess) ++behaviour.started;
  return behaviour.init_result;
}

nvmlReturn_t nvmlShutdown() {
  const nvmlReturn_t result = about_system();
  if (result == kSuccess) --behaviour.started;
  return result;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  const nvmlReturn_t result = about_system();
  return result == kSuccess ? give_text(behaviour.driver_version, version, length) : result;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  const nvmlReturn_t result = about_system();
  if (result != kSuccess) return result;
  if (behaviour.handle_result != kSuccess) return behaviour.handle_result;
  const unsigned number = number_of(uuid);
  if (number == 0) return kNotFound;
  *device = reinterpret_cast<nvmlDevice_t>(&handles[number - 1]);
  return kSuccess;
}

// An old library has nothing of what follows.
#if !defined(DETRUN_EMULATED_NVML_OLD)

namespace {

constexpr nvmlReturn_t kInvalidArgument = 2;

// The device's number; 0 for what is no handle of ours.
unsigned number_of(nvmlDevice_t device) {
  for (unsigned i = 0; i < sizeof handles; ++i) {
    if (device == reinterpret_cast<nvmlDevice_t>(&handles[i])) return i + 1;
  }
  return 0;
}

nvmlReturn_t about(nvmlDevice_t device) {
  const nvmlReturn_t result = about_system();
  if (result != kSuccess) return result;
  return number_of(device) == 0 ? kInvalidArgument : behaviour.device_result;
}

// What fails leaves its answer alone.
nvmlReturn_t give(nvmlDevice_t device, unsigned value, unsigned* answer) {
  const nvmlReturn_t result = about(device);
  if (result == kSuccess) *answer = value;
  return result;
}

}  // namespace

const char* nvmlErrorString(nvmlReturn_t result) {
  return result == kNotFound ? "Not Found" : result == 9 ? "Driver Not Loaded" : nullptr;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  const nvmlReturn_t result = about_system();
  return result == kSuccess ? give_text("13.580.95.05", version, length) : result;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  const nvmlReturn_t result = about(device);
  if (result != kSuccess) return result;
  pci->domain = 0;
  pci->bus = number_of(device);
  pci->device = 0;
  pci->pci_device_id = 0x233510de;
  pci->pci_subsystem_id = 0x18be10de;
  char bus_id[] = "00000000:00:00.0";
  bus_id[10] = static_cast<char>('0' + pci->bus);
  give_text(bus_id + 4, pci->bus_id_legacy, sizeof pci->bus_id_legacy);
  return give_text(bus_id, pci->bus_id, sizeof pci->bus_id);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version, unsigned length) {
  const nvmlReturn_t result = about(device);
  return result == kSuccess ? give_text("96.00.00.00.01", version, length) : result;
}

// Pending is what current is not, so that nobody takes one for the other.
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  const nvmlReturn_t result = give(device, behaviour.mode, current);
  return result == kSuccess ? give(device, 1 - behaviour.mode, pending) : result;
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  return nvmlDeviceGetMigMode(device, current, pending);
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned* mode) {
  return give(device, behaviour.mode, mode);
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned* mode) {
  return give(device, behaviour.mode == 0 ? 0 : behaviour.mode + 2, mode);
}

// Uncorrected errors since the start of the driver; one more in all of the device's life.
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type, unsigned counter,
                                         unsigned long long* count) {
  const nvmlReturn_t result = type == 1 && counter <= 1 ? about(device) : kInvalidArgument;
  if (result == kSuccess) *count = behaviour.errors + (behaviour.errors + 1 == 0 ? 0 : counter);
  return result;
}

// Twice as many for one cause as for the other.
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned cause, unsigned* pages,
                                       unsigned long long* addresses) {
  const nvmlReturn_t result = cause <= 1 && addresses != nullptr ? about(device) : kInvalidArgument;
  if (result != kSuccess) return result;
  const unsigned room = *pages;
  *pages = behaviour.retired_pages * (cause + 1);
  for (unsigned i = 0; i < room && i < *pages; ++i) addresses[i] = i * 4096ULL;
  return *pages > room ? kInsufficientSize : kSuccess;
}
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned* pending) {
  return give(device, behaviour.retired_pages == 0 ? 0 : 1, pending);
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* corrected,
                                       unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  const nvmlReturn_t result = give(device, 5, corrected);
  if (result != kSuccess) return result;
  *uncorrected = 2;
  *pending = 1;
  *failed = 0;
  return kSuccess;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return give(device, behaviour.number, milliwatts);
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned clock, unsigned* mhz) {
  return give(device, behaviour.number + (behaviour.number + 1 == 0 ? 0 : clock), mhz);
}
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned clock, unsigned* mhz) {
  return give(device, behaviour.number / 10 + clock, mhz);
}

#endif
