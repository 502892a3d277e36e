// The log of the smoke test: lines on stderr. The program has to run where no package is installed,
// so it does without the logging library that src/core/log.cpp uses.
#include <cstdio>

#include "detrun/log.h"

namespace detrun {

void log_setup(const LogOptions&) {}

void log_debug(std::string_view) {}
void log_info(std::string_view) {}
void log_warning(std::string_view message) {
  std::fprintf(stderr, "warning: %.*s\n", static_cast<int>(message.size()), message.data());
}
void log_error(std::string_view message) { log_warning(message); }

}  // namespace detrun
