// A line of fixtures/golden/operators.txt: an operator, its parameters, the hash of its result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace golden {

struct Case {
  std::string op;
  std::vector<std::pair<std::string, std::string>> keys;
  std::string hash;

  /// Error kUsage naming the line when the key is absent or no number.
  const std::string& text(std::string_view key) const;
  std::uint64_t integer(std::string_view key) const;
  float fraction(std::string_view key) const;
  /// As in the file, without the hash.
  std::string line() const;
};

/// False for an empty line or a comment. Error kUsage for anything else that is no case.
bool parse_case(std::string_view line, Case* out);

/// Every case of the file, without hashes, in the file's order: at least 100 an operator.
std::vector<Case> all_cases();

}  // namespace golden
