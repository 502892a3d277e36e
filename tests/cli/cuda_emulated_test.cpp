// Runs recorded on the CPU replay on a GPU and the other way round: the program of this build and
// the one with the emulated device, on the same ledger.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli_support.h"

using namespace detrun;
using namespace detrun::test;

namespace {

std::vector<std::string> on_device(std::vector<std::string> words) {
  words.insert(words.end(), {"--backend", "cuda-emulated"});
  return words;
}

std::vector<std::string> record_of(const std::string& type, const std::string& ledger) {
  return {"record", "-m", fixture_model(type), "-p", kPrompt, "-n", "4", "--ledger", ledger};
}

std::vector<std::string> replay_of(const std::string& run, const std::string& mode,
                                   const std::string& ledger) {
  return {"replay", run, "--mode", mode, "--ledger", ledger, "--json"};
}

void check_reproduced(const CliResult& result, const std::string& mode) {
  INFO(result.err);
  CHECK(result.code == 0);
  const Json report = parse_line(result.out);
  CHECK(at_path(report, "verdict").as_string() == "REPRODUCED");
  const Json& run = report.find("runs")->as_array().front();
  CHECK(at_path(run, "mode").as_string() == mode);
  CHECK(at_path(run, "steps_checked").as_i64() == 4);
}

}  // namespace

TEST_CASE("a run recorded on the CPU replays on the GPU and the other way round, in both modes") {
  for (const char* type : {"f16", "q8_0", "q4_k_m"}) {
    CAPTURE(type);
    const ScratchFolder folder;
    const std::string ledger = folder / "runs.db";
    const CliResult on_cpu = run_cli(record_of(type, ledger));
    REQUIRE(on_cpu.code == 0);
    const CliResult on_gpu = run_emulated(on_device(record_of(type, ledger)));
    INFO(on_gpu.err);
    REQUIRE(on_gpu.code == 0);
    CHECK(on_gpu.out == on_cpu.out);
    for (const char* mode : {"step", "parallel"}) {
      check_reproduced(run_emulated(on_device(replay_of("1", mode, ledger))), mode);
      check_reproduced(run_cli(replay_of("2", mode, ledger)), mode);
    }
  }
}

TEST_CASE("every fixture ledger, recorded on a CPU, replays on the GPU in both modes") {
  int n_ledgers = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(DETRUN_SOURCE_DIR "/fixtures/ledgers")) {
    CAPTURE(entry.path().string());
    const ScratchFolder folder;
    const std::string ledger = folder / "runs.db";
    write_bytes(ledger, read_bytes(entry.path()));
    for (const char* mode : {"step", "parallel"}) {
      const CliResult replayed =
          run_emulated(on_device({"replay", "--all", "--ledger", ledger, "--mode", mode, "--json",
                                  "--model", fixture_model("q8_0")}));
      INFO(replayed.out);
      CHECK(replayed.code == 0);
      const Json report = parse_line(replayed.out);
      CHECK(at_path(report, "verdict").as_string() == "REPRODUCED");
      CHECK(report.find("runs")->as_array().size() >= 2);
    }
    ++n_ledgers;
  }
  CHECK(n_ledgers >= 1);
}

TEST_CASE("the ledger says which device computed, whatever replays it") {
  const ScratchFolder folder;
  const std::string ledger = folder / "runs.db";
  REQUIRE(run_emulated(on_device(record_of("q8_0", ledger))).code == 0);
  const Json run = parse_line(run_cli({"show", "1", "--ledger", ledger, "--json"}).out);
  CHECK(at_path(run, "params.backend").as_string() == "cuda-emulated");
  CHECK(at_path(run, "params.isa").as_string() == "sm_90");
  CHECK(at_path(run, "params.threads").as_i64() == 1);
  CHECK(at_path(run, "stack.informational.backend.device.uuid").as_string() ==
        "GPU-01010101-0101-0101-0101-010101010101");
}

TEST_CASE("the ledger says whether steps were graphs, and what turned them off") {
  const ScratchFolder folder;
  const std::string ledger = folder / "runs.db";
  const std::vector<std::string> words = on_device(record_of("q8_0", ledger));
  std::vector<std::string> without = words;
  without.emplace_back("--no-graph");
  const CliResult graphs = run_emulated(words);
  REQUIRE(graphs.code == 0);
  CHECK(run_emulated(without).out == graphs.out);
  CHECK(run_emulated(words, {{"CUDA_LAUNCH_BLOCKING", "1"}}).out == graphs.out);
  REQUIRE(run_cli(record_of("q8_0", ledger)).code == 0);
  const auto shown = [&](const char* run) {
    return parse_line(run_cli({"show", run, "--ledger", ledger, "--json"}).out);
  };
  CHECK(at_path(shown("1"), "params.graph").as_i64() == 1);
  CHECK(at_path(shown("1"), "stack.informational.backend.graph").as_string() == "on");
  CHECK(at_path(shown("2"), "params.graph").as_i64() == 0);
  CHECK(at_path(shown("2"), "stack.informational.backend.graph").as_string() == "off");
  CHECK(at_path(shown("3"), "params.graph").as_i64() == 0);
  CHECK(at_path(shown("3"), "stack.informational.environment.CUDA_LAUNCH_BLOCKING").as_string() ==
        "1");
  CHECK(shown("4").find("params")->find("graph") == nullptr);
  for (const char* run : {"1", "2"}) {
    std::vector<std::string> replay = on_device(replay_of(run, "step", ledger));
    check_reproduced(run_emulated(replay), "step");
    replay.emplace_back("--no-graph");
    check_reproduced(run_emulated(replay), "step");
  }
}

