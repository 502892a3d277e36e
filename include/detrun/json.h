// A JSON value: ordered objects, integers kept as integers, strict parsing. nlohmann-json hides
// behind the parser; the writer is our own because bytes must never depend on a library version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace detrun {

class Json;
using JsonArray = std::vector<Json>;
/// Members in order of insertion; `Json::set` keeps names unique.
using JsonObject = std::vector<std::pair<std::string, Json>>;

/// One JSON value. A float is written with the shortest digits that read back as the same binary32
/// or binary64. Seeds and other 64-bit numbers beyond 2^53 are given as strings by the caller.
class Json {
 public:
  Json() : value_(nullptr) {}
  Json(std::nullptr_t) : value_(nullptr) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(std::uint64_t value) : value_(value) {}
  Json(float value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(JsonArray value) : value_(std::move(value)) {}
  Json(JsonObject value) : value_(std::move(value)) {}
  static Json array() { return Json(JsonArray{}); }
  static Json object() { return Json(JsonObject{}); }
  /// The value, or null where there is none.
  template <class T>
  static Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
  }
  /// A string when the bytes are UTF-8, otherwise {"b64": "..."}.
  static Json bytes(std::string_view value);

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_object() const { return std::holds_alternative<JsonObject>(value_); }
  bool is_array() const { return std::holds_alternative<JsonArray>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_integer() const {
    return std::holds_alternative<std::int64_t>(value_) ||
           std::holds_alternative<std::uint64_t>(value_);
  }

  /// Sets or replaces a member of an object. DETRUN_CHECK on another kind of value.
  Json& set(std::string_view name, Json value);
  /// Sets a member through nested objects: "model.sha256" makes {"model": {"sha256": ...}}.
  Json& set_path(std::string_view dotted, Json value);
  void push_back(Json value);
  /// Member of an object, or nullptr.
  const Json* find(std::string_view name) const;
  const JsonArray& as_array() const;
  const JsonObject& as_object() const;
  const std::string& as_string() const;
  std::int64_t as_i64() const;
  /// The number; nullopt for anything but an integer of 64 bits with a sign.
  std::optional<std::int64_t> to_i64() const;

  /// indent < 0: one line, no spaces. Non-ASCII is written as it is; control characters, '"' and
  /// '\\' are escaped. Strings must be UTF-8 (use `bytes`): DETRUN_CHECK otherwise.
  std::string dump(int indent = -1) const;
  /// Canonical form (RFC 8785 restricted to what we use): keys sorted bytewise, no spaces, integers
  /// and strings only; DETRUN_CHECK on a float.
  std::string canonical() const;
  /// Strict RFC 8259; duplicate keys, depth over 256 and trailing text are errors. Error kUsage
  /// that names `what`.
  static Json parse(std::string_view text, std::string_view what);

 private:
  friend struct JsonAccess;
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, float, double, std::string,
               JsonArray, JsonObject>
      value_;
};

}  // namespace detrun
