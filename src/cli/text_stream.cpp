// Holds back by complete_utf8_prefix, which never keeps more than three bytes.
#include "cli/text_stream.h"

#include "detrun/text.h"

namespace detrun::cli {

std::string TerminalText::add(std::string_view bytes) {
  held_ += bytes;
  const std::size_t n = complete_utf8_prefix(held_);
  std::string out = escape_for_terminal(std::string_view(held_).substr(0, n), true);
  held_.erase(0, n);
  return out;
}

std::string TerminalText::finish() {
  std::string out = escape_for_terminal(held_, true);
  held_.clear();
  return out;
}

TextStream::~TextStream() { console_.write_quietly(take_rest()); }

bool TextStream::add(std::string_view bytes) {
  if (!console_.out_is_terminal()) return console_.write(bytes);
  const std::string text = terminal_.add(bytes);
  if (text.empty()) return true;
  mid_line_ = text.back() != '\n';
  return console_.write(text);
}

void TextStream::finish() { console_.write(take_rest()); }

std::string TextStream::take_rest() {
  std::string text = terminal_.finish();
  if (mid_line_ || !text.empty()) text += '\n';
  mid_line_ = false;
  return text;
}

}  // namespace detrun::cli
