// Header, alignment, counts, cut files: GGUF as a whole.
#include "format/gguf_file.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
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
using test::refused;
namespace gguf = test::gguf;

/// One key and three tensors of 32 (padded), 68 and 32 bytes.
GgufBuilder small_file(std::uint32_t version = 3) {
  return GgufBuilder(version)
      .string("general.architecture", "llama")
      .f32_tensor("first", {3, 2}, {1, 2, 3, 4, 5, 6})
      .zero_tensor("middle", gguf::kTensorQ8_0, {32, 2})
      .f32_tensor("last", {8}, std::vector<float>(8, 1.0F));
}

std::string header(std::uint32_t version, std::uint64_t n_tensors, std::uint64_t n_keys) {
  return GgufBuilder(version).tensor_count(n_tensors).key_count(n_keys).build();
}

TEST_CASE("versions 2 and 3 read the same") {
  for (const std::uint32_t version : {2U, 3U}) {
    const std::string bytes = small_file(version).build();
    const auto file = parsed(bytes);
    CHECK(file->version() == version);
    CHECK(file->path() == "m.gguf");
    CHECK(file->bytes().size() == bytes.size());
    CHECK(file->keys() == std::vector<std::string>{"general.architecture"});
    REQUIRE(file->tensors().size() == 3);
    CHECK(file->tensors()[1].name == "middle");
  }
}

TEST_CASE("other versions are refused with their number") {
  CHECK(refused(header(1, 0, 0)).message == "GGUF version 1; version 2 or 3 expected");
  CHECK(refused(header(4, 0, 0)).message == "GGUF version 4; version 2 or 3 expected");
  CHECK(refused(header(0, 0, 0)).message == "GGUF version 0; version 2 or 3 expected");
  CHECK(refused(header(0xFFFFFFFF, 0, 0)).says("GGUF version 4294967295"));
}

TEST_CASE("a big-endian file is called that") {
  // The version 3 of a big-endian file reads as 3 * 2^24.
  const auto refusal = refused(header(3U << 24, 0, 1));
  CHECK(refusal.message ==
        "big-endian file (version 3 in that byte order); a little-endian file expected");
  CHECK(refusal.hint.find("gguf_convert_endian") != std::string::npos);
  CHECK(refused(header(2U << 24, 0, 1)).says("big-endian file (version 2"));
}

TEST_CASE("a file that is not GGUF is refused with what it starts with") {
  CHECK(refused("GGU").message == "not a GGUF file: \"GGUF\" expected at byte 0, found \"GGU\"");
  CHECK(refused("FUGG and more").says("found \"FUGG\""));
  CHECK(refused("\x1B[2Jxx").says("found \"\\x1b[2J\""));
  CHECK(refused("version https://git-lfs.github.com/spec/v1\n").says("Git LFS pointer"));
  CHECK(refused("lmgg____").says("old GGML format"));
  CHECK(refused("<!DOCTYPE html>").says("HTML page"));
}

TEST_CASE("a header cut anywhere names the missing field") {
  const std::string whole = header(3, 0, 0);
  REQUIRE(whole.size() == GgufLayout::kHeaderBytes);
  CHECK(refused(whole.substr(0, 4)).says("cut short: the version needs 4 bytes at byte 4"));
  CHECK(refused(whole.substr(0, 12)).says("cut short: the number of tensors needs 8 bytes"));
  CHECK(refused(whole.substr(0, 23)).says("cut short: the number of metadata keys needs 8 bytes"));
  CHECK(parsed(whole)->tensors().empty());
}

TEST_CASE("counts that the file cannot hold are refused before anything is allocated") {
  for (const std::uint64_t count :
       {std::uint64_t{500'000'000}, std::uint64_t{1} << 62, ~std::uint64_t{0}, std::uint64_t{1}}) {
    const std::string number = std::to_string(count);
    CHECK(refused(header(3, 0, count)).message ==
          "the number of metadata keys is " + number +
              ", but the 0 bytes from byte 24 on hold at most 0 of at least 14 bytes each");
    CHECK(refused(header(3, count, 0)).message ==
          "the number of tensors is " + number +
              ", but the 0 bytes from byte 24 on hold at most 0 of at least 33 bytes each");
  }
}

TEST_CASE("a key length of 2^48-1 is refused") {
  std::string bytes = header(3, 0, 1);
  put_le(bytes, (std::uint64_t{1} << 48) - 1);
  CHECK(bytes.size() == 32);
  CHECK(refused(bytes).says("the number of metadata keys is 1, but the 8 bytes"));
  bytes += std::string(6, 'k');
  CHECK(refused(bytes).message ==
        "cut short: the name of metadata key 1 needs 281474976710655 bytes at byte 32, but 6 "
        "remain");
}

