// What a run is made of: named fields, steps, and the list of all field names. SQL rows, JSON,
// `show`, export and seal follow from the list in run_fields.def. Pure values, no I/O.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "detrun/digest.h"
#include "detrun/json.h"

namespace detrun {

/// A sealed blob. (Text is std::string; it must be UTF-8 without NUL.)
struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};

/// A field's value as sealed: NULL, 64-bit integer, text, blob. Never a float.
using FieldValue = std::variant<std::monostate, std::int64_t, std::string, Blob>;

/// Which entry brings the field in.
enum class FieldPhase { kStart, kLate, kEnd };

/// How a value is shown in JSON and by `show`.
enum class FieldForm {
  kPlain,   ///< integer or text as it is
  kBytes,   ///< blob that is usually text: string or {"b64"}
  kTokens,  ///< blob of little-endian i32: array of integers
  kDigest,  ///< blob of 16 or 32 bytes: lower-case hex
  kJson,    ///< text that is a JSON document: embedded
};

/// Redaction removes the content of these (kContent) and keeps the rest (kPublic).
enum class FieldPrivacy { kPublic, kContent };

struct FieldInfo {
  std::string_view name;  ///< dotted: "model.sha256" is {"model": {"sha256": ...}} in JSON
  FieldPhase phase;
  FieldForm form;
  FieldPrivacy privacy;
  std::string_view doc;  ///< one line, for detrun-ledger(5) and `show`
};

/// Names as constants, so that a typing error does not compile.
namespace field {
#define DETRUN_FIELD(id, name, phase, form, privacy, doc) \
  inline constexpr std::string_view id = name;
#include "detrun/run_fields.def"
#undef DETRUN_FIELD
}  // namespace field

/// Every listed field, in the order of `show`. Tags are not listed: their names are "tag." + key.
const std::vector<FieldInfo>& run_fields();
/// The row of a name; a "tag." name gets the row of all tags; nullptr for an unknown one.
const FieldInfo* find_field(std::string_view name);

/// A run's fields by name, in bytewise order of names (std::less on std::string is bytewise).
using FieldMap = std::map<std::string, FieldValue, std::less<>>;

/// Typed reading; nullopt when absent or of another type.
std::optional<std::int64_t> field_i64(const FieldMap& fields, std::string_view name);
std::optional<std::string> field_text(const FieldMap& fields, std::string_view name);
std::optional<std::string> field_blob(const FieldMap& fields, std::string_view name);
template <std::size_t N>
Blob to_blob(const std::array<std::uint8_t, N>& digest) {
  return Blob{std::string(reinterpret_cast<const char*>(digest.data()), N)};
}

Blob tokens_to_blob(const std::vector<std::int32_t>& tokens);
/// nullopt when the length is no multiple of 4.
std::optional<std::vector<std::int32_t>> blob_to_tokens(std::string_view bytes);

/// One output token. `piece` is text and lies outside the step's leaf (the text field covers it).
struct StepRecord {
  std::uint64_t index;
  std::int32_t token;
  Xxh3Digest logits_xxh3;
  std::uint32_t margin_bits;   ///< binary32
  std::uint32_t logprob_bits;  ///< binary32
  std::string piece;           ///< bytes this token added to the text
};

/// A run as read back.
struct RunRecord {
  FieldMap fields;
  std::vector<StepRecord> steps;
  bool sealed = false;
  bool live = false;  ///< not sealed and its writer still holds its lock
};

/// `detrun.run/1`. The head alone when `with_steps` is false.
Json run_to_json(const RunRecord& run, bool with_steps);

}  // namespace detrun
