// What a driver says of a GPU, and what becomes of it when the driver says less: libraries that are
// missing, old, failing or hostile.
#include "backend/nvml.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/shared_library.h"
#include "kernels/cuda/emulated_runtime/emulated_nvml.h"

namespace detrun {
namespace {

using emulation::NvmlBehaviour;
using emulation::NvmlBehaviourOf;

constexpr const char* kLibrary = "libdetrun_emulated_nvml.so";
constexpr const char* kOldLibrary = "libdetrun_emulated_nvml_old.so";
const std::string kUuid = "GPU-01010101-0101-0101-0101-010101010101";

/// The library, kept open so that it behaves as a test wants while it is asked; then as before.
class Bent {
 public:
  explicit Bent(const char* name = kLibrary) {
    std::string why;
    library_ = SharedLibrary::open(std::array{name}, why);
    INFO(why);
    REQUIRE(library_);
    NvmlBehaviourOf* behaviour_of = nullptr;
    REQUIRE(library_->find("detrun_emulated_nvml", behaviour_of));
    behaviour_ = behaviour_of();
    saved_ = *behaviour_;
    behaviour_->calls = 0;
  }
  ~Bent() { *behaviour_ = saved_; }
  Bent(const Bent&) = delete;
  Bent& operator=(const Bent&) = delete;
  NvmlBehaviour* operator->() const { return behaviour_; }
  std::vector<DeviceFact> ask(const std::string& uuid = kUuid) const {
    const std::array names = {library_->name().c_str()};
    return ask_nvml(names, uuid);
  }

 private:
  std::optional<SharedLibrary> library_;
  NvmlBehaviour* behaviour_ = nullptr;
  NvmlBehaviour saved_ = {};
};

std::vector<std::string> names_of(const std::vector<DeviceFact>& facts) {
  std::vector<std::string> names;
  names.reserve(facts.size());
  for (const DeviceFact& fact : facts) names.push_back(fact.name);
  return names;
}

const DeviceFact* find(const std::vector<DeviceFact>& facts, const std::string& name) {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const DeviceFact& fact) { return fact.name == name; });
  return found == facts.end() ? nullptr : &*found;
}

std::string text_of(const std::vector<DeviceFact>& facts, const std::string& name) {
  const DeviceFact* fact = find(facts, name);
  return fact == nullptr ? "(none)" : std::get<std::string>(fact->value);
}

std::int64_t number_of(const std::vector<DeviceFact>& facts, const std::string& name) {
  const DeviceFact* fact = find(facts, name);
  return fact == nullptr ? -1 : std::get<std::int64_t>(fact->value);
}

}  // namespace

TEST_CASE("a driver that answers everything is written down, each answer under its own name") {
  const Bent nvml;
  nvml->errors = 7;
  nvml->retired_pages = 3;
  const std::vector<DeviceFact> facts = nvml.ask();
  using namespace std::string_literals;
  const std::vector<DeviceFact> expected = {{"nvml", "13.580.95.05"s},
                                            {"driver_version", "580.95.05"s},
                                            {"pci_bus_id", "00000000:01:00.0"s},
                                            {"vbios", "96.00.00.00.01"s},
                                            {"mig", "off"s},
                                            {"mig_pending", "on"s},
                                            {"ecc_mode", "off"s},
                                            {"ecc_mode_pending", "on"s},
                                            {"persistence_mode", "off"s},
                                            {"compute_mode", "default"s},
                                            {"ecc_uncorrected_volatile", 7},
                                            {"ecc_uncorrected_aggregate", 8},
                                            {"retired_pages_single_bits", 3},
                                            {"retired_pages_double_bit", 6},
                                            {"retired_pages_pending", 1},
                                            {"remapped_rows_corrected", 5},
                                            {"remapped_rows_uncorrected", 2},
                                            {"remapped_rows_pending", 1},
                                            {"remapped_rows_failed", 0},
                                            {"power_limit_mw", 1000},
                                            {"clock_max_sm_mhz", 1001},
                                            {"clock_max_memory_mhz", 1002},
                                            {"clock_application_sm_mhz", 101},
                                            {"clock_application_memory_mhz", 102}};
  CHECK(names_of(facts) == names_of(expected));
  CHECK(facts == expected);
  CHECK(nvml->started == 0);
  CHECK(nvml.ask() == facts);
}

TEST_CASE("modes have words, and a number where a driver knows more of them than we do") {
  const Bent nvml;
  nvml->mode = 1;
  CHECK(text_of(nvml.ask(), "persistence_mode") == "on");
  CHECK(text_of(nvml.ask(), "compute_mode") == "exclusive_process");
  CHECK(text_of(nvml.ask(), "mig") == "on");
  CHECK(text_of(nvml.ask(), "mig_pending") == "off");
  nvml->mode = 17;
  CHECK(text_of(nvml.ask(), "persistence_mode") == "17");
  CHECK(text_of(nvml.ask(), "compute_mode") == "19");
}

TEST_CASE("without the library one fact says so, and names it") {
  const std::array names = {"libdetrun-of-nobody.so.1"};
  const std::vector<DeviceFact> facts = ask_nvml(names, kUuid);
  CHECK(names_of(facts) == std::vector<std::string>{"nvml"});
  CHECK(text_of(facts, "nvml").starts_with("libdetrun-of-nobody.so.1: "));
}

