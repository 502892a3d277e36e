// Tensor descriptions and the layout of the data section.
#include "format/tensor_table.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
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
using test::refused;
namespace gguf = test::gguf;
using namespace std::string_literals;

constexpr auto kU64Max = std::numeric_limits<std::uint64_t>::max();

GgufBuilder one_tensor(std::uint32_t type, std::vector<std::uint64_t> dims) {
  return GgufBuilder().tensor("w", type, std::move(dims), std::string(64, '\0'));
}

TEST_CASE("a tensor whose offset is beyond the file is named, not the hole that it leaves") {
  for (const std::uint64_t offset : {std::uint64_t{4096}, std::uint64_t{1} << 63, kU64Max - 31}) {
    const std::string bytes = GgufBuilder()
                                  .f32_tensor("a", {8}, std::vector<float>(8))
                                  .f32_tensor("b", {8}, std::vector<float>(8))
                                  .at_offset(offset)
                                  .f32_tensor("c", {8}, std::vector<float>(8))
                                  .build();
    CHECK(refused(bytes).says("tensor 'b' does not fit: 32 bytes at offset"));
  }
}

TEST_CASE("a tensor has its name, type, dimensions and bytes") {
  GgufLayout layout;
  const std::string bytes = GgufBuilder()
                                .f32_tensor("a", {2, 1, 3}, {1, 2, 3, 4, 5, 6})
                                .zero_tensor("b", gguf::kTensorQ4_K, {512, 3})
                                .build(&layout);
  const auto file = parsed(bytes);
  REQUIRE(file->tensors().size() == 2);
  const TensorInfo& a = file->tensors()[0];
  CHECK(a.name == "a");
  CHECK(a.type == QType::kF32);
  CHECK(a.n_dims == 3);
  CHECK(a.dims == std::array<std::uint64_t, 4>{2, 1, 3, 1});
  CHECK(a.row_elems() == 2);
  CHECK(a.n_rows() == 3);
  REQUIRE(a.data.size() == 24);
  float third = 0;
  std::memcpy(&third, a.data.data() + 8, sizeof third);
  CHECK(third == 3.0F);
  // A type that no kernel supports is accepted as long as its size is known.
  const TensorInfo* b = file->find_tensor("b");
  REQUIRE(b != nullptr);
  CHECK(b == &file->tensors()[1]);
  CHECK(b->type == QType::kQ4_K);
  CHECK(b->data.size() == 2 * 144 * 3);
  CHECK(b->data.data() == file->bytes().data() + layout.tensors[1].data);
  CHECK(file->find_tensor("c") == nullptr);
}

TEST_CASE("every type of the table has the size that the table says"){
#define DETRUN_QTYPE(name, id, text, elems, bytes, supported)                                  \
  {                                                                                            \
    const std::string file_bytes = GgufBuilder().zero_tensor("w", id, {(elems)*2, 3}).build(); \
    CHECK(parsed(file_bytes)->tensors()[0].data.size() == (bytes)*6);                          \
  }
#include "detrun/qtypes.def"
#undef DETRUN_QTYPE
}

TEST_CASE("unknown and removed types are refused with their number") {
  for (const std::uint32_t type : {4U, 5U, 31U, 33U, 36U, 38U, 99U, 0xFFFFFFFFU}) {
    CHECK(refused(one_tensor(type, {16}).build()).message ==
          "tensor 'w' is of type " + std::to_string(type) +
              ", which is unknown or was removed from the format");
  }
}

TEST_CASE("0 and more than 4 dimensions are refused") {
  CHECK(refused(one_tensor(0, {}).build()).message ==
        "tensor 'w' has 0 dimensions; 1 to 4 expected");
  CHECK(refused(one_tensor(0, {1, 1, 1, 1, 16}).build()).message ==
        "tensor 'w' has 5 dimensions; 1 to 4 expected");
  GgufLayout layout;
  std::string bytes = one_tensor(0, {16}).build(&layout);
  patch_le(bytes, layout.tensors[0].n_dims, std::uint32_t{0xFFFFFFFF});
  CHECK(refused(bytes).says("has 4294967295 dimensions"));
  CHECK_NOTHROW(parsed(one_tensor(0, {2, 2, 2, 2}).build()));
}

TEST_CASE("a dimension of size 0 is refused") {
  CHECK(refused(one_tensor(0, {0}).build()).message ==
        "tensor 'w' has dimension 0 of size 0; at least 1 expected");
  CHECK(refused(one_tensor(0, {16, 0, kU64Max}).build()).message ==
        "tensor 'w' has dimension 1 of size 0; at least 1 expected");
}

