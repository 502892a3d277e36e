// The front door: real files, mapped and read, and the helpers over any model file.
#include "detrun/model_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tests/unit/format/refusal.h"

namespace detrun {
namespace {

using test::GgufBuilder;
using test::parsed;
using test::refusal_of;
using test::TempFolder;

void check_same(const ModelFile& a, const ModelFile& b) {
  CHECK(std::ranges::equal(a.bytes(), b.bytes()));
  CHECK(a.version() == b.version());
  CHECK(a.keys() == b.keys());
  REQUIRE(a.tensors().size() == b.tensors().size());
  for (std::size_t i = 0; i < a.tensors().size(); ++i) {
    CHECK(a.tensors()[i].name == b.tensors()[i].name);
    CHECK(a.tensors()[i].dims == b.tensors()[i].dims);
    CHECK(std::ranges::equal(a.tensors()[i].data, b.tensors()[i].data));
  }
}

TEST_CASE("a mapped file and a read file are the same") {
  const TempFolder folder;
  const std::string path = folder.write("m.gguf", GgufBuilder()
                                                      .strings("s", {"a", "b"})
                                                      .f32_tensor("x", {3}, {1, 2, 3})
                                                      .f32_tensor("y", {2, 2}, {1, 2, 3, 4})
                                                      .build());
  const auto mapped = ModelFile::open(path, LoadMethod::kMap);
  const auto read = ModelFile::open(path, LoadMethod::kRead);
  CHECK(mapped->path() == path);
  check_same(*mapped, *read);
  CHECK(mapped->get_strings("s") == read->get_strings("s"));
  for (const TensorInfo& tensor : read->tensors()) {
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data.data()) % 32 == 0);
  }
}

TEST_CASE("a refusal of a file starts with its path") {
  const TempFolder folder;
  const std::string path = folder.write("bad.gguf", "GGML and so on");
  CHECK(refusal_of([&] { ModelFile::open(path); }).message.starts_with(path + ": not a GGUF file"));
}

TEST_CASE("an open file tells when it was written to") {
  const TempFolder folder;
  const std::string path = folder.write("m.gguf", GgufBuilder().u8("a", 1).build());
  const auto file = ModelFile::open(path, LoadMethod::kRead);
  CHECK_NOTHROW(file->check_unchanged());
  folder.write("m.gguf", GgufBuilder().u16("a", 1).build());
  CHECK(refusal_of([&] { file->check_unchanged(); }).says("changed while in use"));
}

TEST_CASE("a value per layer is an array of that length or one scalar for all") {
  const std::string bytes = GgufBuilder()
                                .u32("scalar", 4)
                                .i32("negative", -4)
                                .numbers<std::int32_t>("array", {8, 4, 8})
                                .numbers<std::int32_t>("bad", {8, -1, 8})
                                .f32("float", 1.0F)
                                .build();
  const auto file = parsed(bytes);
  using Values = std::vector<std::uint64_t>;
  CHECK(get_u64_per_layer(*file, "scalar", 3) == Values{4, 4, 4});
  CHECK(get_u64_per_layer(*file, "array", 3) == Values{8, 4, 8});
  CHECK(!get_u64_per_layer(*file, "absent", 3));
  const auto message = [&](const char* key, std::uint32_t n_layers) {
    return refusal_of([&] { get_u64_per_layer(*file, key, n_layers); }).message;
  };
  CHECK(message("array", 2) ==
        "m.gguf: key 'array' has 3 values; one for each of 2 layers expected");
  CHECK(message("bad", 3) == "m.gguf: key 'bad': element 1 is -1; 0 or more expected");
  CHECK(message("negative", 3) == "m.gguf: key 'negative' is -4; 0 or more expected");
  CHECK(message("float", 3) == "m.gguf: key 'float' is an F32; an integer expected");
}

TEST_CASE("published models and vocabularies open, mapped and read") {
  const std::filesystem::path shared = std::string(DETRUN_SOURCE_DIR) + "/../shared";
  if (!std::filesystem::is_directory(shared / "models")) {
    MESSAGE("skipped: no published model files beside the sources (", shared.string(), ")");
    return;
  }
  int n_models = 0;
  int n_vocabularies = 0;
  for (const char* folder : {"models", "tokenizers"}) {
    for (const auto& entry : std::filesystem::directory_iterator(shared / folder)) {
      if (entry.path().extension() != ".gguf") continue;
      CAPTURE(entry.path());
      const auto mapped = ModelFile::open(entry.path().string());
      check_same(*mapped, *ModelFile::open(entry.path().string(), LoadMethod::kRead));
      CHECK(mapped->version() == 3);
      CHECK(mapped->get_string("general.architecture"));
      const auto tokens = mapped->get_strings("tokenizer.ggml.tokens");
      REQUIRE(tokens);
      CHECK(tokens->size() >= 512);
      const auto kinds = mapped->get_i64s("tokenizer.ggml.token_type");
      REQUIRE(kinds);
      CHECK(kinds->size() == tokens->size());
      if (folder == std::string("models")) {
        ++n_models;
        CHECK(mapped->tensors().size() == 48);
        REQUIRE(mapped->find_tensor("token_embd.weight") != nullptr);
        CHECK(mapped->find_tensor("token_embd.weight")->n_rows() == tokens->size());
      } else {
        ++n_vocabularies;
        CHECK(mapped->tensors().empty());
      }
    }
  }
  CHECK(n_models >= 4);
  CHECK(n_vocabularies >= 9);
}

TEST_CASE("a vocabulary of 150,000 entries is read in milliseconds") {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  for (int i = 0; i < 150000; ++i) {
    tokens.push_back("token" + std::to_string(i));
    merges.push_back("tok en" + std::to_string(i));
  }
  const std::string bytes =
      GgufBuilder().strings("tokens", tokens).strings("merges", merges).build();
  const auto start = std::chrono::steady_clock::now();
  const auto file = parsed(bytes);
  const auto views = file->get_strings("tokens");
  const auto spent = std::chrono::steady_clock::now() - start;
  REQUIRE(views->size() == tokens.size());
  CHECK(views->back() == "token149999");
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(spent).count();
  MESSAGE("read in ", ms, " ms");
  // About 3 ms alone; the bound leaves room for sanitizers and a busy machine, and still fails
  // for anything that is not linear.
  CHECK(ms < 1000);
}

}  // namespace
}  // namespace detrun
