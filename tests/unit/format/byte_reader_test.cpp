// The cursor over bytes: what it refuses and how it says so.
#include "format/byte_reader.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "tests/support/gguf_builder.h"
#include "tests/unit/format/refusal.h"

namespace detrun {
namespace {

using test::put_le;
using test::refusal_of;

const std::string kPath = "m.gguf";

std::span<const std::byte> raw(const std::string& bytes) {
  return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

std::string name_refusal(const std::string& name) {
  return refusal_of(
             [&] { check_name(kPath, name, 100, 64, {.what = "the name of key", .index = 3}); })
      .message;
}

TEST_CASE("numbers of every size are read little-endian, one after the other") {
  std::string bytes;
  put_le(bytes, std::uint8_t{0xFE});
  put_le(bytes, std::int16_t{-2});
  put_le(bytes, std::uint32_t{0x01020304});
  put_le(bytes, std::numeric_limits<std::uint64_t>::max());
  put_le(bytes, 1.5F);
  ByteReader reader(kPath, raw(bytes), 10);
  CHECK(reader.number<std::uint8_t>({.what = "a"}) == 0xFE);
  CHECK(reader.number<std::int16_t>({.what = "b"}) == -2);
  CHECK(reader.number<std::uint32_t>({.what = "c"}) == 0x01020304U);
  CHECK(reader.number<std::uint64_t>({.what = "d"}) == std::numeric_limits<std::uint64_t>::max());
  CHECK(reader.position() == 10 + 15);
  CHECK(reader.number<float>({.what = "e"}) == 1.5F);
  CHECK(reader.remaining() == 0);
}

TEST_CASE("a number that is cut names field, byte, need and rest") {
  ByteReader reader(kPath, raw("abc"), 20);
  const auto refusal = refusal_of([&] {
    reader.number<std::uint32_t>({.what = "the type of tensor", .index = 2, .name = "w"});
  });
  CHECK(refusal.message ==
        "m.gguf: cut short: the type of tensor 2 'w' needs 4 bytes at byte 20, but 3 remain");
  CHECK(refusal.hint.find("incomplete") != std::string::npos);
}

TEST_CASE("a length beyond the rest is refused without touching anything") {
  for (const std::uint64_t length : {std::uint64_t{4}, (std::uint64_t{1} << 48) - 1,
                                     std::numeric_limits<std::uint64_t>::max()}) {
    std::string bytes;
    put_le(bytes, length);
    bytes += "abc";
    ByteReader reader(kPath, raw(bytes));
    const auto refusal = refusal_of([&] { reader.string({.what = "the text"}); });
    CHECK(refusal.message == "m.gguf: cut short: the text needs " + std::to_string(length) +
                                 " bytes at byte 8, but 3 remain");
  }
}

TEST_CASE("a count is compared with the rest by division, so that it cannot wrap") {
  const std::string bytes(100, 'x');
  const ByteReader reader(kPath, raw(bytes));
  reader.require_room(12, 8, {.what = "n"});
  const auto refusal = refusal_of(
      [&] { reader.require_room(std::uint64_t{1} << 62, 8, {.what = "the number of keys"}); });
  CHECK(refusal.message ==
        "m.gguf: the number of keys is 4611686018427387904, but the 100 bytes from byte 0 on hold "
        "at most 12 of at least 8 bytes each");
  CHECK(refusal_of([&] { reader.require_room(13, 8, {.what = "n"}); }).message != "");
}

TEST_CASE("names may hold any printable UTF-8") {
  for (const char* name : {"a", "general.name", "größe", "名前", "🦙", "a b", "\xC2\xA0"}) {
    CHECK_NOTHROW(check_name(kPath, name, 0, 64, {.what = "key"}));
  }
}

TEST_CASE("names with control characters are refused at their byte") {
  using namespace std::string_literals;
  CHECK(name_refusal("ab\0c"s) ==
        "m.gguf: the name of key 3 holds a control character at byte 102, in \"ab\\x00c\"");
  for (const std::string& bad : {"a\x1B[2J"s, "a\n"s, "a\x7F"s, "a\xC2\x80"s, "a\xC2\x9F"s}) {
    CHECK(name_refusal(bad).find("control character at byte 101") != std::string::npos);
  }
}

TEST_CASE("names that are not UTF-8 are refused at the first wrong byte") {
  CHECK(name_refusal("ab\xFF").find("is not UTF-8: invalid at byte 102") != std::string::npos);
  CHECK(name_refusal("é\xE6\xAD").find("invalid at byte 102") != std::string::npos);
  CHECK(name_refusal("\xED\xA0\x80").find("invalid at byte 100") != std::string::npos);
  CHECK(name_refusal("🦙\xC0\xAF").find("invalid at byte 104") != std::string::npos);
}

TEST_CASE("empty and overlong names are refused") {
  CHECK(name_refusal("") == "m.gguf: the name of key 3 is empty (byte 100)");
  CHECK(name_refusal(std::string(65, 'n')) ==
        "m.gguf: the name of key 3 is 65 bytes long (byte 100); at most 64 expected");
  CHECK_NOTHROW(check_name(kPath, std::string(64, 'n'), 0, 64, {.what = "key"}));
}

}  // namespace
}  // namespace detrun