TEST_CASE("a library that is not NVML, or too old to be, is named with what it lacks") {
  const std::array names = {"libm.so.6"};
  const std::vector<DeviceFact> facts = ask_nvml(names, kUuid);
  CHECK(facts == std::vector<DeviceFact>{{"nvml", std::string("libm.so.6 has no nvmlInit_v2")}});
}

TEST_CASE("functions that a library lacks leave out their facts and no others") {
  const Bent nvml(kOldLibrary);
  const std::vector<DeviceFact> facts = nvml.ask();
  CHECK(names_of(facts) == std::vector<std::string>{"nvml", "driver_version"});
  CHECK(text_of(facts, "nvml") == kOldLibrary);
  CHECK(text_of(facts, "driver_version") == "580.95.05");
  nvml->init_result = 9;
  CHECK(text_of(nvml.ask(), "nvml") == std::string(kOldLibrary) + ": nvmlInit_v2: error 9");
}

TEST_CASE("what a GPU does not support is absent, not invented") {
  const Bent nvml;
  for (const unsigned refusal : {3U, 4U, 15U, 999U}) {  // unsupported, forbidden, lost, unknown
    CAPTURE(refusal);
    nvml->device_result = refusal;
    const std::vector<DeviceFact> facts = nvml.ask();
    CHECK(names_of(facts) == std::vector<std::string>{"nvml", "driver_version"});
    CHECK(text_of(facts, "nvml") == "13.580.95.05");
    CHECK(nvml->started == 0);
  }
}

TEST_CASE("a number that stands for none is absent") {
  const Bent nvml;
  nvml->errors = ~0ULL;
  nvml->number = ~0U;
  const std::vector<DeviceFact> facts = nvml.ask();
  for (const char* name : {"ecc_uncorrected_volatile", "ecc_uncorrected_aggregate",
                           "power_limit_mw", "clock_max_sm_mhz", "clock_max_memory_mhz"}) {
    CAPTURE(name);
    CHECK(find(facts, name) == nullptr);
  }
  CHECK(number_of(facts, "remapped_rows_corrected") == 5);
}

TEST_CASE("a library that does not start is asked nothing more, and says why") {
  const Bent nvml;
  nvml->init_result = 9;
  const std::vector<DeviceFact> facts = nvml.ask();
  CHECK(names_of(facts) == std::vector<std::string>{"nvml"});
  CHECK(text_of(facts, "nvml") ==
        std::string(kLibrary) + ": nvmlInit_v2: error 9 (Driver Not Loaded)");
  CHECK(nvml->calls == 1);
  nvml->init_result = 123;
  CHECK(text_of(nvml.ask(), "nvml") == std::string(kLibrary) + ": nvmlInit_v2: error 123");
}

TEST_CASE("a GPU that the library does not know leaves the driver's version, and says why") {
  const Bent nvml;
  const std::vector<DeviceFact> facts = nvml.ask("GPU-01010101-0101-0101-0101-010101010102");
  CHECK(names_of(facts) == std::vector<std::string>{"nvml", "driver_version"});
  CHECK(text_of(facts, "nvml") ==
        std::string(kLibrary) + ": nvmlDeviceGetHandleByUUID: error 6 (Not Found)");
  CHECK(nvml->started == 0);
  CHECK(find(nvml.ask("GPU-02020202-0202-0202-0202-020202020202"), "vbios") != nullptr);
}

TEST_CASE("texts without an end stop at the end of their buffer, whatever bytes they are") {
  const Bent nvml;
  nvml->fill = '\xff';
  const std::vector<DeviceFact> facts = nvml.ask();
  CHECK(text_of(facts, "driver_version") == std::string(96, '\xff'));
  CHECK(text_of(facts, "vbios") == std::string(96, '\xff'));
  CHECK(text_of(facts, "pci_bus_id") == std::string(32, '\xff'));
}

TEST_CASE("a backend has the facts of its own device, also where there are none to be had") {
  const Bent nvml;
  emulation::set_devices({{}, {}});
  CHECK(cuda_support().usable);
  require_cuda_device({"1"});
  CHECK(nvml->calls == 0);
  CHECK(make_cuda_backend({})->info().device->facts == nvml.ask());
  const BackendInfo second = make_cuda_backend({"1"})->info();
  CHECK(text_of(second.device->facts, "pci_bus_id") == "00000000:02:00.0");
  nvml->init_result = 9;
  CHECK(make_cuda_backend({"1"})->info().device->facts == nvml.ask());
  emulation::set_devices({{}});
}

TEST_CASE("asking takes no time beyond the library's own") {
  using Clock = std::chrono::steady_clock;
  const Bent nvml;
  Clock::duration least = Clock::duration::max();
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    CHECK(nvml.ask().size() == 24);
    least = std::min(least, Clock::now() - start);
  }
  CHECK(std::chrono::duration<double, std::milli>(least).count() < 5.0);
  CHECK(nvml->calls == 20 * 24);
}

}  // namespace detrun
