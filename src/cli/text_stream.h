// The generated text on its way to standard output: raw into a pipe or a file, escaped on a
// terminal, where half a UTF-8 character waits for its other half.
#pragma once

#include <string>
#include <string_view>

#include "cli/output.h"

namespace detrun::cli {

/// What a terminal may be shown of a growing byte string. Pure.
class TerminalText {
 public:
  /// Escaped text that became showable by `bytes`; newlines and tabs stay.
  std::string add(std::string_view bytes);
  /// What was held back: the first bytes of a character that never got its end, escaped.
  std::string finish();

 private:
  std::string held_;  // at most 3 bytes
};

/// Ends the line on a terminal when destroyed, so that an error message starts on its own line.
class TextStream {
 public:
  explicit TextStream(Console& console) : console_(console) {}
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  /// False: the reader closed its pipe. Error kInternal: cannot be written.
  bool add(std::string_view bytes);
  /// Flushes what was held back and, on a terminal, ends the line.
  void finish();

 private:
  std::string take_rest();

  Console& console_;
  TerminalText terminal_;
  bool mid_line_ = false;  // something was shown and it did not end in a newline
};

}  // namespace detrun::cli