TEST_CASE("an alignment that is no power of two from 8 to 2^24 is refused") {
  const std::string zero = GgufBuilder().u32("general.alignment", 0).build();
  CHECK(zero.size() == 57);  // the smallest file that made a peer divide by zero
  for (const std::uint32_t bad : {0U, 1U, 3U, 4U, 33U, 48U, 1U << 25, 1U << 31, 0xFFFFFFFFU}) {
    CHECK(refused(GgufBuilder().u32("general.alignment", bad).build()).message ==
          "key 'general.alignment' is " + std::to_string(bad) +
              "; a power of two from 8 to 16777216 expected");
  }
  CHECK(refused(GgufBuilder().i32("general.alignment", -32).build()).message ==
        "key 'general.alignment' is -32; 0 or more expected");
  CHECK(refused(GgufBuilder().string("general.alignment", "32").build()).message ==
        "key 'general.alignment' is a STRING; an integer expected");
}

TEST_CASE("other alignments move the data section") {
  for (const std::uint32_t alignment : {8U, 64U, 4096U}) {
    GgufLayout layout;
    const std::string bytes = GgufBuilder()
                                  .alignment(alignment)
                                  .f32_tensor("a", {1}, {1})
                                  .f32_tensor("b", {1}, {2})
                                  .build(&layout);
    const auto file = parsed(bytes);
    REQUIRE(file->find_tensor("b") != nullptr);
    CHECK(layout.data_start % alignment == 0);
    CHECK(layout.tensors[1].data == layout.data_start + alignment);
    CHECK(file->find_tensor("b")->data.data() == file->bytes().data() + layout.tensors[1].data);
  }
  // Any integer kind is meant well.
  CHECK_NOTHROW(parsed(GgufBuilder().i64("general.alignment", 64).build()));
}

TEST_CASE("a file cut in its tensor data names the first tensor that does not fit") {
  GgufLayout layout;
  const std::string whole = small_file().tail("").build(&layout);
  REQUIRE_NOTHROW(parsed(whole));
  const auto cut = [&](std::uint64_t size) { return refused(whole.substr(0, size)).message; };
  const std::uint64_t start = layout.data_start;
  CHECK(cut(start) ==
        "tensor 'first' does not fit: 24 bytes at offset 0 of a data section of 0 bytes");
  CHECK(cut(start - 1) ==
        "tensor 'first' does not fit: 24 bytes at offset 0 of a data section of 0 bytes");
  CHECK(cut(whole.size() - 1) ==
        "tensor 'last' does not fit: 32 bytes at offset 128 of a data section of 159 bytes");
  CHECK(cut(whole.size() - 32) ==
        "tensor 'last' does not fit: 32 bytes at offset 128 of a data section of 128 bytes");
  CHECK(cut(layout.tensors[1].data + 34) ==
        "tensor 'middle' does not fit: 68 bytes at offset 32 of a data section of 66 bytes");
  CHECK(refused(whole.substr(0, start)).hint.find("cut short") != std::string::npos);
}

TEST_CASE("a file cut at any byte is refused") {
  const std::string whole = small_file().strings("s", {"a", "bb"}).tail("").build();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    CAPTURE(size);
    refused(whole.substr(0, size));
  }
}

TEST_CASE("the first tensor that does not fit is the one with the lowest offset") {
  GgufLayout layout;
  std::string bytes = GgufBuilder()
                          .f32_tensor("written.second", {8}, std::vector<float>(8))
                          .at_offset(32)
                          .f32_tensor("written.first", {8}, std::vector<float>(8))
                          .at_offset(0)
                          .build(&layout);
  CHECK_NOTHROW(parsed(bytes));
  bytes.resize(layout.data_start + 10);
  CHECK(refused(bytes).says("tensor 'written.first' does not fit"));
}

TEST_CASE("files without tensors are accepted, with or without padding after the metadata") {
  const std::string bytes = GgufBuilder().string("tokenizer.ggml.model", "llama").build();
  REQUIRE(bytes.size() % 32 != 0);
  CHECK(parsed(bytes)->tensors().empty());
  std::string padded = bytes;
  padded.resize((bytes.size() + 31) / 32 * 32, '\0');
  CHECK(parsed(padded)->tensors().empty());
  CHECK(refused(padded + "x").message ==
        "1 bytes at the end of the file belong to no tensor; at most 0 of padding expected");
}

TEST_CASE("one part of a split model is refused with the way out") {
  const auto part = [](std::uint16_t no) {
    return GgufBuilder().u16("split.no", no).u16("split.count", 3).i32("split.tensors.count", 9);
  };
  const auto refusal = refused(part(1).build());
  CHECK(refusal.message ==
        "is part 2 of a model split into 3 files (split.count), which is not supported");
  CHECK(refusal.hint.find("llama-gguf-split --merge") != std::string::npos);
  CHECK(refused(part(0).build()).says("is part 1 of a model split into 3 files"));
  CHECK(refused(GgufBuilder().u32("split.count", 2).build()).says("is one part of a model split"));
  CHECK_NOTHROW(parsed(GgufBuilder().u16("split.count", 1).build()));
  CHECK_NOTHROW(parsed(GgufBuilder().u16("split.count", 0).build()));
}

}  // namespace
}  // namespace detrun
