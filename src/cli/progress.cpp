// Steady clock only: the wall clock may be stepped while a bar runs.
#include "cli/progress.h"

#include <algorithm>

namespace detrun::cli {
namespace {

constexpr std::uint64_t kBarCells = 24;

}  // namespace

std::string progress_line(std::string_view what, std::uint64_t done, std::uint64_t total,
                          std::string_view unit) {
  std::string line = shortened(what, 30);
  const std::string of = total == 0 ? std::string() : "/" + std::to_string(total);
  if (total != 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarCells));
    const std::string percent = std::to_string(static_cast<int>(share * 100));
    line += "  [" + std::string(filled, '#') + std::string(kBarCells - filled, ' ') + "] ";
    line += std::string(3 - std::min<std::size_t>(3, percent.size()), ' ') + percent + "%";
  }
  return line + "  " + std::to_string(done) + of + " " + shown(unit);
}

Progress::Progress(Console& console, bool enabled)
    : console_(console),
      enabled_(enabled && console.err_is_terminal()),
      next_(std::chrono::steady_clock::now() + std::chrono::milliseconds(250)) {}

void Progress::update(std::string_view what, std::uint64_t done, std::uint64_t total,
                      std::string_view unit) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  drawn_ = true;
  console_.note("\r" + progress_line(what, done, total, unit) + "\x1b[K");
}

void Progress::wipe() {
  if (drawn_) console_.note("\r\x1b[K");
  drawn_ = false;
}

}  // namespace detrun::cli
