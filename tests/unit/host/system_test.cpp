// Facts about the machine, parsed out of other machines' files.
#include "host/system.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "detrun/host.h"

namespace detrun {
namespace {

constexpr const char* kX86 =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n"
    "model name\t: Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz\nstepping\t: 6\n"
    "microcode\t: 0xffffffff\nflags\t\t: fpu vme sse2 fma avx f16c avx2 avx512f avx512_vnni\n\n"
    "processor\t: 1\nvendor_id\t: Another\n";

TEST_CASE("a CPU is described by its first processor and the flags that choose kernels") {
  const Json cpu = describe_cpu(kX86);
  CHECK(cpu.find("model")->as_string() == "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz");
  CHECK(cpu.find("vendor")->as_string() == "GenuineIntel");
  CHECK(cpu.find("model_number")->as_string() == "106");
  CHECK(cpu.find("flags")->as_string() == "avx avx2 avx512_vnni avx512f f16c fma");
}

TEST_CASE("an ARM CPU has other names") {
  const Json cpu =
      describe_cpu("processor\t: 0\nFeatures\t: fp asimd asimddp\nCPU implementer\t: 0x41\n");
  CHECK(cpu.find("implementer")->as_string() == "0x41");
  CHECK(cpu.find("flags")->as_string() == "asimd asimddp");
  CHECK(cpu.find("model") == nullptr);
}

TEST_CASE("an empty or odd cpuinfo gives an empty description") {
  CHECK(describe_cpu("").as_object().empty());
  CHECK(describe_cpu("no colon here\n:\n::\n").as_object().empty());
}

TEST_CASE("a CPU name that is not UTF-8 stays printable in canonical form") {
  const Json cpu = describe_cpu("model name\t: \xff\xfe\n");
  CHECK(cpu.canonical() == R"({"model":{"b64":"//4="}})");
}

TEST_CASE("a line of the process status is found by its whole name") {
  CHECK(status_line("Cpus_allowed:\t3\nCpus_allowed_list:\t0-1\n", "Cpus_allowed_list") == "0-1");
  CHECK(status_line("Cpus_allowed:\t3\n", "Cpus_allowed_list").empty());
}

TEST_CASE("a container id is a run of exactly 64 hexadecimal digits") {
  const std::string id(64, 'a');
  CHECK(container_id("0::/docker/" + id + "\n", "") == id);
  CHECK(container_id("1:name=x:/docker-" + id + ".scope", "") == id);
  CHECK(container_id("0::/\n", "").empty());
  CHECK(container_id(id + "b", "").empty());
}

TEST_CASE("in a list of mounts only a container's own folder counts, not an image layer") {
  const std::string layer(64, '1');
  const std::string id(64, '2');
  const std::string mounts = "/var/lib/docker/overlay2/" + layer + "/merged\n" +
                             "/var/lib/docker/containers/" + id + "/hostname\n";
  CHECK(container_id(mounts, "containers/") == id);
  CHECK(container_id("/overlay2/" + layer + "/x", "containers/").empty());
}

#if defined(__x86_64__)
TEST_CASE("the control register says what was switched off before the program set it") {
  const Json found = describe_fp_control(0x9fc0);
  CHECK(found.find("denormals_are_zero")->as_i64() == 1);
  CHECK(found.find("flush_to_zero")->as_i64() == 1);
  CHECK(found.find("rounding")->as_string() == "nearest");
  CHECK(found.find("value")->as_string() == "0x9fc0");
  const Json usual = describe_fp_control(0x1f80);
  CHECK(usual.find("denormals_are_zero")->as_i64() == 0);
  CHECK(usual.find("flush_to_zero")->as_i64() == 0);
  CHECK(describe_fp_control(0x7f80).find("rounding")->as_string() == "zero");
}
#endif

TEST_CASE("variables that matter are recorded, secrets and the rest are not") {
  for (const char* name :
       {"CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS", "LD_PRELOAD",
        "NVIDIA_TF32_OVERRIDE", "DETRUN_CPU_ISA", "GLIBC_TUNABLES", "CUBLASLT_LOG_LEVEL",
        "CUDA_LAUNCH_BLOCKING", "CUBLAS_EMULATION_STRATEGY", "NVIDIA_VISIBLE_DEVICES"}) {
    CAPTURE(name);
    CHECK(environment_matters(name));
  }
  for (const char* name : {"NVIDIA_API_KEY", "HOME", "PATH", "AWS_SECRET_ACCESS_KEY", ""}) {
    CAPTURE(name);
    CHECK_FALSE(environment_matters(name));
  }
}

TEST_CASE("the environment is read from this process") {
  setenv("DETRUN_TEST_VALUE", "a=b", 1);
  CHECK(environment_that_matters().at("DETRUN_TEST_VALUE") == "a=b");
  unsetenv("DETRUN_TEST_VALUE");
  CHECK(environment_that_matters().count("DETRUN_TEST_VALUE") == 0);
}

TEST_CASE("names become ASCII without two of them becoming one") {
  CHECK(ascii_only("/lib/x.so") == "/lib/x.so");
  CHECK(ascii_only("a\xc3\xa9\n") == "a\\xc3\\xa9\\x0a");
  CHECK(ascii_only("\\x0a") != ascii_only("\n"));
}

TEST_CASE("a file that is not there reads as empty") {
  CHECK(read_small_file("/nonexistent/detrun").empty());
  CHECK_FALSE(read_small_file("/proc/self/status").empty());
}

TEST_CASE("the operator has a name") { CHECK_FALSE(operator_name().empty()); }

}  // namespace
}  // namespace detrun
