// The flag of Ctrl-C and SIGTERM, each case in a process of its own because signals belong to the
// process.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/interrupt.h"

namespace detrun::cli {
namespace {

// The wait status of a child that runs `body` and exits with what it returns.
template <typename Body>
int status_of_child(Body body) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST_CASE("the first interrupt sets the flag") {
  const int status = status_of_child([] {
    const Interrupt interrupt;
    if (interrupt.flag()) return 1;
    ::raise(SIGINT);
    return interrupt.flag() ? 0 : 2;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the second interrupt kills") {
  const int status = status_of_child([] {
    const Interrupt interrupt;
    ::raise(SIGINT);
    ::raise(SIGINT);
    return 3;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("SIGTERM sets the same flag, and a second signal of either kind kills") {
  const int first = status_of_child([] {
    const Interrupt interrupt;
    ::raise(SIGTERM);
    return interrupt.flag() ? 0 : 2;
  });
  CHECK(WIFEXITED(first));
  CHECK(WEXITSTATUS(first) == 0);
  const int second = status_of_child([] {
    const Interrupt interrupt;
    ::raise(SIGINT);
    ::raise(SIGTERM);
    return 3;
  });
  CHECK(WIFSIGNALED(second));
  CHECK(WTERMSIG(second) == SIGTERM);
}

TEST_CASE("an interrupt that was ignored stays ignored") {
  const int status = status_of_child([] {
    ::signal(SIGINT, SIG_IGN);
    const Interrupt interrupt;
    ::raise(SIGINT);
    return interrupt.flag() ? 1 : 0;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("afterwards the interrupt kills as before") {
  const int status = status_of_child([] {
    { const Interrupt interrupt; }
    ::raise(SIGINT);
    return 3;
  });
  CHECK(WIFSIGNALED(status));
}

}  // namespace
}  // namespace detrun::cli
