// Standard output and error of the process, and the tables printed on them. Results go to standard
// output, everything else to standard error. Text that came from a file or a flag is escaped here
// (`shown`), never by hope: only `record` may send raw bytes, and only into a pipe or a file.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/compare.h"
#include "detrun/error.h"
#include "detrun/trace.h"

namespace detrun::cli {

enum class Color { kPlain, kRed, kGreen, kYellow, kBold };

/// The two output streams. One object, made in main and passed down.
class Console {
 public:
  /// Looks at the descriptors and at NO_COLOR and TERM.
  Console();

  /// `when`: auto, always or never; auto is colour on a terminal unless NO_COLOR is set.
  void set_color(std::string_view when);
  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }
  bool err_has_color() const { return err_color_; }

  /// All bytes to standard output, now. False: the reader closed its pipe; what follows is dropped
  /// without a word. Error kInternal when they cannot be written (disk full).
  bool write(std::string_view bytes);
  /// From now on a reader that does not read counts as gone once `stop` is true. Outlives the
  /// console's last write.
  void give_up_when(const std::atomic<bool>& stop) { stop_ = &stop; }
  /// `write` for places that may not throw: failures are dropped.
  void write_quietly(std::string_view bytes) noexcept;
  /// Bytes to standard error; failures are ignored, there is nobody left to tell.
  void note(std::string_view bytes) noexcept;
  /// "detrun: error: MESSAGE" and the hint, escaped, to standard error.
  void report(std::string_view message, std::string_view hint) noexcept;

  /// `text` in a colour when standard output has colour.
  std::string paint_out(Color color, std::string_view text) const;
  std::string paint_err(Color color, std::string_view text) const;

 private:
  bool out_is_terminal_, err_is_terminal_;
  bool out_color_ = false, err_color_ = false;
  bool out_closed_ = false;
  const std::atomic<bool>* stop_ = nullptr;
};

Color verdict_color(Verdict verdict);
/// As recorded when sealed, otherwise "running" or "interrupted".
std::string run_status(const RunRecord& run);

/// Escaped for a terminal, on one line.
std::string shown(std::string_view bytes);
/// `shown`, cut to `width` characters with an ellipsis. Newlines and tabs count as spaces.
std::string shortened(std::string_view bytes, std::size_t width);
/// `shown` between double quotes.
std::string in_quotes(std::string_view bytes);
/// A word as a shell reads it back: as it is when plain, otherwise in single quotes; escaped.
std::string shell_word(std::string_view bytes);
/// "1 run", "2 runs".
std::string counted(std::uint64_t n, std::string_view noun);
/// Fixed decimals, independent of locale.
std::string fixed(double value, int decimals);

/// A table of text: a header line, two spaces between columns, the last column not padded.
class Table {
 public:
  struct Column {
    std::string title;
    bool right = false;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as columns, already escaped.
  void add(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace detrun::cli
