// The fuzz target without a fuzzer: the corpus is replayed, and small valid files are damaged in
// every way that a fixed seed gives. Each input is either read or refused; nothing else happens.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/gguf_exercise.h"
#include "tests/support/gguf_builder.h"

namespace detrun::test {
namespace {

using namespace std::string_literals;

/// Exactly as many bytes as the input has, so that a sanitizer sees a read past the end.
bool survives(const std::string& bytes) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return exercise_gguf({copy.get(), bytes.size()});
}

/// Every kind of value and two tensor types. `metadata_bytes` receives where the data section
/// starts: damage behind that only changes weights.
std::string seed_file(std::size_t* metadata_bytes = nullptr) {
  GgufLayout layout;
  std::string bytes = GgufBuilder()
                          .string("general.architecture", "llama")
                          .alignment(32)
                          .u16("split.count", 1)
                          .u8("a", 1)
                          .i8("b", -1)
                          .i16("c", -2)
                          .i32("d", 3)
                          .f32("e", 0.5F)
                          .boolean("f", true)
                          .u64("g", 4)
                          .i64("h", -5)
                          .f64("i", 0.25)
                          .strings("j", {"x", "", "yz"})
                          .numbers<float>("k", {1.0F, 2.0F})
                          .numbers<std::int32_t>("l", {4, 4})
                          .array("m", gguf::kBool, 3, "\x01\x00\x01"s)
                          .f32_tensor("n", {3, 2}, {1, 2, 3, 4, 5, 6})
                          .zero_tensor("o", gguf::kTensorQ8_0, {32, 2})
                          .f32_tensor("p", {1, 1, 1, 8}, std::vector<float>(8, 1.0F))
                          .build(&layout);
  if (metadata_bytes != nullptr) *metadata_bytes = layout.data_start;
  return bytes;
}

/// Values at which counts, offsets, dimensions and alignments go wrong.
constexpr std::array<std::uint64_t, 10> kBadNumbers = {
    0, 9, 13, 33, 1ULL << 31, 0xFFFFFFFF, (1ULL << 42) + 1, 1ULL << 62, ~0ULL >> 1, ~0ULL};

TEST_CASE("every file of the corpus is read or refused") {
  const std::filesystem::path corpus = DETRUN_SOURCE_DIR "/tests/fuzz/corpus/gguf";
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    CAPTURE(entry.path());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    survives(bytes);
    ++n_files;
  }
  CHECK(n_files > 0);
}

TEST_CASE("the undamaged seed is read") { CHECK(survives(seed_file())); }

TEST_CASE("a file cut at any byte is read or refused") {
  const std::string seed = seed_file();
  for (std::size_t size = 0; size < seed.size(); ++size) survives(seed.substr(0, size));
}

TEST_CASE("any single flipped bit is read or refused") {
  std::size_t end = 0;
  std::string bytes = seed_file(&end);
  int n_read = 0;
  for (std::size_t at = 0; at < end; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      n_read += survives(bytes) ? 1 : 0;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    }
  }
  CHECK(n_read > 0);  // values and padding may hold anything
}

TEST_CASE("a bad number anywhere is read or refused") {
  std::size_t end = 0;
  const std::string seed = seed_file(&end);
  for (std::size_t at = 0; at + 8 <= end; ++at) {
    for (const std::uint64_t number : kBadNumbers) {
      std::string wide = seed;
      patch_le(wide, at, number);
      survives(wide);
      if (number >> 32 != 0) continue;  // no 32-bit field can hold it
      std::string narrow = seed;
      patch_le(narrow, at, static_cast<std::uint32_t>(number));
      survives(narrow);
    }
  }
}

/// One to six random edits: a byte, a number, a piece removed, doubled or moved, the end cut.
std::string mutated(std::string bytes, std::mt19937_64& random) {
  const std::uint64_t edits = 1 + random() % 6;
  for (std::uint64_t i = 0; i < edits && bytes.size() > 16; ++i) {
    const std::size_t at = random() % (bytes.size() - 8);
    const std::size_t length = random() % 16;
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        patch_le(bytes, at, kBadNumbers[random() % kBadNumbers.size()]);
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(random() % bytes.size(), bytes.substr(at, length));
        break;
      case 4:
        bytes.replace(random() % bytes.size(), length, bytes.substr(at, length));
        break;
      default:
        bytes.resize(bytes.size() - random() % 8);
        break;
    }
  }
  return bytes;
}

TEST_CASE("random damage of a fixed seed is read or refused") {
  std::mt19937_64 random(20261129);  // the sequence of this engine is fixed by the standard
  const std::string seed = seed_file();
  int n_read = 0;
  constexpr int kRounds = 4000;
  for (int i = 0; i < kRounds; ++i) {
    CAPTURE(i);
    n_read += survives(mutated(seed, random)) ? 1 : 0;
  }
  CHECK(n_read > 0);
  CHECK(n_read < kRounds);
}

}  // namespace
}  // namespace detrun::test
