// Profile cublas from the command line, on the emulated GPU with its emulated cuBLASLt: recorded,
// pinned, replayed step by step, refused elsewhere. That NVIDIA's library gives the same bits again
// is not shown here; no emulation can.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli_support.h"

using namespace detrun;
using namespace detrun::test;

namespace {

/// A folder with a ledger and a user's cache of its own.
struct Scene {
  ScratchFolder folder;
  std::string ledger = folder / "runs.db";
  std::string cache = folder / "cache";

  CliResult on_gpu(std::vector<std::string> words, std::map<std::string, std::string> env = {}) {
    words.insert(words.end(), {"--ledger", ledger, "--backend", "cuda-emulated"});
    env.emplace("XDG_CACHE_HOME", cache);
    return run_emulated(std::move(words), std::move(env));
  }
  CliResult record(const std::string& type, const std::vector<std::string>& more = {},
                   const std::string& numerics = "cublas") {
    std::vector<std::string> words = {"record", "-v", "-m", fixture_model(type), "-p",
                                      kPrompt,  "-n", "3",  "--numerics",        numerics};
    words.insert(words.end(), more.begin(), more.end());
    return on_gpu(words);
  }
  Json shown(const std::string& run) {
    return parse_line(run_cli({"show", run, "--ledger", ledger, "--json"}).out);
  }
  std::size_t proofs() const {
    std::error_code none;
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(cache + "/detrun/products", none), {}));
  }
};

std::string reason_of(const CliResult& result) {
  const Json report = parse_line(result.out);
  return at_path(report.find("runs")->as_array().front(), "reason").as_string();
}

constexpr const char* kTested = "testing every product";

}  // namespace

TEST_CASE("a run under cublas is tested once, recorded with its plan, and replayed step by step") {
  Scene scene;
  const CliResult first = scene.record("f16");
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK(contains(first.err, kTested));
  CHECK(scene.proofs() == 1);
  const CliResult second = scene.record("f16");
  CHECK(second.code == 0);
  CHECK_FALSE(contains(second.err, kTested));

  const Json run = scene.shown("1");
  CHECK(at_path(run, "numerics.profile").as_string() == "cublas");
  const Json plan = at_path(run, "params.products");
  CHECK(at_path(plan, "rows").as_i64() == at_path(run, "params.chunk").as_i64());
  CHECK(plan.find("products")->as_array().size() == 2);
  const Json bound = at_path(run, "stack.binding.products");
  CHECK(at_path(bound, "architecture").as_string() == "sm_90");
  CHECK(at_path(bound, "cublaslt").as_string() == at_path(plan, "cublaslt").as_string());

  const std::string text = run_cli({"show", "1", "--ledger", scene.ledger}).out;
  CHECK(contains(text, "\nproducts of 512 rows by cuBLASLt "));
  CHECK(contains(text, "\nF16    64  256  algorithm "));

  for (const char* mode : {"auto", "step"}) {
    const CliResult replayed = scene.on_gpu({"replay", "--all", "--mode", mode, "--json"});
    INFO(replayed.err);
    CHECK(replayed.code == 0);
    const Json report = parse_line(replayed.out);
    for (const Json& one : report.find("runs")->as_array()) {
      CHECK(at_path(one, "verdict").as_string() == "REPRODUCED");
      CHECK(at_path(one, "mode").as_string() == "step");
      CHECK(at_path(one, "steps_checked").as_i64() == 3);
    }
  }
  CHECK(run_cli({"verify", "--ledger", scene.ledger}).code == 0);
}

TEST_CASE("the prompt of a run under cublas has other bits than the contract's, and chunks count") {
  Scene scene;
  REQUIRE(scene.record("f16").code == 0);
  REQUIRE(scene.record("f16", {}, "portable").code == 0);
  REQUIRE(scene.record("f16", {"--chunk", "4"}).code == 0);
  const auto hash = [&](const char* run) {
    return scene.shown(run).find("steps")->as_array().front().find("logits_xxh3")->as_string();
  };
  CHECK(hash("1") != hash("2"));
  CHECK(at_path(scene.shown("3"), "params.chunk").as_i64() == 4);
  // A chunk given to the replay does not decide: the recorded one does. Of ten tokens in threes
  // the last would be alone, which is another product.
  const CliResult replayed = scene.on_gpu({"replay", "--all", "--chunk", "3", "--json"});
  INFO(replayed.out);
  CHECK(replayed.code == 0);
}