TEST_CASE("sizes that do not fit 64 bits are refused, whichever factor overflows") {
  CHECK(refused(one_tensor(0, {kU64Max, 2}).build()).message ==
        "tensor 'w' of dimensions [18446744073709551615, 2] and type F32 has a size that overflows "
        "64 bits");
  const std::uint64_t big = std::uint64_t{1} << 32;
  for (const auto& dims : std::vector<std::vector<std::uint64_t>>{
           {kU64Max},
           {std::uint64_t{1} << 62},
           {big, big},
           {big, 1, 1, big},
           {1, big, big},
           {std::uint64_t{1} << 20, std::uint64_t{1} << 20, std::uint64_t{1} << 20, 16}}) {
    CHECK(refused(one_tensor(0, dims).build()).says("has a size that overflows 64 bits"));
  }
  // 2^59 blocks of 34 bytes: elements fit 64 bits, bytes do not.
  CHECK(refused(one_tensor(gguf::kTensorQ8_0, {kU64Max - 31}).build()).says("overflows 64 bits"));
}

TEST_CASE("a size that fits 64 bits and not the file names the tensor") {
  GgufLayout layout;
  std::string bytes = one_tensor(0, {16}).build(&layout);
  patch_le(bytes, layout.tensors[0].dims, (std::uint64_t{1} << 42) + 1);
  CHECK(refused(bytes).message ==
        "tensor 'w' does not fit: 17592186044420 bytes at offset 0 of a data section of 64 bytes");
}

TEST_CASE("offsets near 2^64 do not wrap") {
  for (const std::uint64_t offset : {kU64Max - 31, std::uint64_t{1} << 63, std::uint64_t{96}}) {
    CHECK(refused(one_tensor(0, {16}).at_offset(offset).build()).message ==
          "tensor 'w' does not fit: 64 bytes at offset " + std::to_string(offset) +
              " of a data section of 64 bytes");
  }
}

TEST_CASE("offset plus size does not wrap") {
  GgufLayout layout;
  std::string bytes = GgufBuilder()
                          .f32_tensor("v", {16}, std::vector<float>(16))
                          .f32_tensor("w", {16}, std::vector<float>(16))
                          .build(&layout);
  // 2^64 - 32 bytes at offset 64: the sum is 32.
  patch_le(bytes, layout.tensors[1].dims, (std::uint64_t{1} << 62) - 8);
  CHECK(refused(bytes).message ==
        "tensor 'w' does not fit: 18446744073709551584 bytes at offset 64 of a data section of 128 "
        "bytes");
}

TEST_CASE("a row that is no whole number of blocks names tensor, type and length") {
  CHECK(refused(one_tensor(gguf::kTensorQ4_K, {896, 2}).build()).message ==
        "tensor 'w' has rows of 896 elements, no whole number of Q4_K blocks of 256");
  CHECK(refused(one_tensor(gguf::kTensorQ8_0, {33}).build()).message ==
        "tensor 'w' has rows of 33 elements, no whole number of Q8_0 blocks of 32");
  // The product of the dimensions would be a whole number of blocks; the row is not.
  CHECK(refused(one_tensor(gguf::kTensorQ8_0, {16, 2}).build()).says("rows of 16 elements"));
}

TEST_CASE("a tensor name that comes twice is refused") {
  CHECK(refused(GgufBuilder()
                    .f32_tensor("w", {1}, {1})
                    .f32_tensor("v", {1}, {1})
                    .f32_tensor("w", {1}, {1})
                    .build())
            .message == "tensor 'w' is there twice (tensors 1 and 3); each name once expected");
}

TEST_CASE("tensor names that cannot be shown or are too long are refused") {
  CHECK(refused(GgufBuilder().f32_tensor("a\x1B[2J", {1}, {1}).build()).message ==
        "the name of tensor 1 holds a control character at byte 33, in \"a\\x1b[2J\"");
  CHECK(refused(GgufBuilder().f32_tensor("a\xFF", {1}, {1}).build())
            .says("the name of tensor 1 is not UTF-8: invalid at byte 33"));
  CHECK(refused(GgufBuilder().f32_tensor(std::string(65, 't'), {1}, {1}).build())
            .says("the name of tensor 1 is 65 bytes long"));
  CHECK_NOTHROW(parsed(GgufBuilder().f32_tensor(std::string(64, 't'), {1}, {1}).build()));
}

