// A run as the document detrun.run/1. Total: whatever a damaged or hostile ledger holds in a field
// is shown in some form, never an abort and never left out.
#include <bit>
#include <cmath>

#include "detrun/error.h"
#include "detrun/text.h"
#include "detrun/trace.h"

namespace detrun {
namespace {

constexpr std::int64_t kJsonIntegerMax = std::int64_t{1} << 53;

/// A member name must be UTF-8; a name that is not is escaped visibly.
std::string member_name(std::string_view name) {
  return is_utf8(name) ? std::string(name) : escape_for_terminal(name);
}

/// Readers in other languages hold numbers as binary64: beyond 2^53 they would lose digits.
Json integer_to_json(std::int64_t value) {
  if (value > kJsonIntegerMax || value < -kJsonIntegerMax) return Json(std::to_string(value));
  return Json(value);
}

/// JSON has no infinity and no NaN: such a value is given as text.
Json bits_to_json(std::uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  if (!std::isfinite(value)) return Json(format_f32(value));
  return Json(value);
}

Json tokens_to_json(const std::vector<std::int32_t>& tokens) {
  Json array = Json::array();
  for (const std::int32_t token : tokens) array.push_back(Json(std::int64_t{token}));
  return array;
}

Json blob_to_json(const Blob& blob, FieldForm form) {
  if (form == FieldForm::kTokens) {
    if (const auto tokens = blob_to_tokens(blob.bytes)) return tokens_to_json(*tokens);
  }
  if (form == FieldForm::kDigest) return Json(to_hex(as_bytes(blob.bytes)));
  return Json::bytes(blob.bytes);
}

Json text_to_json(const std::string& text, FieldForm form) {
  if (form == FieldForm::kJson) {
    try {
      return Json::parse(text, "field");
    } catch (const Error&) {
      // Recorded documents are well-formed; one that is not is shown as the text it is.
    }
  }
  return Json::bytes(text);
}

Json value_to_json(const FieldValue& value, FieldForm form) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return integer_to_json(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return text_to_json(*text, form);
  if (const auto* blob = std::get_if<Blob>(&value)) return blob_to_json(*blob, form);
  return Json(nullptr);
}

/// The members of the stack document with digest and objects beside them; what is no object stays
/// under "document".
Json stack_to_json(const FieldMap& fields) {
  Json stack = Json::object();
  if (const auto found = fields.find(field::stack_document); found != fields.end()) {
    const Json document = value_to_json(found->second, FieldForm::kJson);
    if (document.is_object()) {
      for (const auto& [name, value] : document.as_object()) stack.set(name, value);
    } else {
      stack.set("document", document);
    }
  }
  if (const auto found = fields.find(field::stack_objects); found != fields.end()) {
    stack.set("objects", value_to_json(found->second, FieldForm::kJson));
  }
  if (const auto found = fields.find(field::stack_digest); found != fields.end()) {
    stack.set("digest", value_to_json(found->second, FieldForm::kDigest));
  }
  return stack;
}

Json steps_to_json(const std::vector<StepRecord>& steps) {
  Json array = Json::array();
  for (const StepRecord& step : steps) {
    Json row = Json::object();
    row.set("step", Json(step.index));
    row.set("token", Json(std::int64_t{step.token}));
    row.set("logits_xxh3", Json(to_hex(step.logits_xxh3)));
    row.set("margin", bits_to_json(step.margin_bits));
    row.set("logprob", bits_to_json(step.logprob_bits));
    array.push_back(std::move(row));
  }
  return array;
}

bool is_stack_field(std::string_view name) { return name.starts_with("stack."); }

/// A run without a recorded status has not ended: what its writer does now stands in its place.
void set_status_of_open_run(const RunRecord& run, Json& document) {
  if (run.fields.contains(field::status)) return;
  if (!run.sealed) document.set("status", Json(run.live ? "running" : "interrupted"));
}

/// Tags, and names this version does not know: flat, because their dots are the user's own.
void set_unlisted_fields(const RunRecord& run, Json& document) {
  constexpr std::string_view kTag = "tag.";
  Json tags = Json::object();
  Json other = Json::object();
  for (const auto& [name, value] : run.fields) {
    if (find_field(name) == nullptr) {
      other.set(member_name(name), value_to_json(value, FieldForm::kPlain));
    } else if (name.starts_with(kTag)) {
      const std::string key = name.substr(kTag.size());
      tags.set(member_name(key), value_to_json(value, FieldForm::kPlain));
    }
  }
  document.set("tags", std::move(tags));
  if (!other.as_object().empty()) document.set("other", std::move(other));
}

}  // namespace

Json run_to_json(const RunRecord& run, bool with_steps) {
  Json document = Json::object();
  document.set("schema", Json("detrun.run/1"));
  for (const std::string_view name : {field::id, field::number}) {
    const auto found = run.fields.find(name);
    if (found != run.fields.end()) document.set(name, value_to_json(found->second, {}));
  }
  set_status_of_open_run(run, document);
  for (const FieldInfo& info : run_fields()) {
    const auto found = run.fields.find(info.name);
    if (found == run.fields.end() || is_stack_field(info.name)) continue;
    document.set_path(info.name, value_to_json(found->second, info.form));
  }
  document.set("stack", stack_to_json(run.fields));
  set_unlisted_fields(run, document);
  if (with_steps) {
    std::vector<std::int32_t> tokens;
    tokens.reserve(run.steps.size());
    for (const StepRecord& step : run.steps) tokens.push_back(step.token);
    document.set("tokens", tokens_to_json(tokens));
    document.set("steps", steps_to_json(run.steps));
  }
  return document;
}

}  // namespace detrun
