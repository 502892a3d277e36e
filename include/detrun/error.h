// The one exception type, and the check for programmer error.
//
// Error ends the command and is caught only in main, which prints it and exits with its code.
// Expected outcomes (differs, not found, unsupported in a list) are values, never Errors.
// A message says what, where, expected, found; the hint says the next command.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace detrun {

/// Exit codes of every command, in the order of the manual. Never renumbered.
enum class ExitCode : int {
  kOk = 0,            ///< REPRODUCED, ok
  kDiverged = 1,      ///< DIVERGED
  kUsage = 2,         ///< bad option, missing, unreadable, damaged or unsupported input
  kInconclusive = 3,  ///< INCONCLUSIVE
  kTampered = 4,      ///< TAMPERED, our own ledger damaged
  kInternal = 5,      ///< device failure, out of memory, disk full, I/O error, bug
  kCancelled = 130,   ///< ended by Ctrl-C
};

/// What ends the command. `kind` is the exit code, `message` one sentence, `hint` may be empty.
class Error : public std::runtime_error {
 public:
  Error(ExitCode kind, const std::string& message, std::string hint = {})
      : std::runtime_error(message), kind_(kind), hint_(std::move(hint)) {}
  ExitCode kind() const { return kind_; }
  const std::string& hint() const { return hint_; }
  /// Message and hint as one text, for places that show no hints of their own.
  std::string with_hint() const { return hint_.empty() ? what() : what() + ("; " + hint_); }

 private:
  ExitCode kind_;
  std::string hint_;
};

/// Bad option or bad input file: exit 2.
[[noreturn]] void throw_usage(const std::string& message, const std::string& hint = {});
/// Device failure, I/O error, bug: exit 5.
[[noreturn]] void throw_internal(const std::string& message, const std::string& hint = {});

/// Called by DETRUN_CHECK: prints file, line and condition to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace detrun

/// For programmer error only: on in release, never reachable from a file or a flag.
#define DETRUN_CHECK(condition)                                               \
  do {                                                                        \
    if (!(condition)) ::detrun::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
