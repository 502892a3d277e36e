// The generated table against counts and borders of Unicode 16.0.
#include "tokenizer/unicode_classes.h"

#include <doctest/doctest.h>

#include <array>

using namespace detrun;

TEST_CASE("each class has as many code points as Unicode 16.0 says") {
  // Counts of DerivedGeneralCategory-16.0.0.txt, as Hugging Face tokenizers 0.23.3 matches them.
  std::array<int, kCategoryCount> counts{};
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    ++counts[static_cast<std::size_t>(category_of(code))];
  }
  const std::array<int, kCategoryCount - 1> expected = {1858, 2258, 31,  404,  136477,
                                                        2501, 1911, 855, 8514, 19};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(counts[i] == expected[i]);
}

TEST_CASE("borders between classes are where Unicode has them") {
  CHECK(category_of('@') == Category::kP);
  CHECK(category_of('A') == Category::kLu);
  CHECK(category_of('z') == Category::kLl);
  CHECK(category_of('0') == Category::kN);
  CHECK(category_of('$') == Category::kS);
  CHECK(category_of(' ') == Category::kZ);
  CHECK(category_of(0) == Category::kOther);
  CHECK(category_of(0x1C5) == Category::kLt);
  CHECK(category_of(0x2B0) == Category::kLm);
  CHECK(category_of(0x301) == Category::kM);
  CHECK(category_of(0x4E00) == Category::kLo);
  CHECK(category_of(0x10FFFF) == Category::kOther);
}
