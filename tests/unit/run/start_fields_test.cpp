// Start fields out of model files that say odd things about themselves.
#include "run/start_fields.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/support/gguf_builder.h"

namespace detrun {
namespace {

std::string provenance(const test::GgufBuilder& builder) {
  const test::TempFolder folder;
  return provenance_of(*ModelFile::open(folder.write("m.gguf", builder.build())));
}

TEST_CASE("provenance takes author, licence, source and base model, sorted, as strings") {
  test::GgufBuilder file;
  file.string("general.url", "https://example.org")
      .string("general.license", "apache-2.0")
      .string("general.license.link", "L")
      .string("general.base_model.0.name", "Base")
      .u32("general.base_model.count", 1)
      .string("general.name", "left out")
      .strings("general.source.tags", {"an array"})
      .string("general.source.url", "S");
  CHECK(provenance(file) ==
        R"({"general.base_model.0.name":"Base","general.base_model.count":"1",)"
        R"("general.license":"apache-2.0","general.license.link":"L","general.source.url":"S",)"
        R"("general.url":"https://example.org"})");
}

TEST_CASE("provenance that is no text is kept as bytes, a key that is not ASCII is left out") {
  test::GgufBuilder file;
  file.string("general.author", "\xff").string("general.author.\xc3\xa9", "x");
  CHECK(provenance(file) == R"({"general.author":{"b64":"/w=="}})");
  CHECK(provenance(test::GgufBuilder{}.string("general.name", "n")) == "{}");
}

TEST_CASE("a path is recorded from the root, tidied only where that names the same file") {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder.path() / "a/b");
  const std::string file = folder.write("a/m.gguf", "x");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path() / "a/b");
  const std::string found = absolute_path(".././m.gguf");
  std::filesystem::current_path(before);
  CHECK(found == std::filesystem::canonical(file).string());
  std::filesystem::create_directory_symlink(folder.path() / "a/b", folder.path() / "link");
  const std::string beyond_link = folder.file("link/../m.gguf");
  CHECK(absolute_path(beyond_link) == beyond_link);
}

TEST_CASE("text with NUL or invalid UTF-8 becomes a blob") {
  CHECK(std::holds_alternative<std::string>(text_or_blob("plain \xc3\xa9")));
  CHECK(std::holds_alternative<Blob>(text_or_blob(std::string_view("a\0b", 3))));
  CHECK(std::holds_alternative<Blob>(text_or_blob("\xc0\x80")));
}

}  // namespace
}  // namespace detrun
