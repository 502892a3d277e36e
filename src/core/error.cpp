// The two ways to end a command, and the end of a programming error.
#include "detrun/error.h"

#include <cstdio>
#include <cstdlib>

namespace detrun {

void throw_usage(const std::string& message, const std::string& hint) {
  throw Error(ExitCode::kUsage, message, hint);
}

void throw_internal(const std::string& message, const std::string& hint) {
  throw Error(ExitCode::kInternal, message, hint);
}

void check_failed(const char* file, int line, const char* condition) {
  // The process state is not what its author believed: say where and stop before it is written.
  std::fprintf(stderr, "detrun: internal error: %s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace detrun
