// Writes by write(2) without a buffer of its own: a step's text is out when `write` returns, and a
// full disk is seen where it happens.
#include "cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "detrun/text.h"

namespace detrun::cli {
namespace {

// A pipe that polls as writable has room for this much: such a write does not block.
constexpr std::size_t kBlockBytes = 4096;
constexpr int kWaitMs = 100;

// 0 when everything was written, otherwise errno; EPIPE also when `stop` became true while nobody
// read. Waiting happens in poll, so that neither a full pipe nor a descriptor that somebody set to
// non-blocking keeps Ctrl-C from ending the run.
int write_all(int fd, std::string_view bytes, const std::atomic<bool>* stop = nullptr) noexcept {
  while (!bytes.empty()) {
    pollfd waiter{fd, POLLOUT, 0};
    if (stop != nullptr && ::poll(&waiter, 1, kWaitMs) < 1) {  // time is up, or a signal came
      if (*stop) return EPIPE;
      continue;
    }
    const ssize_t n = ::write(fd, bytes.data(),
                              stop == nullptr ? bytes.size() : std::min(bytes.size(), kBlockBytes));
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      ::poll(&waiter, 1, kWaitMs);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

std::string paint(bool on, Color color, std::string_view text) {
  if (!on || color == Color::kPlain) return std::string(text);
  constexpr std::array<std::string_view, 5> kCodes{"0", "31", "32", "33", "1"};
  std::string out = "\x1b[";
  out += kCodes[static_cast<std::size_t>(color)];
  out += "m";
  out += text;
  return out + "\x1b[0m";
}

// Characters, not bytes: every byte that does not continue a character counts.
std::size_t n_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

Console::Console() : out_is_terminal_(::isatty(1) == 1), err_is_terminal_(::isatty(2) == 1) {
  set_color("auto");
}

void Console::set_color(std::string_view when) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool wanted = (no_color == nullptr || *no_color == '\0') &&
                      !(term != nullptr && std::strcmp(term, "dumb") == 0);
  out_color_ = when == "always" || (when == "auto" && wanted && out_is_terminal_);
  err_color_ = when == "always" || (when == "auto" && wanted && err_is_terminal_);
}

bool Console::write(std::string_view bytes) {
  if (out_closed_) return false;
  const int error = write_all(1, bytes, stop_);
  if (error == 0) return true;
  out_closed_ = true;
  if (error == EPIPE) return false;
  throw_internal(std::string("cannot write to standard output: ") + std::strerror(error));
}

void Console::write_quietly(std::string_view bytes) noexcept {
  if (!out_closed_) write_all(1, bytes);
}

void Console::note(std::string_view bytes) noexcept { write_all(2, bytes); }

void Console::report(std::string_view message, std::string_view hint) noexcept {
  std::string text = "detrun: " + paint_err(Color::kRed, "error:") + " ";
  text += escape_for_terminal(message) + "\n";
  if (!hint.empty()) text += "  hint: " + escape_for_terminal(hint) + "\n";
  note(text);
}

std::string Console::paint_out(Color color, std::string_view text) const {
  return paint(out_color_, color, text);
}
std::string Console::paint_err(Color color, std::string_view text) const {
  return paint(err_color_, color, text);
}

Color verdict_color(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return Color::kGreen;
    case Verdict::kInconclusive:
      return Color::kYellow;
    case Verdict::kDiverged:
    case Verdict::kTampered:
    case Verdict::kInternal:
      return Color::kRed;
  }
  return Color::kPlain;
}

std::string run_status(const RunRecord& run) {
  if (!run.sealed) return run.live ? "running" : "interrupted";
  return field_text(run.fields, field::status).value_or("-");
}

std::string shown(std::string_view bytes) { return escape_for_terminal(bytes); }

std::string shortened(std::string_view bytes, std::size_t width) {
  // Four bytes a character at most; one more character tells whether anything is cut.
  std::string head(bytes.substr(0, 4 * (width + 1)));
  if (head.size() < bytes.size()) head.resize(complete_utf8_prefix(head));
  std::replace(head.begin(), head.end(), '\n', ' ');
  std::replace(head.begin(), head.end(), '\t', ' ');
  std::string text = escape_for_terminal(head);
  if (n_characters(text) <= width && head.size() == bytes.size()) return text;
  std::size_t end = 0;
  for (std::size_t n = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && ++n == width) break;
  }
  text.resize(end);
  return text + "\u2026";
}

std::string in_quotes(std::string_view bytes) { return '"' + shown(bytes) + '"'; }

std::string shell_word(std::string_view bytes) {
  constexpr std::string_view kPlainChars =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@%+,";
  if (!bytes.empty() && bytes.find_first_not_of(kPlainChars) == std::string_view::npos) {
    return std::string(bytes);
  }
  std::string out = "'";
  for (const char c : bytes) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return shown(out + "'");
}

std::string counted(std::uint64_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

std::string fixed(double value, int decimals) {
  std::array<char, 400> buffer;  // the longest double has 309 digits before the point
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, decimals);
  return std::string(buffer.data(), end.ptr);
}

void Table::add(std::vector<std::string> cells) {
  DETRUN_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = n_characters(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, n_characters(row[c]));
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](auto&& cell_of) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& cell = cell_of(c);
      const std::size_t padding = widths[c] - n_characters(cell);
      if (columns_[c].right) out.append(padding, ' ');
      out += cell;
      if (c + 1 == columns_.size()) break;
      if (!columns_[c].right) out.append(padding, ' ');
      out += "  ";
    }
    out += '\n';
  };
  add_line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) {
    add_line([&](std::size_t c) -> const std::string& { return row[c]; });
  }
  return out;
}

}  // namespace detrun::cli
