// See nvml.h. Declared here, as nvml.h of NVIDIA's driver API 12 and 13 has it, is what is called:
// no toolkit is needed to build. Functions are looked up one by one, because older drivers have
// fewer and newer ones may drop some. Only what stays the same from run to run is asked: equal
// stacks give equal documents, so no temperatures, present clocks or reasons for them.
#include "backend/nvml.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "backend/shared_library.h"

namespace detrun {
namespace {

// The C interface. Enumerations are `unsigned` in it, results too.
using Result = unsigned;
struct Handle;  // nvmlDevice_st, opaque
using Device = Handle*;
using Count = unsigned long long;
constexpr Result kSuccess = 0;
constexpr unsigned kUncorrected = 1;  // nvmlMemoryErrorType_t
constexpr unsigned kVolatile = 0;     // nvmlEccCounterType_t
constexpr unsigned kAggregate = 1;
constexpr unsigned kClockSm = 1;  // nvmlClockType_t
constexpr unsigned kClockMemory = 2;
constexpr unsigned kSingleBits = 0;  // nvmlPageRetirementCause_t
constexpr unsigned kDoubleBit = 1;
constexpr std::size_t kTextSize = 96;    // the largest text of the interface
constexpr std::size_t kErrorSize = 256;  // of a description of ours to take over

struct PciInfo {  // nvmlPciInfo_t, since nvmlDeviceGetPciInfo_v3
  std::array<char, 16> bus_id_legacy;
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> bus_id;
};

/// The text up to its end, or all of the buffer where it has none.
template <std::size_t kSize>
std::string text_in(const std::array<char, kSize>& buffer) {
  return {buffer.data(), strnlen(buffer.data(), buffer.size())};
}

std::string on_or_off(unsigned value) {
  return value == 0 ? "off" : value == 1 ? "on" : std::to_string(value);
}

std::string compute_mode(unsigned value) {
  static constexpr std::array<const char*, 4> kNames = {"default", "exclusive_thread", "prohibited",
                                                        "exclusive_process"};
  return value < kNames.size() ? kNames[value] : std::to_string(value);
}

/// The library between nvmlInit and nvmlShutdown, and the facts found so far.
class Questions {
 public:
  explicit Questions(SharedLibrary library) : library_(std::move(library)) {}
  ~Questions() {
    if (started_) call<Result()>("nvmlShutdown");
  }
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;

  std::vector<DeviceFact> about(const std::string& uuid);

 private:
  /// Whether the function is there and succeeds.
  template <class Function, class... Arguments>
  bool call(const char* symbol, Arguments... arguments) const {
    Function* function = nullptr;
    return library_.find(symbol, function) && function(arguments...) == kSuccess;
  }
  /// The same of a function that must succeed: why it does not, or nothing.
  template <class Function, class... Arguments>
  std::optional<std::string> failure_of(const char* symbol, Arguments... arguments) const {
    Function* function = nullptr;
    if (!library_.find(symbol, function)) return library_.name() + " has no " + symbol;
    const Result result = function(arguments...);
    if (result == kSuccess) return std::nullopt;
    return library_.name() + ": " + symbol + ": " + description_of(result);
  }
  std::string description_of(Result result) const;

  void add(const char* fact, std::string text) { facts_.push_back({fact, std::move(text)}); }
  void add(const char* fact, std::uint64_t number);
  void add_text(const char* fact, const char* symbol);
  void add_number(const char* fact, const char* symbol);
  void add_clock(const char* fact, const char* symbol, unsigned clock);
  void add_errors(const char* fact, unsigned counter);
  void add_retired_pages(const char* fact, unsigned cause);
  void add_modes();
  void add_memory_health();

