// Choosing an instruction set: by name, by environment, automatically; and refusing.
#include "backend/cpu_select.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "detrun/backend.h"
#include "detrun/error.h"

namespace {

using namespace detrun;

/// Sets DETRUN_CPU_ISA for the scope.
class IsaVariable {
 public:
  explicit IsaVariable(const char* value) {
    const char* before = std::getenv("DETRUN_CPU_ISA");
    if (before != nullptr) before_ = before;
    had_value_ = before != nullptr;
    if (value != nullptr) {
      setenv("DETRUN_CPU_ISA", value, 1);
    } else {
      unsetenv("DETRUN_CPU_ISA");
    }
  }
  ~IsaVariable() {
    if (had_value_) {
      setenv("DETRUN_CPU_ISA", before_.c_str(), 1);
    } else {
      unsetenv("DETRUN_CPU_ISA");
    }
  }

 private:
  std::string before_;
  bool had_value_ = false;
};

std::string refusal(const char* name) {
  try {
    select_cpu_ops(name);
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kUsage);
    return std::string(error.what()) + " / " + error.hint();
  }
  FAIL("expected an Error");
  return {};
}

TEST_CASE("the scalar reference is always there and comes last") {
  const auto names = available_cpu_isas();
  REQUIRE(!names.empty());
  CHECK(names.back() == "scalar");
  CHECK(std::count(names.begin(), names.end(), "scalar") == 1);
}

TEST_CASE("every available instruction set can be asked for by name and by the environment") {
  const IsaVariable none(nullptr);
  for (const std::string& name : available_cpu_isas()) {
    CHECK(select_cpu_ops(name).name == name);
    const IsaVariable forced(name.c_str());
    CHECK(select_cpu_ops("").name == name);
    CHECK(make_cpu_backend({1, ""})->info().isa == name);
    CHECK(std::string(select_cpu_ops("scalar").name) == "scalar");  // a request beats it
  }
}

TEST_CASE("without a wish the best is chosen; an empty variable is no wish") {
  const IsaVariable empty("");
  CHECK(select_cpu_ops("").name == available_cpu_isas().front());
}

void broken_add(float* x, const float* /*y*/, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) x[i] = 1.0f;
}

kernels::CpuOps broken_table() {
  kernels::CpuOps ops = kernels::scalar::kOps;
  ops.name = "broken";
  ops.add = broken_add;
  return ops;
}

TEST_CASE("an instruction set that fails its self-test is passed over, the next one is taken") {
  const kernels::CpuOps broken = broken_table();
  const kernels::CpuOps* list[] = {&broken, &kernels::scalar::kOps};
  CHECK(&first_sound_ops(list) == &kernels::scalar::kOps);
}

TEST_CASE("an instruction set that fails its self-test is refused by name, with the operator") {
  const kernels::CpuOps broken = broken_table();
  const kernels::CpuOps* list[] = {&broken};
  for (const bool by_name : {true, false}) {
    try {
      by_name ? require_sound(broken) : first_sound_ops(list);
      FAIL("expected an Error");
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kInternal);
      const std::string text = error.what();
      CHECK(text.find(by_name ? "known-answer test of add" : "no instruction set passes") !=
            std::string::npos);
    }
  }
  CHECK(&require_sound(kernels::scalar::kOps) == &kernels::scalar::kOps);
}

TEST_CASE("an unknown instruction set is refused with the known ones named") {
  const IsaVariable none(nullptr);
  const std::string text = refusal("avx9000");
  CHECK(text.find("'avx9000'") != std::string::npos);
  CHECK(text.find("scalar") != std::string::npos);
  const IsaVariable forced("AVX2 ");
  CHECK(refusal("").find("DETRUN_CPU_ISA") != std::string::npos);
}

}  // namespace
