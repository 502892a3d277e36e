// Metadata: every kind of value, every conversion, every refusal.
#include "format/metadata.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tests/unit/format/refusal.h"

namespace detrun {
namespace {

using test::GgufBuilder;
using test::GgufLayout;
using test::parsed;
using test::patch_le;
using test::put_le;
using test::refusal_of;
using test::refused;
namespace gguf = test::gguf;
using namespace std::string_literals;

constexpr auto kU64Max = std::numeric_limits<std::uint64_t>::max();
constexpr auto kI64Min = std::numeric_limits<std::int64_t>::min();
constexpr auto kI64Max = std::numeric_limits<std::int64_t>::max();

std::string every_kind() {
  return GgufBuilder()
      .u8("u8", 255)
      .i8("i8", -128)
      .u16("u16", 65535)
      .i16("i16", 32767)
      .u32("u32", 4294967295)
      .i32("i32", 2147483647)
      .f32("f32", 1e-5F)
      .boolean("yes", true)
      .boolean("no", false)
      .string("text", "a\0b\xFF"s)
      .u64("u64", kU64Max)
      .i64("i64", kI64Max)
      .f64("f64", 0.1)
      .strings("texts", {"", "▁the", "\xFF\0"s})
      .numbers<float>("f32s", {0.5F, -1.25F})
      .numbers<double>("f64s", {0.1})
      .numbers<std::int32_t>("i32s", {-1, 2})
      .numbers<std::uint64_t>("u64s", {0, std::uint64_t{kI64Max}})
      .array("bools", gguf::kBool, 2, "\x01\x00"s)
      .array("none", gguf::kI32, 0, "")
      .build();
}

TEST_CASE("keys come in file order with their types") {
  const std::string bytes = every_kind();
  const auto file = parsed(bytes);
  REQUIRE(file->keys().size() == 20);
  CHECK(file->keys()[0] == "u8");
  CHECK(file->keys()[19] == "none");
  CHECK(file->type_of("u8") == MetaType::kU8);
  CHECK(file->type_of("f64") == MetaType::kF64);
  CHECK(file->type_of("texts") == MetaType::kArray);
  CHECK(file->type_of("yes") == MetaType::kBool);
  CHECK(!file->type_of("absent"));
  REQUIRE(file->array_of("texts"));
  CHECK(file->array_of("texts")->type == MetaType::kString);
  CHECK(file->array_of("texts")->count == 3);
  CHECK(file->array_of("bools")->type == MetaType::kBool);
  CHECK(!file->array_of("u8"));
  CHECK(!file->array_of("absent"));
}

TEST_CASE("every integer kind is an integer") {
  const std::string bytes = every_kind();
  const auto file = parsed(bytes);
  CHECK(file->get_u64("u8") == 255U);
  CHECK(file->get_u64("u16") == 65535U);
  CHECK(file->get_u64("i16") == 32767U);
  CHECK(file->get_u64("u32") == 4294967295U);
  CHECK(file->get_u64("i32") == 2147483647U);
  CHECK(file->get_u64("u64") == kU64Max);
  CHECK(file->get_u64("i64") == std::uint64_t{kI64Max});
  CHECK(!file->get_u64("absent"));
}

TEST_CASE("a negative integer is refused where none can be") {
  const std::string bytes =
      GgufBuilder().i8("a", -128).i16("b", -1).i32("c", -7).i64("d", kI64Min).build();
  const auto file = parsed(bytes);
  const auto message = [&](const char* key) {
    return refusal_of([&] { file->get_u64(key); }).message;
  };
  CHECK(message("a") == "m.gguf: key 'a' is -128; 0 or more expected");
  CHECK(message("b") == "m.gguf: key 'b' is -1; 0 or more expected");
  CHECK(message("c") == "m.gguf: key 'c' is -7; 0 or more expected");
  CHECK(message("d") == "m.gguf: key 'd' is -9223372036854775808; 0 or more expected");
}

TEST_CASE("floats, booleans and text keep their bits") {
  const std::string bytes = every_kind();
  const auto file = parsed(bytes);
  CHECK(file->get_f64("f32") == double{1e-5F});
  CHECK(file->get_f64("f64") == 0.1);
  CHECK(file->get_bool("yes") == true);
  CHECK(file->get_bool("no") == false);
  CHECK(file->get_string("text") == "a\0b\xFF"s);
  CHECK(!file->get_f64("absent"));
  CHECK(!file->get_bool("absent"));
  CHECK(!file->get_string("absent"));
}

TEST_CASE("arrays come out whole, strings as views into the file") {
  const std::string bytes = every_kind();
  const auto file = parsed(bytes);
  const auto texts = file->get_strings("texts");
  REQUIRE(texts);
  CHECK(*texts == std::vector<std::string_view>{"", "▁the", std::string_view("\xFF\0", 2)});
  CHECK(texts->at(1).data() > bytes.data());
  CHECK(texts->at(1).data() < bytes.data() + bytes.size());
  CHECK(*file->get_f64s("f32s") == std::vector<double>{0.5, -1.25});
  CHECK(*file->get_f64s("f64s") == std::vector<double>{0.1});
  CHECK(*file->get_i64s("i32s") == std::vector<std::int64_t>{-1, 2});
  CHECK(*file->get_i64s("u64s") == std::vector<std::int64_t>{0, kI64Max});
  CHECK(file->get_i64s("none")->empty());
  CHECK(!file->get_strings("absent"));
  CHECK(!file->get_f64s("absent"));
  CHECK(!file->get_i64s("absent"));
}

TEST_CASE("integer arrays of every kind are widened with their sign") {
  const std::string bytes = GgufBuilder()
                                .numbers<std::uint8_t>("u8", {255})
                                .numbers<std::int8_t>("i8", {-128})
                                .numbers<std::uint16_t>("u16", {65535})
                                .numbers<std::int16_t>("i16", {-32768})
                                .numbers<std::uint32_t>("u32", {4294967295})
                                .numbers<std::int64_t>("i64", {kI64Min})
                                .numbers<std::uint64_t>("u64", {0, kU64Max})
                                .build();
  const auto file = parsed(bytes);
  const auto first = [&](const char* key) { return file->get_i64s(key)->at(0); };
  CHECK(first("u8") == 255);
  CHECK(first("i8") == -128);
  CHECK(first("u16") == 65535);
  CHECK(first("i16") == -32768);
  CHECK(first("u32") == 4294967295);
  CHECK(first("i64") == kI64Min);
  CHECK(refusal_of([&] { file->get_i64s("u64"); }).message ==
        "m.gguf: key 'u64': element 1 is 18446744073709551615; at most 9223372036854775807 "
        "expected");
}

TEST_CASE("a value of another kind is refused with what it is and what was expected") {
  const std::string bytes = every_kind();
  const auto file = parsed(bytes);
  const auto message = [](auto&& attempt) { return refusal_of(attempt).message; };
  CHECK(message([&] { file->get_u64("f32"); }) ==
        "m.gguf: key 'f32' is an F32; an integer expected");
  CHECK(message([&] { file->get_u64("yes"); }) ==
        "m.gguf: key 'yes' is a BOOL; an integer expected");
  CHECK(message([&] { file->get_u64("i32s"); }) ==
        "m.gguf: key 'i32s' is an ARRAY of 2 I32; an integer expected");
  CHECK(message([&] { file->get_f64("u32"); }) ==
        "m.gguf: key 'u32' is a U32; F32 or F64 expected");
  CHECK(message([&] { file->get_bool("u8"); }) == "m.gguf: key 'u8' is a U8; a BOOL expected");
  CHECK(message([&] { file->get_string("i8"); }) == "m.gguf: key 'i8' is an I8; a STRING expected");
  CHECK(message([&] { file->get_strings("text"); }) ==
        "m.gguf: key 'text' is a STRING; an ARRAY of STRING expected");
  CHECK(message([&] { file->get_strings("i32s"); }) ==
        "m.gguf: key 'i32s' is an ARRAY of 2 I32; an ARRAY of STRING expected");
  CHECK(message([&] { file->get_f64s("i32s"); }) ==
        "m.gguf: key 'i32s' is an ARRAY of 2 I32; an ARRAY of F32 or F64 expected");
  CHECK(message([&] { file->get_f64s("f64"); }) ==
        "m.gguf: key 'f64' is an F64; an ARRAY of F32 or F64 expected");
  CHECK(message([&] { file->get_i64s("bools"); }) ==
        "m.gguf: key 'bools' is an ARRAY of 2 BOOL; an ARRAY of integers expected");
  CHECK(message([&] { file->get_i64s("u32"); }) ==
        "m.gguf: key 'u32' is a U32; an ARRAY of integers expected");
}

TEST_CASE("a key that comes twice is refused by name") {
  CHECK(refused(GgufBuilder().u32("a", 1).u32("b", 2).string("a", "x").build()).message ==
        "key 'a' is there twice (metadata keys 1 and 3); each key once expected");
}

TEST_CASE("keys that cannot be shown are refused, values may hold any bytes") {
  CHECK(refused(GgufBuilder().u32("a\0b"s, 1).build()).message ==
        "the name of metadata key 1 holds a control character at byte 33, in \"a\\x00b\"");
  CHECK(refused(GgufBuilder().u8("k", 0).u32("ab\xFF", 1).build()).message ==
        "the name of metadata key 2 is not UTF-8: invalid at byte 48, in \"ab\\xff\"");
  CHECK(refused(GgufBuilder().u32("", 1).u32("b", 1).build()).says("metadata key 1 is empty"));
  CHECK(refused(GgufBuilder().u32(std::string(65536, 'k'), 1).build())
            .says("is 65536 bytes long (byte 32); at most 65535 expected"));
  CHECK_NOTHROW(parsed(GgufBuilder().u32(std::string(65535, 'k'), 1).build()));
  CHECK_NOTHROW(parsed(GgufBuilder().string("k", "\x1B[2J\xFF\0"s).build()));
}

TEST_CASE("unknown value types are refused with their number") {
  CHECK(refused(GgufBuilder().value("k", 13, "12345678").build()).message ==
        "the value type of key 'k' is 13; 0 to 12 expected");
  CHECK(refused(GgufBuilder().array("k", 99, 1, "12345678").build()).message ==
        "the element type of key 'k' is 99; 0 to 12 expected");
}

TEST_CASE("arrays of arrays are refused, however deep") {
  std::string inner;
  put_le(inner, gguf::kI32);
  put_le(inner, std::uint64_t{0});
  CHECK(refused(GgufBuilder().array("k", gguf::kArray, 1, inner).build()).message ==
        "key 'k' is an array of arrays, which is not supported");
  std::string deep;
  for (int i = 0; i < 10000; ++i) {
    put_le(deep, gguf::kArray);
    put_le(deep, std::uint64_t{1});
  }
  CHECK(refused(GgufBuilder().array("k", gguf::kArray, 1, deep).build()).says("array of arrays"));
}

TEST_CASE("array lengths are bounded by the bytes that remain") {
  for (const std::uint64_t count : {std::uint64_t{3}, std::uint64_t{1} << 61, kU64Max}) {
    const std::string number = std::to_string(count);
    CHECK(refused(GgufBuilder().array("k", gguf::kU64, count, std::string(16, 'x')).build())
              .message ==
          "the array length of key 'k' is " + number +
              ", but the 16 bytes from byte 49 on hold at most 2 of at least 8 bytes each");
    CHECK(refused(GgufBuilder().array("k", gguf::kString, count, std::string(16, '\0')).build())
              .says("the array length of key 'k' is " + number));
  }
  // The last string of an array claims more than is left.
  std::string elements;
  put_le(elements, std::uint64_t{1});
  elements += "a";
  put_le(elements, std::uint64_t{2});
  elements += "b";
  CHECK(refused(GgufBuilder().array("k", gguf::kString, 2, elements).build()).message ==
        "cut short: string 2 'k' needs 2 bytes at byte 66, but 1 remain");
}

TEST_CASE("a boolean is 0 or 1") {
  CHECK(refused(GgufBuilder().value("k", gguf::kBool, "\x02").build()).message ==
        "the value of key 'k' holds a BOOL of 2 at byte 37; 0 or 1 expected");
  CHECK(refused(GgufBuilder().array("k", gguf::kBool, 3, "\x01\x00\xFF"s).build()).message ==
        "the array of key 'k' holds a BOOL of 255 at byte 51; 0 or 1 expected");
}

TEST_CASE("strings that change under an open file are bounded again") {
  GgufLayout layout;
  std::string bytes = GgufBuilder().strings("k", {"aa", "bb"}).build(&layout);
  const auto file = parsed(bytes);
  REQUIRE(file->get_strings("k"));
  patch_le(bytes, layout.keys[0].value + 12, std::uint64_t{1} << 40);
  CHECK(refusal_of([&] { file->get_strings("k"); }).says("cut short: string 1 'k'"));
}

TEST_CASE("type names are those of the format's documentation") {
  CHECK(meta_type_name(MetaType::kU8) == "U8");
  CHECK(meta_type_name(MetaType::kString) == "STRING");
  CHECK(meta_type_name(MetaType::kF64) == "F64");
  CHECK(meta_type_name(static_cast<MetaType>(13)) == "?");
}

}  // namespace
}  // namespace detrun