TEST_CASE("auto never means the emulated device, and a device that is named is never passed over") {
  const ScratchFolder folder;
  const std::string ledger = folder / "runs.db";
  REQUIRE(run_emulated(record_of("q8_0", ledger)).code == 0);
  const Json run = parse_line(run_cli({"show", "1", "--ledger", ledger, "--json"}).out);
  CHECK(at_path(run, "params.backend").as_string() == "cpu");
  const auto with_device = [&](const char* device) {
    std::vector<std::string> words = record_of("q8_0", folder / "other.db");
    words.insert(words.end(), {"--device", device});
    return words;
  };
  const CliResult missing = run_emulated(with_device("3"));
  CHECK(missing.code == 2);
  CHECK(contains(missing.err, "there is no device '3'"));
  CHECK(contains(missing.err, "0 GPU-01010101-0101-0101-0101-010101010101"));
  const CliResult on_cpu = run_cli(with_device("no such"));
  CHECK(on_cpu.code == 2);
  CHECK(contains(on_cpu.err, "backend cuda: "));
  CHECK(!std::filesystem::exists(folder / "other.db"));
}

TEST_CASE("no device and too little memory end a command before it records, with the reason") {
  const ScratchFolder folder;
  const std::string ledger = folder / "runs.db";
  const std::vector<std::string> words = on_device(record_of("q8_0", ledger));
  const CliResult none = run_emulated(words, {{"DETRUN_SMOKE_NO_DEVICE", "1"}});
  CHECK(none.code == 2);
  CHECK(contains(none.err, "backend cuda-emulated: there is no NVIDIA GPU"));
  const CliResult small = run_emulated(words, {{"DETRUN_EMULATED_MEMORY", "1000000"}});
  CHECK(small.code == 5);
  CHECK(contains(small.err, "the weights need 2 MiB, 1 MiB of 1 MiB are free on device 0"));
  const CliResult full = run_emulated(words, {{"DETRUN_EMULATED_MEMORY", "7000000"}});
  CHECK(full.code == 5);
  CHECK(contains(full.err, "not enough memory: a context of"));
  const Json runs = parse_line(run_cli({"verify", "--ledger", ledger, "--json"}).out);
  CHECK(at_path(runs, "checked.runs").as_i64() == 0);
}

TEST_CASE("several runs replay at once on one device") {
  const ScratchFolder folder;
  const std::string ledger = folder / "runs.db";
  for (int i = 0; i < 3; ++i) REQUIRE(run_cli(record_of("q8_0", ledger)).code == 0);
  const CliResult result =
      run_emulated(on_device({"replay", "--all", "--jobs", "2", "--ledger", ledger, "--json"}));
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(parse_line(result.out).find("runs")->as_array().size() == 3);
}

TEST_CASE("the version says what there is of CUDA, in one line") {
  const CliResult emulated = run_emulated({"--version"});
  CHECK(emulated.code == 0);
  CHECK(contains(emulated.out, "\nbackend cuda-emulated: host emulation, sm_90, 4096 MiB"));
  const CliResult none = run_emulated({"--version"}, {{"DETRUN_SMOKE_NO_DEVICE", "1"}});
  CHECK(none.code == 0);
  CHECK(contains(none.out, "\nbackend cuda-emulated: none (there is no NVIDIA GPU"));
}

TEST_CASE("bench compares with the ceilings of what computes") {
  const std::string model = DETRUN_SOURCE_DIR "/fixtures/models/forged-small.gguf";
  const std::vector<std::string> words = {"bench",    "-m", model, "--only", "decode",
                                          "--repeat", "1",  "-n",  "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run_emulated(more);
  };
  const CliResult text = with({"--backend", "cuda-emulated"});
  INFO(text.err);
  REQUIRE(text.code == 0);
  CHECK(contains(text.out, "\nengine    cuda-emulated, host emulation, context 512, "));
  CHECK(contains(text.out, "\nceilings  copy "));
  CHECK(contains(text.out, " (sm_90 loops)"));
  CHECK(!contains(text.out, "the cores were this process's"));
  const Json device = parse_line(with({"--backend", "cuda-emulated", "--json"}).out);
  CHECK(at_path(device, "ceilings").find("copy_gb_per_s") != nullptr);
  CHECK(at_path(device, "results").as_array().front().find("ceiling")->as_string() == "copy");
  const Json cpu = parse_line(with({"--backend", "cpu", "--json"}).out);
  CHECK(at_path(cpu, "ceilings").find("read_gb_per_s") != nullptr);
  CHECK(at_path(cpu, "results").as_array().front().find("ceiling")->as_string() == "read");
}
