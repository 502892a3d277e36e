// NVIDIA's cuBLASLt where the machine has it, with or without a GPU: it opens, has every function,
// tells its version, and takes our descriptors. Without a GPU it does not start, which has to be
// said clearly. Where it is missing the refusal is checked, and one line says that nothing else
// was.
#include <doctest/doctest.h>

#include <cstdio>
#include <optional>
#include <string>

#include "backend/cuda/cublas_lt_problem.h"
#include "detrun/error.h"

namespace {

using namespace detrun;

std::optional<CublasLtCalls> calls_here() {
  try {
    return load_cublas_lt();
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kUsage);
    CHECK(std::string(error.what()).find("libcublasLt.so.") != std::string::npos);
    std::printf("cuBLASLt is not here, its functions are not tested: %s\n", error.what());
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("the library opens, is of the header's major version and has every function") {
  const auto calls = calls_here();
  if (!calls) return;
  CHECK(calls->version() / 10000 == CUBLAS_VER_MAJOR);
  CHECK(calls->opened->name().find("libcublasLt.so.") != std::string::npos);
  CHECK(std::string(calls->status_text(CUBLAS_STATUS_SUCCESS)) != "");
}

TEST_CASE("the library takes the descriptors of products and the preferences of the heuristic") {
  const auto calls = calls_here();
  if (!calls) return;
  for (const QType type : {QType::kF32, QType::kF16, QType::kBF16}) {
    for (const auto& [n, k] : {std::pair{4096U, 4096U}, {1024U, 11008U}, {37U, 45U}}) {
      const LtProblem problem = make_lt_problem(*calls, {type, 512, n, k});
      CHECK(problem.operation != nullptr);
      CHECK(problem.y != nullptr);
    }
    CHECK(make_lt_preference(*calls, type, std::uint64_t{32} << 20U) != nullptr);
  }
}

TEST_CASE("a status of the library becomes an error with its words") {
  const auto calls = calls_here();
  if (!calls) return;
  expect_lt(*calls, CUBLAS_STATUS_SUCCESS, "a call");
  std::string message;
  try {
    expect_lt(*calls, CUBLAS_STATUS_NOT_SUPPORTED, "a call");
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kInternal);
    message = error.what();
  }
  CHECK(message.find("cuBLASLt failed: a call: ") == 0);
}

TEST_CASE("the library starts on a GPU, and without one says what it needs") {
  if (!calls_here()) return;
  try {
    CHECK(open_cublas_lt()->version().find('.') != std::string::npos);
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kInternal);
    CHECK(std::string(error.what()).find(" does not start: ") != std::string::npos);
    CHECK(error.with_hint().find("NVIDIA GPU") != std::string::npos);
    CHECK(error.with_hint().find("--numerics portable") != std::string::npos);
  }
}
