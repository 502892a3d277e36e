// spdlog behind five functions. One process-wide logger, because spdlog's own registry is one.
#include "detrun/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::warn;
}

spdlog::sink_ptr open_file_sink(const std::string& path) {
  // Created here with mode 0600: spdlog would leave the mode to the umask.
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) throw_usage("cannot open the log file '" + path + "' for writing");
  std::array<char, 16> start{};
  const ssize_t got = ::pread(fd, start.data(), start.size(), 0);
  ::close(fd);
  // A slip of the hand must not append log lines to the evidence or to a model.
  const std::string_view first(start.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (first.starts_with("SQLite format 3") || first.starts_with("GGUF"))
    throw_usage("the log file '" + path + "' is a ledger or a model, which a log would destroy");
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } catch (const spdlog::spdlog_ex& error) {
    throw_usage("cannot open the log file '" + path + "': " + error.what());
  }
}

/// What the door promises for messages before log_setup: warnings and errors only.
const bool kQuietBeforeSetup = [] {
  spdlog::set_level(spdlog::level::warn);
  return true;
}();

}  // namespace

void log_setup(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks;
  auto console = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
      options.color ? spdlog::color_mode::always : spdlog::color_mode::never);
  console->set_pattern("detrun: %^%l%$: %v");
  sinks.push_back(console);
  if (!options.file.empty()) {
    sinks.push_back(open_file_sink(options.file));
    sinks.back()->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc));
  }
  auto logger = std::make_shared<spdlog::logger>("detrun", sinks.begin(), sinks.end());
  logger->set_level(to_spdlog(options.level));
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

// The text is an argument, never the format: it may hold braces from a file. And it may hold what
// drives a terminal: escaped here once, so that no caller can forget.
void log_debug(std::string_view message) { spdlog::debug("{}", escape_for_terminal(message)); }
void log_info(std::string_view message) { spdlog::info("{}", escape_for_terminal(message)); }
void log_warning(std::string_view message) { spdlog::warn("{}", escape_for_terminal(message)); }
void log_error(std::string_view message) { spdlog::error("{}", escape_for_terminal(message)); }

}  // namespace detrun
