// The table of character sets. The lists of DeepSeek are those of its published tokenizer.json,
// by code point because some of them change under Unicode normalization of a source file.
#include "tokenizer/char_set.h"

#include <algorithm>
#include <array>

namespace detrun {
namespace {

constexpr std::uint32_t bit(Category category) { return 1U << static_cast<unsigned>(category); }

constexpr std::uint32_t kAnyCase = bit(Category::kLm) | bit(Category::kLo) | bit(Category::kM);
constexpr std::uint32_t kLetters = bit(Category::kLu) | bit(Category::kLl) | bit(Category::kLt) |
                                   bit(Category::kLm) | bit(Category::kLo);

// White_Space of Unicode is Z and these. PCRE2's own \s has U+180E besides, which is none.
constexpr std::array<CodeRange, 2> kSpaces = {{{0x09, 0x0D}, {0x85, 0x85}}};

// Under (?i) with Unicode rules U+017F (long s) equals s: the only such letter in a contraction.
constexpr std::array<CodeRange, 1> kLongS = {{{0x17F, 0x17F}}};

constexpr std::array<CodeRange, 87> kDeepseekLetters = {{
    {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},
    {0xD8, 0xF6},       {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},
    {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x376},     {0x377, 0x377},
    {0x37B, 0x37D},     {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},
    {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},
    {0x48A, 0x52F},     {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},
    {0x13F8, 0x13FD},   {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},
    {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},
    {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B},   {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},
    {0x1FB6, 0x1FBC},   {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},
    {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},
    {0x1FF6, 0x1FFC},   {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},
    {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},
    {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},
    {0x213C, 0x213F},   {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2183},
    {0x2184, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},
    {0x2CF2, 0x2CF2},   {0x2CF3, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},
    {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xAB70, 0xABBF},
    {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},
    {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB}, {0x10C80, 0x10CB2},
    {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
}};
constexpr std::array<CodeRange, 6> kDeepseekMarks = {{
    {0x21, 0x2F},
    {0x3A, 0x7E},
    {0x2018, 0x201F},
    {0x3000, 0x3002},
    {0xFF01, 0xFF0F},
    {0xFF1A, 0xFF5E},
}};
constexpr std::array<CodeRange, 2> kDeepseekCjk = {{{0x800, 0x9FA5}, {0xAC00, 0xD7FF}}};
constexpr std::array<CodeRange, 2> kDeepseek3Cjk = {{{0x3040, 0x30FF}, {0x4E00, 0x9FA5}}};

constexpr std::array<CharSet, 13> kSets = {{
    {"s", bit(Category::kZ), kSpaces},
    {"L", kLetters, {}},
    {"N", bit(Category::kN), {}},
    {"M", bit(Category::kM), {}},
    {"P", bit(Category::kP), {}},
    {"S", bit(Category::kS), {}},
    // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and [\p{Ll}\p{Lm}\p{Lo}\p{M}] of the GPT-4o patterns.
    {"Upper", bit(Category::kLu) | bit(Category::kLt) | kAnyCase, {}},
    {"Lower", bit(Category::kLl) | kAnyCase, {}},
    {"LongS", 0, kLongS},
    {"DeepseekLetters", 0, kDeepseekLetters},
    {"DeepseekMarks", 0, kDeepseekMarks},
    {"DeepseekCjk", 0, kDeepseekCjk},
    {"Deepseek3Cjk", 0, kDeepseek3Cjk},
}};

}  // namespace

bool CharSet::has_in_ranges(std::uint32_t code) const {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), code,
      [](std::uint32_t value, const CodeRange& range) { return value < range.first; });
  return after != ranges.begin() && code <= (after - 1)->last;
}

const CharSet* find_char_set(std::string_view name) {
  const auto* found = std::find_if(kSets.begin(), kSets.end(),
                                   [&](const CharSet& set) { return set.name == name; });
  return found == kSets.end() ? nullptr : found;
}

}  // namespace detrun