TEST_CASE("a run under cublas is not decided in parallel, on a CPU, or by another program") {
  Scene scene;
  REQUIRE(scene.record("f16").code == 0);
  const CliResult parallel = scene.on_gpu({"replay", "1", "--mode", "parallel", "--json"});
  CHECK(parallel.code == 3);
  CHECK(contains(reason_of(parallel), "cannot be replayed in parallel"));
  for (const bool force : {false, true}) {
    std::vector<std::string> words = {"replay",    "1",   "--ledger", scene.ledger,
                                      "--backend", "cpu", "--json"};
    if (force) words.emplace_back("--force");
    const CliResult on_cpu = run_cli(words);
    CHECK(on_cpu.code == 3);
    CHECK(contains(reason_of(on_cpu), "profile cublas needs a GPU"));
  }
}

TEST_CASE("another cuBLASLt decides nothing, unless it is forced to choose algorithms of its own") {
  Scene scene;
  REQUIRE(scene.record("f16").code == 0);
  const std::map<std::string, std::string> other = {{"DETRUN_EMULATED_CUBLASLT", "130100"}};
  const CliResult refused = scene.on_gpu({"replay", "1", "--json"}, other);
  CHECK(refused.code == 3);
  CHECK(contains(reason_of(refused),
                 "the stack differs: products.cublaslt recorded '1.2.3', here '13.1.0'"));
  const CliResult forced = scene.on_gpu({"replay", "1", "--force", "--json"}, other);
  INFO(forced.out);
  CHECK((forced.code == 0 || forced.code == 1));
  CHECK(contains(reason_of(forced), "forced past a differing stack"));
  const CliResult none =
      scene.on_gpu({"replay", "1", "--json"}, {{"DETRUN_EMULATED_CUBLASLT", "none"}});
  CHECK(none.code == 3);
  CHECK(contains(reason_of(none), "needs cuBLASLt"));
}

TEST_CASE("a forged plan is refused before anything is made for its products") {
  Scene scene;
  REQUIRE(scene.record("f16").code == 0);
  std::string plan = at_path(scene.shown("1"), "params.products").canonical();
  const std::string size = "\"n\":64,";
  REQUIRE(plan.find(size) != std::string::npos);
  CliRun forge;
  forge.program = DETRUN_BINARY_DIR "/bin/forge_ledger";
  const std::string forged = scene.folder / "forged.db";
  forge.arguments = {scene.ledger,
                     forged,
                     "--run",
                     "1",
                     "--reseal",
                     "--field",
                     "params.products=" + plan.replace(plan.find(size), size.size(), "\"n\":65,")};
  REQUIRE(run_cli(forge).code == 0);
  scene.ledger = forged;
  CHECK(run_cli({"verify", "--ledger", forged}).code == 0);
  const CliResult replayed = scene.on_gpu({"replay", "1", "--force", "--json"});
  CHECK(replayed.code == 3);
  CHECK(contains(reason_of(replayed), "F16 65 x 256, which is no matrix of the model"));
}

TEST_CASE("a GPU whose products differ in a bit now and then is refused") {
  Scene scene;
  const CliResult refused = scene.on_gpu(
      {"record", "-m", fixture_model("f16"), "-p", kPrompt, "-n", "2", "--numerics", "cublas"},
      {{"DETRUN_EMULATED_CUBLASLT_FLIP", "7"}});
  CHECK(refused.code == 5);
  CHECK(contains(refused.err, "is not repeatable on this device"));
  CHECK(scene.proofs() == 0);
  CHECK(run_cli({"list", "--ledger", scene.ledger, "--json"}).out.empty());
}

TEST_CASE("what cublas cannot compute is refused before anything is recorded") {
  Scene scene;
  const CliResult quantized = scene.record("q8_0");
  CHECK(quantized.code == 2);
  CHECK(contains(quantized.err, "Q8_0"));
  CHECK(contains(quantized.err, "--numerics portable"));
  const CliResult on_cpu = run_cli({"record", "-m", fixture_model("f16"), "-p", "x", "--backend",
                                    "cpu", "--numerics", "cublas", "--ledger", scene.ledger});
  CHECK(on_cpu.code == 2);
  CHECK(contains(on_cpu.err, "needs a GPU"));
}

