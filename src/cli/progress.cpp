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

std::string time_left(double elapsed_s, std::uint64_t done, std::uint64_t total) {
  constexpr double kEnough = 2;  // seconds
  if (done == 0 || done >= total || elapsed_s < kEnough) return {};
  const double left = elapsed_s / static_cast<double>(done) * static_cast<double>(total - done);
  constexpr double kLongest = 1000.0 * 3600;
  if (left >= kLongest) return {};
  const auto seconds = static_cast<std::uint64_t>(left + 0.5);
  const auto two = [](std::uint64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const std::string hours = seconds >= 3600 ? std::to_string(seconds / 3600) + ":" : std::string();
  const std::uint64_t minutes = seconds / 60 % 60;
  return ", " + hours + (hours.empty() ? std::to_string(minutes) : two(minutes)) + ":" +
         two(seconds % 60) + " left";
}

Progress::Progress(Console& console, bool enabled)
    : console_(console),
      enabled_(enabled && console.err_is_terminal()),
      next_(std::chrono::steady_clock::now() + std::chrono::milliseconds(250)) {}

void Progress::update(std::string_view what, std::uint64_t done, std::uint64_t total,
                      std::string_view unit) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (what != what_ || done < done_at_first_) {
    what_ = what;
    began_ = now;
    done_at_first_ = done;
  }
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  drawn_ = true;
  const double elapsed_s = std::chrono::duration<double>(now - began_).count();
  const std::uint64_t before = std::min(done_at_first_, total);
  console_.note("\r" + progress_line(what, done, total, unit) +
                time_left(elapsed_s, done - before, total - before) + "\x1b[K");
}

void Progress::wipe() {
  if (drawn_) console_.note("\r\x1b[K");
  drawn_ = false;
}

}  // namespace detrun::cli