TEST_CASE("a misaligned offset is refused") {
  CHECK(refused(GgufBuilder()
                    .f32_tensor("a", {8}, std::vector<float>(8))
                    .f32_tensor("b", {8}, std::vector<float>(8))
                    .at_offset(36)
                    .tail("xxxx")
                    .build())
            .message == "tensor 'b' at offset 36, no multiple of the alignment 32");
  CHECK(refused(one_tensor(0, {15}).at_offset(4).build()).says("at offset 4, no multiple"));
}

TEST_CASE("overlapping tensors are refused with both names") {
  const auto pair = [](std::uint64_t second_offset) {
    return GgufBuilder()
        .f32_tensor("a", {16}, std::vector<float>(16))
        .f32_tensor("b", {16}, std::vector<float>(16))
        .at_offset(second_offset);
  };
  CHECK(refused(pair(32).build()).message ==
        "tensor 'b' at offset 32 overlaps tensor 'a', which ends at 64");
  CHECK(refused(pair(0).build()).message ==
        "tensor 'b' at offset 0 overlaps tensor 'a', which ends at 64");
  CHECK_NOTHROW(parsed(pair(64).build()));
  // One tensor inside another, described in the opposite order.
  CHECK(refused(GgufBuilder()
                    .f32_tensor("inner", {8}, std::vector<float>(8))
                    .at_offset(32)
                    .f32_tensor("outer", {32}, std::vector<float>(32))
                    .at_offset(0)
                    .build())
            .message == "tensor 'inner' at offset 32 overlaps tensor 'outer', which ends at 128");
}

TEST_CASE("bytes between tensors that nobody owns are refused beyond padding") {
  const auto pair = [](std::uint64_t second_offset) {
    return GgufBuilder()
        .tensor("a", gguf::kTensorF32, {9}, std::string(second_offset, '\0'))
        .f32_tensor("b", {8}, std::vector<float>(8))
        .build();
  };
  CHECK_NOTHROW(parsed(pair(64)));
  CHECK(refused(pair(96)).message ==
        "tensor 'b' at offset 96 leaves 60 bytes before it that belong to no tensor; less than the "
        "alignment 32 expected");
  CHECK(refused(GgufBuilder()
                    .tensor("a", gguf::kTensorF32, {8}, std::string(64, '\0'))
                    .at_offset(32)
                    .build())
            .says("tensor 'a' at offset 32 leaves 32 bytes before it"));
}

TEST_CASE("bytes after the last tensor are refused beyond padding") {
  const auto with_tail = [](std::size_t size) {
    return GgufBuilder().f32_tensor("w", {9}, std::vector<float>(9)).tail(std::string(size, 'x'));
  };
  CHECK_NOTHROW(parsed(with_tail(0).build()));   // ends with the tensor
  CHECK_NOTHROW(parsed(with_tail(28).build()));  // 36 + 28 = 64
  CHECK(refused(with_tail(29).build()).message ==
        "29 bytes at the end of the file belong to no tensor; at most 28 of padding expected");
  CHECK(refused(GgufBuilder().f32_tensor("w", {8}, std::vector<float>(8)).tail("x").build())
            .says("1 bytes at the end of the file belong to no tensor; at most 0"));
}

TEST_CASE("tensors may be described in another order than they lie in the file") {
  const std::string bytes = GgufBuilder()
                                .f32_tensor("b", {8}, std::vector<float>(8, 1.0F))
                                .at_offset(32)
                                .f32_tensor("a", {8}, std::vector<float>(8, 2.0F))
                                .at_offset(0)
                                .build();
  const auto file = parsed(bytes);
  CHECK(file->tensors()[0].name == "b");
  CHECK(file->tensors()[0].data.data() == file->tensors()[1].data.data() + 32);
}

TEST_CASE("a description cut short names its field") {
  GgufLayout layout;
  const std::string bytes =
      GgufBuilder().zero_tensor("blk.0.attn_q.weight", gguf::kTensorF32, {4, 4}).build(&layout);
  const auto& at = layout.tensors[0];
  CHECK(refused(bytes.substr(0, at.offset)).message ==
        "cut short: the offset of tensor 'blk.0.attn_q.weight' needs 8 bytes at byte " +
            std::to_string(at.offset) + ", but 0 remain");
  CHECK(refused(bytes.substr(0, at.type + 3))
            .says("cut short: the type of tensor 'blk.0.attn_q.weight' needs 4"));
  CHECK(refused(bytes.substr(0, at.dims + 12))
            .says("cut short: a dimension of tensor 'blk.0.attn_q.weight'"));
}

}  // namespace
}  // namespace detrun
