// The table of pre-tokenizers, and the split. Patterns are those of each model's tokenizer.json
// (GPT-2: of OpenAI's encoder.py); "default" is what llama.cpp does when a file names none.
#include "tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "detrun/error.h"
#include "tokenizer/utf8.h"

namespace detrun {
namespace {

// Adjacent string literals are one pattern; the macro-free way to share one is a constant.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|'\p{LongS}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|'\p{LongS}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?\p{Upper}*\p{Lower}+(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|'\p{LongS})?|)"
    R"([^\r\n\p{L}\p{N}]?\p{Upper}+\p{Lower}*(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|'\p{LongS})?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kNewline = R"([\r\n])";
constexpr std::string_view kOneNumber = R"(\p{N})";
// \s+$ of the original; a run that does not reach the end is not tried from each of its spaces.
constexpr std::string_view kTrailingSpace = R"((?<!\s)\s++\z)";

constexpr std::array<PreTokenizerRow, 13> kRows = {{
    {.name = "default", .patterns = {R"([\p{P}$+<=>^~|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    {.name = "gpt-2", .patterns = {kGpt2}},
    {.name = "llama-bpe", .patterns = {kLlama3}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .patterns = {kLlama3}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama3", .patterns = {kLlama3}, .ignore_merges = true, .adds_bos = true},
    {.name = "qwen2", .patterns = {kQwen2}, .nfc = true},
    {.name = "smollm", .patterns = {kOneNumber, kGpt2}},
    {.name = "starcoder", .patterns = {kOneNumber, kGpt2}},
    {.name = "refact", .patterns = {kOneNumber, kGpt2}},
    {.name = "deepseek-llm",
     .patterns = {kNewline, R"(\s?\p{DeepseekLetters}+)", R"(\s?\p{DeepseekMarks}+)",
                  kTrailingSpace, R"(\p{DeepseekCjk}+)", kOneNumber}},
    {.name = "deepseek-coder",
     .patterns = {kNewline, R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"(\p{DeepseekCjk}+)", kOneNumber}},
    {.name = "deepseek-v3", .patterns = {R"(\p{N}{1,3})", R"(\p{Deepseek3Cjk}+)", kDeepseek3}},
    {.name = "gpt-4o", .patterns = {kGpt4o}},
}};

std::string hex_byte(unsigned value) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'\\', 'x', kDigits[value >> 4U], kDigits[value & 15U]};
}

// Splits each piece of `cuts` (ends of consecutive pieces) at the matches of one pattern.
std::vector<std::size_t> split_pieces(const Regex& regex, std::string_view classes,
                                      const std::vector<std::size_t>& cuts) {
  std::vector<std::size_t> out;
  out.reserve(cuts.size());
  std::size_t begin = 0;
  for (const std::size_t end : cuts) {
    const std::string_view piece = classes.substr(begin, end - begin);
    std::size_t at = 0;
    while (at < piece.size()) {
      const auto match = regex.search(piece, at);
      if (!match) break;
      DETRUN_CHECK(match->end > match->begin);  // a pattern of the table that matches nothing
      if (match->begin > at) out.push_back(begin + match->begin);
      out.push_back(begin + match->end);
      at = match->end;
    }
    if (at < piece.size()) out.push_back(end);
    begin = end;
  }
  return out;
}

}  // namespace

const PreTokenizerRow* find_pre_tokenizer(std::string_view name) {
  const auto* found = std::find_if(kRows.begin(), kRows.end(),
                                   [&](const PreTokenizerRow& row) { return row.name == name; });
  return found == kRows.end() ? nullptr : found;
}

std::string pre_tokenizer_names() {
  std::string names;
  for (const PreTokenizerRow& row : kRows) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

PreTokenizer::PreTokenizer(const PreTokenizerRow& row) {
  for (const std::string_view pattern : row.patterns) {
    if (!pattern.empty()) regexes_.emplace_back(compile_sets(pattern));
  }
  for (int category = 0; category < kCategoryCount; ++category) {
    unsigned byte = 0x80;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      byte |= (sets_[i]->categories >> static_cast<unsigned>(category) & 1U) << i;
    }
    byte_of_category_[static_cast<std::size_t>(category)] = static_cast<std::uint8_t>(byte);
  }
}

// Replaces \p{NAME}, \s and \S by classes of bytes; everything else is handed to PCRE2 as it is.
std::string PreTokenizer::compile_sets(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\') {
      in_class = c == '[' || (in_class && c != ']');
      out += c;
      continue;
    }
    const char escaped = pattern.at(++i);
    std::string_view name;
    if (escaped == 's' || escaped == 'S') name = "s";
    if (escaped == 'p') {
      const std::size_t close = pattern.find('}', i);
      name = pattern.substr(i + 2, close - i - 2);
      i = close;
    }
    if (name.empty()) {
      out += {c, escaped};
      continue;
    }
    const CharSet* set = find_char_set(name);
    DETRUN_CHECK(set != nullptr && !(in_class && escaped == 'S'));
    const std::string members = byte_class(*set);
    out += in_class ? members : (escaped == 'S' ? "[^" : "[") + members + "]";
  }
  return out;
}

// The bytes of a set, as the inside of a class; the set gets its bit when it is met first.
std::string PreTokenizer::byte_class(const CharSet& set) {
  auto found = std::find(sets_.begin(), sets_.end(), &set);
  if (found == sets_.end()) {
    DETRUN_CHECK(sets_.size() < kSetsMax);
    found = sets_.insert(sets_.end(), &set);
  }
  const auto index = static_cast<unsigned>(found - sets_.begin());
  std::string out;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool member = byte < 0x80 ? set.has(byte) : (byte >> index & 1U) != 0;
    if (member) out += hex_byte(byte);
  }
  return out;
}

std::string PreTokenizer::classify(std::string_view text) const {
  std::string classes;
  classes.reserve(text.size());
  for (std::size_t pos = 0; pos < text.size();) {
    const Utf8Char c = utf8_at(text, pos);
    pos += c.bytes;
    unsigned byte = c.code;
    if (!c.valid) {
      byte = 0x80;  // in no set
    } else if (c.code >= 0x80) {
      byte = byte_of_category_[static_cast<std::size_t>(category_of(c.code))];
      for (std::size_t i = 0; i < sets_.size(); ++i) {
        byte |= static_cast<unsigned>(sets_[i]->has_in_ranges(c.code)) << i;
      }
    }
    classes += static_cast<char>(byte);
  }
  return classes;
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  if (text.empty()) return {};
  const std::string classes = classify(text);
  std::vector<std::size_t> cuts = {classes.size()};
  for (const Regex& regex : regexes_) cuts = split_pieces(regex, classes, cuts);

  // From characters back to bytes.
  std::vector<std::string_view> words;
  words.reserve(cuts.size());
  std::size_t chars = 0;
  std::size_t pos = 0;
  for (const std::size_t cut : cuts) {
    const std::size_t begin = pos;
    for (; chars < cut; ++chars) pos += utf8_at(text, pos).bytes;
    words.push_back(text.substr(begin, pos - begin));
  }
  return words;
}

}  // namespace detrun
