// Strict JSON reading through nlohmann-json's SAX interface: no duplicate keys, bounded depth,
// integers kept exact.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "detrun/error.h"
#include "detrun/json.h"

namespace detrun {
namespace {

constexpr std::size_t kDepthMax = 256;

/// Builds a Json bottom-up; `problem` holds the first reason to stop.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(std::int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<std::uint64_t>(INT64_MAX))
      return add(Json(static_cast<std::int64_t>(value)));
    return add(Json(std::uint64_t{value}));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Json(value)); }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (stack_.back().value.find(name) != nullptr) {
      problem = "the key \"" + name + "\" appears twice";
      return false;
    }
    stack_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (problem.empty()) problem = "at byte " + std::to_string(position) + ": " + error.what();
    return false;
  }

  std::string problem;
  Json root;

 private:
  struct Level {
    Json value;
    std::string key;
  };

  bool add(Json value) {
    if (stack_.empty()) {
      root = std::move(value);
    } else if (stack_.back().value.is_array()) {
      stack_.back().value.push_back(std::move(value));
    } else {
      stack_.back().value.set(stack_.back().key, std::move(value));
    }
    return true;
  }
  bool open(Json value) {
    if (stack_.size() >= kDepthMax) {
      problem = "nested deeper than " + std::to_string(kDepthMax);
      return false;
    }
    stack_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    Json value = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(value));
  }

  std::vector<Level> stack_;
};

}  // namespace

Json Json::parse(std::string_view text, std::string_view what) {
  // The library takes a NUL for the end of the text and would not see what follows it.
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    throw_usage(std::string(what) + " is not valid JSON: a NUL character at byte " +
                std::to_string(at + 1));
  }
  Builder builder;
  bool ok = false;
  try {
    ok = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  } catch (const nlohmann::json::exception& error) {
    builder.problem = error.what();
  }
  if (!ok) throw_usage(std::string(what) + " is not valid JSON: " + builder.problem);
  return std::move(builder.root);
}

}  // namespace detrun
