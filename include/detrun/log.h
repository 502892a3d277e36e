// Logging to stderr (and a file), behind which spdlog hides. Results never go here.
#pragma once

#include <string>
#include <string_view>

namespace detrun {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

struct LogOptions {
  LogLevel level = LogLevel::kWarning;  ///< -v: kInfo, -vv: kDebug, -q: kError
  bool color = false;
  std::string file;  ///< empty: none; opened for appending, created 0600; failure is exit 2
};

/// Called once by main before anything logs. Messages before it go to stderr at kWarning.
void log_setup(const LogOptions& options);

/// One line each; control characters and what is not UTF-8 are escaped here.
void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);

}  // namespace detrun
