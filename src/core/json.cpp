// The JSON value and its writer. The parser is in json_parse.cpp.
#include "detrun/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun {
namespace {

void append_string(std::string& out, const std::string& text) {
  DETRUN_CHECK(is_utf8(text));
  static constexpr char kDigits[] = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (byte < 0x20 || byte == 0x7F) {
          out += "\\u00";
          out.push_back(kDigits[byte >> 4]);
          out.push_back(kDigits[byte & 15]);
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
}

template <class Float>
void append_float(std::string& out, Float value) {
  // JSON has no infinities: a null is honest, a huge number would not be.
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

struct Writer {
  int indent;      // < 0: one line
  bool canonical;  // sorted keys, no floats
  std::string out;

  void line(int depth) {
    if (indent < 0) return;
    out.push_back('\n');
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
  }

  template <class Range, class Each>
  void sequence(char open, char close, const Range& range, int depth, Each&& each) {
    out.push_back(open);
    bool first = true;
    for (const auto& item : range) {
      if (!first) out.push_back(',');
      first = false;
      line(depth + 1);
      each(item);
    }
    if (!first) line(depth);
    out.push_back(close);
  }
};

}  // namespace

Json Json::bytes(std::string_view value) {
  if (is_utf8(value)) return Json(value);
  return Json(JsonObject{{"b64", Json(base64(value))}});
}

Json& Json::set(std::string_view name, Json value) {
  DETRUN_CHECK(is_object());
  auto& members = std::get<JsonObject>(value_);
  for (auto& [key, old] : members) {
    if (key == name) return old = std::move(value);
  }
  return members.emplace_back(std::string(name), std::move(value)).second;
}

Json& Json::set_path(std::string_view dotted, Json value) {
  const std::size_t dot = dotted.find('.');
  if (dot == std::string_view::npos) return set(dotted, std::move(value));
  const std::string_view head = dotted.substr(0, dot);
  DETRUN_CHECK(is_object());
  Json* inner = nullptr;
  for (auto& [key, old] : std::get<JsonObject>(value_)) {
    if (key == head) inner = &old;
  }
  if (inner == nullptr || !inner->is_object()) inner = &set(head, Json::object());
  return inner->set_path(dotted.substr(dot + 1), std::move(value));
}

void Json::push_back(Json value) {
  DETRUN_CHECK(is_array());
  std::get<JsonArray>(value_).push_back(std::move(value));
}

const Json* Json::find(std::string_view name) const {
  if (!is_object()) return nullptr;
  for (const auto& [key, value] : std::get<JsonObject>(value_)) {
    if (key == name) return &value;
  }
  return nullptr;
}

const JsonArray& Json::as_array() const {
  DETRUN_CHECK(is_array());
  return std::get<JsonArray>(value_);
}
const JsonObject& Json::as_object() const {
  DETRUN_CHECK(is_object());
  return std::get<JsonObject>(value_);
}
const std::string& Json::as_string() const {
  DETRUN_CHECK(is_string());
  return std::get<std::string>(value_);
}
std::int64_t Json::as_i64() const {
  const std::optional<std::int64_t> value = to_i64();
  DETRUN_CHECK(value.has_value());
  return *value;
}

std::optional<std::int64_t> Json::to_i64() const {
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) {
    if (*value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(*value);
  }
  const auto* value = std::get_if<std::int64_t>(&value_);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

namespace {

void write(Writer& w, const Json& json, int depth);

}  // namespace

/// Opens the variant to the writer below without making it part of the door.
struct JsonAccess {
  template <class Visitor>
  static void visit(const Json& json, Visitor&& visitor) {
    std::visit(std::forward<Visitor>(visitor), json.value_);
  }
};

namespace {

struct Visitor {
  Writer& w;
  int depth;
  void operator()(std::nullptr_t) const { w.out += "null"; }
  void operator()(bool value) const { w.out += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { w.out += std::to_string(value); }
  void operator()(std::uint64_t value) const { w.out += std::to_string(value); }
  void operator()(float value) const { number(value); }
  void operator()(double value) const { number(value); }
  void operator()(const std::string& value) const { append_string(w.out, value); }
  void operator()(const JsonArray& value) const {
    w.sequence('[', ']', value, depth, [&](const Json& item) { write(w, item, depth + 1); });
  }
  void operator()(const JsonObject& value) const {
    std::vector<const std::pair<std::string, Json>*> members;
    members.reserve(value.size());
    for (const auto& member : value) members.push_back(&member);
    if (w.canonical) {
      std::sort(members.begin(), members.end(),
                [](const auto* a, const auto* b) { return a->first < b->first; });
    }
    w.sequence('{', '}', members, depth, [&](const auto* member) {
      append_string(w.out, member->first);
      w.out += w.indent < 0 ? ":" : ": ";
      write(w, member->second, depth + 1);
    });
  }

 private:
  template <class Float>
  void number(Float value) const {
    DETRUN_CHECK(!w.canonical);
    append_float(w.out, value);
  }
};

void write(Writer& w, const Json& json, int depth) { JsonAccess::visit(json, Visitor{w, depth}); }

}  // namespace

std::string Json::dump(int indent) const {
  Writer writer{indent, false, {}};
  write(writer, *this, 0);
  return writer.out;
}

std::string Json::canonical() const {
  Writer writer{-1, true, {}};
  write(writer, *this, 0);
  return writer.out;
}

}  // namespace detrun
