// Which general category a code point has, from a table pinned in this repository, so that no
// other version of a library can move the border between two words. Not a Unicode library: only
// the classes that pre-tokenizers ask for.
#pragma once

#include <cstdint>
#include <string_view>

namespace detrun {

/// General category; the sub-categories of M, N, P, S and Z are one class each, C is kOther.
enum class Category : std::uint8_t { kLu, kLl, kLt, kLm, kLo, kM, kN, kP, kS, kZ, kOther };
inline constexpr int kCategoryCount = 11;

/// Version of the table: what Hugging Face tokenizers 0.23 (Oniguruma 6.9.10) uses too.
inline constexpr std::string_view kUnicodeVersion = "16.0.0";

/// Class of a code point up to U+10FFFF; unassigned ones are kOther.
Category category_of(std::uint32_t code);

}  // namespace detrun
