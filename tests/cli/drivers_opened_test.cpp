// Commands that need no GPU start no driver: the loader's own log (LD_DEBUG) says which libraries a
// program asked for while it ran, there or not. The program without CUDA has none to open; the
// emulated device's library stands for NVIDIA's there.
#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "cli_support.h"

using namespace detrun;
using namespace detrun::test;

namespace {

constexpr std::array kDrivers = {"libcuda.so", "libnvidia-ml.so", "libcublas", "libnvrtc",
                                 "libdetrun_emulated_nvml.so"};
const std::string kProgram = DETRUN_BINARY_DIR "/bin/detrun";
const std::string kEmulated = DETRUN_BINARY_DIR "/bin/detrun_emulated";

/// What the loader of one command wrote.
class LoaderLog {
 public:
  LoaderLog(const std::string& program, const std::vector<std::string>& words) {
    const ScratchFolder folder;
    CliRun run;
    run.program = program;
    run.arguments = words;
    run.env = {{"LD_DEBUG", "files"}, {"LD_DEBUG_OUTPUT", folder / "loader"}};
    result_ = run_cli(run);
    for (const auto& entry : std::filesystem::directory_iterator(folder / ".")) {
      text_ += read_bytes(entry.path().string());
    }
  }
  const CliResult& result() const { return result_; }
  /// The libraries of GPUs that the program asked for, whether they are there or not.
  std::string drivers() const {
    std::string found;
    for (const char* name : kDrivers) {
      if (contains(text_, std::string("file=") + name)) found += std::string(name) + " ";
    }
    return found;
  }
  /// Whether this system's loader writes such a log: every program needs a C library.
  bool is_there() const { return contains(text_, "file=libc.so.6"); }

 private:
  CliResult result_;
  std::string text_;
};

bool is_loader_talkative() {
  if (LoaderLog(kProgram, {"--help"}).is_there()) return true;
  MESSAGE("skipped: this system's loader does not say which files it opens (LD_DEBUG)");
  return false;
}

bool has_cuda() {
  const Json document = parse_line(run_cli({"fingerprint", "--backend", "cpu"}).out);
  return at_path(document, "informational.build.cuda").as_string() != "none";
}

}  // namespace

TEST_CASE("commands that need no GPU start no driver and open no library of one") {
  if (!is_loader_talkative()) return;
  const ScratchFolder folder;
  const std::string ledger = folder / "runs.db";
  const std::string model = model_path();
  const std::vector<std::vector<std::string>> commands = {
      {"record", "-m", model, "--ledger", ledger, "-p", kPrompt, "-n", "2", "--backend", "cpu"},
      {"list", "--ledger", ledger},
      {"show", "1", "--ledger", ledger},
      {"verify", "--ledger", ledger},
      {"replay", "1", "--ledger", ledger, "--backend", "cpu"},
      {"stress", "-m", model, "-p", kPrompt, "-n", "2", "--runs", "2"},
      {"fingerprint", "--backend", "cpu"},
      {"tokenize", "-m", model, "-p", kPrompt},
      {"--help"},
      {"record", "--help"}};
  for (const std::string& program : {kProgram, kEmulated}) {
    for (const std::vector<std::string>& words : commands) {
      CAPTURE(program);
      CAPTURE(words.front());
      const LoaderLog log(program, words);
      INFO(log.result().err);
      CHECK(log.result().code == 0);
      CHECK(log.is_there());
      CHECK(log.drivers() == "");
    }
  }
}

TEST_CASE("a device that computes is asked for its facts, and the log above would have shown it") {
  if (!is_loader_talkative()) return;
  const LoaderLog log(kEmulated, {"fingerprint", "--backend", "cuda-emulated"});
  CHECK(log.result().code == 0);
  CHECK(log.drivers() == "libdetrun_emulated_nvml.so ");
  if (has_cuda()) {
    CHECK(contains(LoaderLog(kProgram, {"--version"}).drivers(), "libcuda.so"));
  } else {
    CHECK(LoaderLog(kProgram, {"--version"}).drivers() == "");
  }
}

TEST_CASE("the fingerprint of the emulated device holds what the library says, each time") {
  const std::vector<std::string> words = {"fingerprint", "--backend", "cuda-emulated"};
  CliRun run;
  run.program = kEmulated;
  run.arguments = words;
  const CliResult result = run_cli(run);
  REQUIRE(result.code == 0);
  CHECK(run_cli(run).out == result.out);
  const Json device = at_path(parse_line(result.out), "informational.backend.device");
  REQUIRE(device.is_object());
  CHECK(device.canonical() ==
        R"({"clock_application_memory_mhz":102,"clock_application_sm_mhz":101,)"
        R"("clock_max_memory_mhz":1002,"clock_max_sm_mhz":1001,"compute_capability":"9.0",)"
        R"("compute_mode":"default","cuda_driver":"0.0","cuda_runtime":"0.0",)"
        R"("driver_version":"580.95.05","ecc":"off","ecc_mode":"off","ecc_mode_pending":"on",)"
        R"("ecc_uncorrected_aggregate":1,"ecc_uncorrected_volatile":0,"index":0,)"
        R"("memory_bytes":4294967296,"mig":"off","mig_pending":"on","multiprocessors":4,)"
        R"("name":"host emulation","nvml":"13.580.95.05","pci_bus_id":"00000000:01:00.0",)"
        R"("persistence_mode":"off","power_limit_mw":1000,"remapped_rows_corrected":5,)"
        R"("remapped_rows_failed":0,"remapped_rows_pending":1,"remapped_rows_uncorrected":2,)"
        R"("retired_pages_double_bit":0,"retired_pages_pending":0,)"
        R"("retired_pages_single_bits":0,"uuid":"GPU-01010101-0101-0101-0101-010101010101",)"
        R"("vbios":"96.00.00.00.01"})");
}
