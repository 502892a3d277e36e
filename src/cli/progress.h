// The progress line of long work. Only on a terminal's standard error, never in a pipe or with -q.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/output.h"

namespace detrun::cli {

/// "reading model  [########            ]  41%  12/29 tokens"; without a total only the count.
std::string progress_line(std::string_view what, std::uint64_t done, std::uint64_t total,
                          std::string_view unit);

/// ", 3:20 left" by the pace so far; empty while there is too little to go by.
std::string time_left(double elapsed_s, std::uint64_t done, std::uint64_t total);

/// One line, redrawn at most ten times a second, first after a quarter of a second of work, wiped
/// when destroyed.
class Progress {
 public:
  Progress(Console& console, bool enabled);
  ~Progress() { wipe(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::string_view what, std::uint64_t done, std::uint64_t total,
              std::string_view unit);
  /// Takes the line away before something else is printed.
  void wipe();

 private:
  Console& console_;
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_;
  std::string what_;  ///< the work that the pace is of
  std::chrono::steady_clock::time_point began_;
  std::uint64_t done_at_first_ = 0;
};

}  // namespace detrun::cli