  SharedLibrary library_;
  bool started_ = false;
  Device device_ = nullptr;
  std::vector<DeviceFact> facts_;
};

std::string Questions::description_of(Result result) const {
  std::string description = "error " + std::to_string(result);
  const char* (*describe)(Result) = nullptr;
  const char* text = library_.find("nvmlErrorString", describe) ? describe(result) : nullptr;
  if (text != nullptr) description += " (" + std::string(text, strnlen(text, kErrorSize)) + ")";
  return description;
}

// All bits set is NVML_VALUE_NOT_AVAILABLE, of either width.
void Questions::add(const char* fact, std::uint64_t number) {
  if (number == std::numeric_limits<unsigned>::max()) return;
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return;
  facts_.push_back({fact, static_cast<std::int64_t>(number)});
}

void Questions::add_text(const char* fact, const char* symbol) {
  std::array<char, kTextSize> text{};
  if (call<Result(Device, char*, unsigned)>(symbol, device_, text.data(), unsigned{text.size()})) {
    add(fact, text_in(text));
  }
}

void Questions::add_number(const char* fact, const char* symbol) {
  unsigned value = 0;
  if (call<Result(Device, unsigned*)>(symbol, device_, &value)) add(fact, std::uint64_t{value});
}

void Questions::add_clock(const char* fact, const char* symbol, unsigned clock) {
  unsigned mhz = 0;
  if (call<Result(Device, unsigned, unsigned*)>(symbol, device_, clock, &mhz)) {
    add(fact, std::uint64_t{mhz});
  }
}

void Questions::add_errors(const char* fact, unsigned counter) {
  Count count = 0;
  if (call<Result(Device, unsigned, unsigned, Count*)>("nvmlDeviceGetTotalEccErrors", device_,
                                                       kUncorrected, counter, &count)) {
    add(fact, std::uint64_t{count});
  }
}

// Room for no page asks for their number: then a result that says "too small" is the answer.
void Questions::add_retired_pages(const char* fact, unsigned cause) {
  constexpr Result kInsufficientSize = 7;
  Result (*ask)(Device, unsigned, unsigned*, Count*) = nullptr;
  if (!library_.find("nvmlDeviceGetRetiredPages", ask)) return;
  unsigned pages = 0;
  Count nowhere = 0;
  const Result result = ask(device_, cause, &pages, &nowhere);
  if (result == kSuccess || result == kInsufficientSize) add(fact, std::uint64_t{pages});
}

void Questions::add_modes() {
  using OfTwo = Result(Device, unsigned*, unsigned*);
  using OfOne = Result(Device, unsigned*);
  unsigned current = 0;
  unsigned pending = 0;
  if (call<OfTwo>("nvmlDeviceGetMigMode", device_, &current, &pending)) {
    add("mig", on_or_off(current));
    add("mig_pending", on_or_off(pending));
  }
  if (call<OfTwo>("nvmlDeviceGetEccMode", device_, &current, &pending)) {
    add("ecc_mode", on_or_off(current));
    add("ecc_mode_pending", on_or_off(pending));
  }
  if (call<OfOne>("nvmlDeviceGetPersistenceMode", device_, &current)) {
    add("persistence_mode", on_or_off(current));
  }
  if (call<OfOne>("nvmlDeviceGetComputeMode", device_, &current)) {
    add("compute_mode", compute_mode(current));
  }
}

void Questions::add_memory_health() {
  add_errors("ecc_uncorrected_volatile", kVolatile);
  add_errors("ecc_uncorrected_aggregate", kAggregate);
  add_retired_pages("retired_pages_single_bits", kSingleBits);
  add_retired_pages("retired_pages_double_bit", kDoubleBit);
  add_number("retired_pages_pending", "nvmlDeviceGetRetiredPagesPendingStatus");
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  if (call<Result(Device, unsigned*, unsigned*, unsigned*, unsigned*)>(
          "nvmlDeviceGetRemappedRows", device_, &corrected, &uncorrected, &pending, &failed)) {
    add("remapped_rows_corrected", std::uint64_t{corrected});
    add("remapped_rows_uncorrected", std::uint64_t{uncorrected});
    add("remapped_rows_pending", std::uint64_t{pending});
    add("remapped_rows_failed", std::uint64_t{failed});
  }
}

std::vector<DeviceFact> Questions::about(const std::string& uuid) {
  using OfSystem = Result(char*, unsigned);
  if (const auto failure = failure_of<Result()>("nvmlInit_v2")) return {{"nvml", *failure}};
  started_ = true;
  std::array<char, kTextSize> text{};
  constexpr unsigned kSize = kTextSize;
  const bool named = call<OfSystem>("nvmlSystemGetNVMLVersion", text.data(), kSize);
  add("nvml", named ? text_in(text) : library_.name());
  text = {};
  if (call<OfSystem>("nvmlSystemGetDriverVersion", text.data(), kSize)) {
    add("driver_version", text_in(text));
  }
  if (const auto failure = failure_of<Result(const char*, Device*)>("nvmlDeviceGetHandleByUUID",
                                                                    uuid.c_str(), &device_)) {
    facts_.front().value = *failure;
    return std::move(facts_);
  }
  PciInfo pci{};
  if (call<Result(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3", device_, &pci)) {
    add("pci_bus_id", text_in(pci.bus_id));
  }
  add_text("vbios", "nvmlDeviceGetVbiosVersion");
  add_modes();
  add_memory_health();
  add_number("power_limit_mw", "nvmlDeviceGetEnforcedPowerLimit");
  add_clock("clock_max_sm_mhz", "nvmlDeviceGetMaxClockInfo", kClockSm);
  add_clock("clock_max_memory_mhz", "nvmlDeviceGetMaxClockInfo", kClockMemory);
  add_clock("clock_application_sm_mhz", "nvmlDeviceGetApplicationsClock", kClockSm);
  add_clock("clock_application_memory_mhz", "nvmlDeviceGetApplicationsClock", kClockMemory);
  return std::move(facts_);
}

}  // namespace

std::vector<DeviceFact> ask_nvml(std::span<const char* const> libraries, const std::string& uuid) {
  std::string why;
  auto library = SharedLibrary::open(libraries, why);
  if (!library) return {{"nvml", why}};
  return Questions(*std::move(library)).about(uuid);
}

}  // namespace detrun