TEST_CASE("lines of a file of prompts may differ in profile") {
  Scene scene;
  const std::string file = scene.folder / "prompts.jsonl";
  write_bytes(file, std::string(R"({"prompt":"one two","numerics":"cublas"})") + "\n" +
                        R"({"prompt":"one two"})" + "\n" +
                        R"({"prompt":"one two three","numerics":"cublas"})" + "\n");
  const CliResult recorded =
      scene.on_gpu({"record", "-m", fixture_model("f16"), "--prompts", file, "-n", "2"});
  INFO(recorded.err);
  REQUIRE(recorded.code == 0);
  CHECK(at_path(scene.shown("1"), "numerics.profile").as_string() == "cublas");
  CHECK(at_path(scene.shown("2"), "numerics.profile").as_string() == "portable");
  CHECK(scene.shown("2").find("params")->find("products") == nullptr);
  const CliResult replayed = scene.on_gpu({"replay", "--all", "--json"});
  INFO(replayed.out);
  CHECK(replayed.code == 0);
  // The portable one has the bits of a CPU.
  CHECK(run_cli({"replay", "2", "--ledger", scene.ledger, "--backend", "cpu"}).code == 0);
}

TEST_CASE("with --strict a line that cublas cannot compute keeps all others from being recorded") {
  Scene scene;
  const std::string file = scene.folder / "prompts.jsonl";
  write_bytes(file, std::string(R"({"prompt":"one two"})") + "\n" +
                        R"({"prompt":"one two","numerics":"cublas"})" + "\n");
  const CliResult strict = scene.on_gpu(
      {"record", "-m", fixture_model("q8_0"), "--prompts", file, "-n", "2", "--strict"});
  CHECK(strict.code == 2);
  CHECK(contains(strict.err, "Q8_0"));
  CHECK(run_cli({"list", "--ledger", scene.ledger, "--json"}).out.empty());
  const CliResult recorded =
      scene.on_gpu({"record", "-m", fixture_model("q8_0"), "--prompts", file, "-n", "2"});
  CHECK(recorded.code == 2);
  CHECK(scene.shown("1").find("numerics") != nullptr);
}

TEST_CASE("a model that just fits is tested and recorded, in one command as in two") {
  for (int first = 0; first < 2; ++first) {
    Scene scene;
    const std::map<std::string, std::string> memory = {{"DETRUN_EMULATED_MEMORY", "45000000"}};
    const CliResult recorded = scene.on_gpu({"record", "-m", fixture_model("f16"), "-p", "Claim",
                                             "-n", "2", "--ctx", "64", "--numerics", "cublas"},
                                            memory);
    INFO(recorded.err);
    CHECK(recorded.code == 0);
  }
}

TEST_CASE("bench under cublas replays nothing in parallel") {
  Scene scene;
  const CliResult asked = run_emulated({"bench", "-m", fixture_model("f16"), "--numerics", "cublas",
                                        "--backend", "cuda-emulated", "--only", "replay_parallel"});
  CHECK(asked.code == 2);
  CHECK(contains(asked.err, "nothing is replayed in parallel"));
  CHECK(run_cli({"bench", "--only", "ceilings", "--numerics", "fast"}).code == 2);
  const CliResult result = run_emulated(
      {"bench", "-m", fixture_model("f16"), "--numerics", "cublas", "--backend", "cuda-emulated",
       "--only", "decode,replay_step", "-n", "2", "--repeat", "1", "--chunk", "16", "--json"},
      {{"XDG_CACHE_HOME", scene.cache}});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const Json report = parse_line(result.out);
  CHECK(at_path(report, "numerics").as_string() == "cublas");
  std::string names;
  for (const Json& one : report.find("results")->as_array()) {
    names += at_path(one, "name").as_string() + " ";
  }
  CHECK(names == "decode replay_step ");
}

TEST_CASE("bench of the ceilings alone takes no model and says when it is under way") {
  const CliResult refused = run_emulated(
      {"bench", "-m", fixture_model("f16"), "--backend", "cuda-emulated", "--only", "ceilings"});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "without a model"));
  const CliResult ceilings = run_emulated({"bench", "--only", "ceilings", "--repeat", "2", "--json",
                                           "-v", "--backend", "cuda-emulated"});
  INFO(ceilings.err);
  CHECK(ceilings.code == 0);
  CHECK(contains(ceilings.err, "measured the ceilings"));
  const Json report = parse_line(ceilings.out);
  CHECK(report.find("model") == nullptr);
  CHECK(at_path(report, "backend").as_string() == "cuda-emulated");
  CHECK(report.find("ceilings")->find("int8_gops") != nullptr);
}
