// The field list and typed access to fields.
#include <doctest/doctest.h>

#include <set>

#include "detrun/trace.h"

using namespace detrun;

TEST_CASE("every field is listed once and under its constant") {
  std::set<std::string_view> names;
  for (const FieldInfo& info : run_fields()) {
    CHECK_MESSAGE(names.insert(info.name).second, info.name);
    CHECK(!info.doc.empty());
    REQUIRE(find_field(info.name) != nullptr);
    CHECK(find_field(info.name)->name == info.name);
  }
  CHECK(names.contains(field::model_sha256));
  CHECK(names.contains(field::log_index));
  CHECK(find_field(field::text)->phase == FieldPhase::kEnd);
  CHECK(find_field(field::prompt)->privacy == FieldPrivacy::kContent);
  // An unsalted digest of a document that holds environment values can be guessed.
  CHECK(find_field(field::stack_digest)->privacy == FieldPrivacy::kContent);
}

TEST_CASE("no field name is the beginning of another's path") {
  for (const FieldInfo& a : run_fields()) {
    for (const FieldInfo& b : run_fields()) {
      const std::string path = std::string(a.name) + ".";
      CHECK_MESSAGE(!b.name.starts_with(path), a.name, " and ", b.name);
    }
  }
}

TEST_CASE("a tag has the row of all tags, an unknown name has none") {
  REQUIRE(find_field("tag.case") != nullptr);
  CHECK(find_field("tag.case")->privacy == FieldPrivacy::kContent);
  CHECK(find_field("tag.") == nullptr);
  CHECK(find_field("tag") == nullptr);
  CHECK(find_field("model.sha512") == nullptr);
  CHECK(find_field("") == nullptr);
}

TEST_CASE("typed reading gives nothing for an absent field or another type") {
  const FieldMap fields = {{"a", std::int64_t{-7}}, {"b", "text"}, {"c", Blob{"\xff"}}, {"d", {}}};
  CHECK(field_i64(fields, "a") == -7);
  CHECK(field_text(fields, "b") == "text");
  CHECK(field_blob(fields, "c") == "\xff");
  CHECK(!field_text(fields, "a"));
  CHECK(!field_i64(fields, "b"));
  CHECK(!field_blob(fields, "d"));
  CHECK(!field_i64(fields, "e"));
}

TEST_CASE("fields are in bytewise order of their names") {
  const FieldMap fields = {{"\xc3\xa9", {}}, {"z", {}}, {"a.b", {}}, {"a", {}}, {"ab", {}}};
  std::vector<std::string> names;
  for (const auto& [name, value] : fields) names.push_back(name);
  CHECK(names == std::vector<std::string>{"a", "a.b", "ab", "z", "\xc3\xa9"});
}

TEST_CASE("tokens are stored as little-endian i32 and read back") {
  const std::vector<std::int32_t> tokens = {1, -2, 0x01020304, INT32_MIN, INT32_MAX};
  const Blob blob = tokens_to_blob(tokens);
  REQUIRE(blob.bytes.size() == 20);
  CHECK(blob.bytes.substr(8, 4) == std::string("\x04\x03\x02\x01", 4));
  CHECK(blob_to_tokens(blob.bytes) == tokens);
  CHECK(blob_to_tokens("") == std::vector<std::int32_t>{});
  CHECK(tokens_to_blob({}).bytes.empty());
  CHECK(!blob_to_tokens("abc"));
}
