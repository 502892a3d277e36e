// JSON: what is written, what is refused.
#include "detrun/json.h"

#include <doctest/doctest.h>

#include <limits>

#include "detrun/error.h"

namespace detrun {
using namespace std::string_view_literals;

TEST_CASE("values are written as JSON readers expect them") {
  Json json = Json::object();
  json.set("z", 1);
  json.set("a", Json(JsonArray{Json(true), Json(), Json("\xC3\xA9\"\\\n\x01"), Json(0.1f)}));
  json.set("big", std::int64_t{9007199254740993});
  CHECK(json.dump() ==
        "{\"z\":1,\"a\":[true,null,\"\xC3\xA9\\\"\\\\\\n\\u0001\",0.1],"
        "\"big\":9007199254740993}");
  json.set("z", 2);
  CHECK(json.find("z")->as_i64() == 2);
  CHECK(Json(std::numeric_limits<float>::infinity()).dump() == "null");
}

TEST_CASE("indented output has a member a line") {
  Json json = Json::object();
  json.set_path("model.sha256", "ab");
  json.set_path("model.name", "m");
  json.set("empty", Json::array());
  CHECK(
      json.dump(2) ==
      "{\n  \"model\": {\n    \"sha256\": \"ab\",\n    \"name\": \"m\"\n  },\n  \"empty\": []\n}");
}

TEST_CASE("the canonical form sorts keys bytewise") {
  const Json json = Json::parse(R"({"b": [2, 1], "a": {"d": 1, "B": "x"}})", "input");
  CHECK(json.canonical() == R"({"a":{"B":"x","d":1},"b":[2,1]})");
}

TEST_CASE("bytes that are not UTF-8 become base64") {
  CHECK(Json::bytes("ok").dump() == "\"ok\"");
  CHECK(Json::bytes("\xFF\xFE"sv).dump() == R"({"b64":"//4="})");
}

TEST_CASE("what is written reads back the same") {
  const std::string text = R"({"a":[1,-2,18446744073709551615,0.5,"x\u00e9",null,true],"b":{}})";
  CHECK(Json::parse(Json::parse(text, "t").dump(), "t").dump() == Json::parse(text, "t").dump());
}

TEST_CASE("broken JSON is a usage error that names the input") {
  const std::string deep = std::string(300, '[') + std::string(300, ']');
  for (const std::string& bad :
       {std::string("{"), std::string("{} x"), std::string("[1,]"), std::string(R"({"a":1,"a":2})"),
        std::string("\"\xFF\""), deep, std::string(), std::string("NaN"), std::string("'a'"),
        std::string("{}\0", 3), std::string("{}\0 x", 5), std::string("{\0}", 3)}) {
    CAPTURE(bad);
    try {
      Json::parse(bad, "the file x.json");
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kUsage);
      CHECK(std::string(error.what()).find("x.json") != std::string::npos);
    }
  }
}

}  // namespace detrun
