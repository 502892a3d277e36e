// Sets of characters that pre-tokenizer patterns name (\p{L}, \s, lists of one model's own), as
// const data. Not a regex engine: it only says which characters belong.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tokenizer/unicode_classes.h"

namespace detrun {

struct CodeRange {
  std::uint32_t first;
  std::uint32_t last;
};

struct CharSet {
  std::string_view name;              ///< as between the braces of \p{...}; "s" is \s
  std::uint32_t categories;           ///< bit 1 << Category
  std::span<const CodeRange> ranges;  ///< members besides those of the categories, ascending

  bool has_in_ranges(std::uint32_t code) const;
  bool has(std::uint32_t code) const {
    return (categories >> static_cast<unsigned>(category_of(code)) & 1U) != 0 ||
           has_in_ranges(code);
  }
};

/// The set of that name, or null.
const CharSet* find_char_set(std::string_view name);

}  // namespace detrun
