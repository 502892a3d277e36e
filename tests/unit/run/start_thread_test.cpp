// Threads that the system refuses. A test cannot take the last thread of its user, so the refusal
// is thrown the way the standard library throws it.
#include "run/start_thread.h"

#include <doctest/doctest.h>

#include <future>
#include <string>
#include <system_error>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

TEST_CASE("a thread that starts is handed on") {
  auto answer = start_thread([] { return std::async(std::launch::async, [] { return 42; }); });
  CHECK(answer.get() == 42);
}

TEST_CASE("a thread that cannot be started is an internal error with its reason") {
  const test::Thrown error = test::thrown_by([] {
    start_thread([]() -> int {
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    });
  });
  CHECK(error.kind == ExitCode::kInternal);
  CHECK(error.message.starts_with("cannot start a thread: "));
  CHECK(error.says("unavailable"));
}

}  // namespace
}  // namespace detrun
