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

TEST_CASE("an unknown instruction set is refused with the known ones named") {
  const IsaVariable none(nullptr);
  const std::string text = refusal("avx9000");
  CHECK(text.find("'avx9000'") != std::string::npos);
  CHECK(text.find("scalar") != std::string::npos);
  const IsaVariable forced("AVX2 ");
  CHECK(refusal("").find("DETRUN_CPU_ISA") != std::string::npos);
}

}  // namespace
