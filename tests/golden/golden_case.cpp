// Parsing and printing of golden lines.
#include "golden_case.h"

#include <charconv>

#include "detrun/error.h"

namespace golden {

const std::string& Case::text(std::string_view key) const {
  for (const auto& [name, value] : keys) {
    if (name == key) return value;
  }
  detrun::throw_usage("golden line '" + line() + "': no key " + std::string(key));
}

namespace {

template <class Number>
Number number(const Case& c, std::string_view key) {
  const std::string& value = c.text(key);
  Number parsed{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc() || end != value.data() + value.size()) {
    detrun::throw_usage("golden line '" + c.line() + "': " + value + " is no number");
  }
  return parsed;
}

}  // namespace

std::uint64_t Case::integer(std::string_view key) const {
  return number<std::uint64_t>(*this, key);
}

float Case::fraction(std::string_view key) const { return number<float>(*this, key); }

std::string Case::line() const {
  std::string text = op;
  for (const auto& [key, value] : keys) text.append(" ").append(key).append("=").append(value);
  return text;
}

bool parse_case(std::string_view line, Case* out) {
  if (line.empty() || line.front() == '#') return false;
  *out = {};
  while (!line.empty()) {
    const std::size_t space = line.find(' ');
    const std::string_view word = line.substr(0, space);
    line = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    const std::size_t equals = word.find('=');
    if (out->op.empty()) {
      out->op = word;
    } else if (equals != std::string_view::npos) {
      out->keys.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (out->hash.empty() && word.size() == 32) {
      out->hash = word;
    } else {
      detrun::throw_usage("golden line: '" + std::string(word) + "' is no key and no hash");
    }
  }
  return true;
}

}  // namespace golden
