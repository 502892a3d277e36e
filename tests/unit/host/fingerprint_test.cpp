// The stack document: its shape, its canonical form, and what binds a replay.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "detrun/host.h"

namespace detrun {
namespace {

BackendInfo backend() { return {"cpu", "scalar", 2, {0, 1}, 0x1f80}; }

TEST_CASE("only the arithmetic contract binds a portable replay") {
  const Json stack = collect_fingerprint(backend());
  REQUIRE(stack.find("binding") != nullptr);
  CHECK(stack.find("binding")->canonical() == R"({"numerics":{"profile":"portable","version":1}})");
}

TEST_CASE("what is merely written down names build, backend, machine, environment and objects") {
  const Json stack = collect_fingerprint(backend());
  const Json* facts = stack.find("informational");
  REQUIRE(facts != nullptr);
  for (const char* name :
       {"program_build_id", "build", "backend", "cpu", "system", "environment", "objects"}) {
    CAPTURE(name);
    CHECK(facts->find(name) != nullptr);
  }
  CHECK(facts->find("build")->find("kernel_sha256")->as_string() == build_info().kernel_sha256);
  CHECK(facts->find("backend")->find("threads")->as_i64() == 2);
  CHECK(facts->find("backend")->find("isa")->as_string() == "scalar");
  CHECK(facts->find("system")->find("release") != nullptr);
  CHECK_FALSE(facts->find("cpu")->find("allowed")->as_string().empty());
}

TEST_CASE("a GPU is written down with all that its driver says, in ASCII") {
  BackendInfo on_gpu{"cuda", "sm_90", 1, {}, 0x1f80};
  on_gpu.device =
      DeviceInfo{3, "NVIDIA \xff", "GPU-1", 9, 0, 150755672064, 132, true, "13.0", "13.1", {}};
  on_gpu.device->facts = {
      {"driver_version", "580.95.05"}, {"vbios", "\xff\n"}, {"power_limit_mw", 700000}};
  on_gpu.graph = true;
  const Json stack = collect_fingerprint(on_gpu);
  const Json* described = stack.find("informational")->find("backend");
  CHECK(described->find("device")->canonical() ==
        R"({"compute_capability":"9.0","cuda_driver":"13.0","cuda_runtime":"13.1",)"
        R"("driver_version":"580.95.05","ecc":"on","index":3,"memory_bytes":150755672064,)"
        R"("multiprocessors":132,"name":"NVIDIA \\xff","power_limit_mw":700000,"uuid":"GPU-1",)"
        R"("vbios":"\\xff\\x0a"})");
  CHECK(described->find("graph")->as_string() == "on");
}

TEST_CASE("the canonical form is the same each time and survives a value that is not UTF-8") {
  setenv("CUDA_TEST_BYTES", "\xff\n", 1);
  const std::string first = collect_fingerprint(backend()).canonical();
  CHECK(collect_fingerprint(backend()).canonical() == first);
  CHECK(first.find(R"("CUDA_TEST_BYTES":{"b64":"/wo="})") != std::string::npos);
  unsetenv("CUDA_TEST_BYTES");
  CHECK(Json::parse(first, "fingerprint").canonical() == first);
  CHECK(collect_fingerprint(backend()).canonical() != first);
}

}  // namespace
}  // namespace detrun
