// The field table, built from run_fields.def, and typed access to a run's fields.
// Not a parser of stored rows: what a ledger holds is judged in the ledger room.
#include <bit>
#include <cstring>

#include "detrun/trace.h"

namespace detrun {

static_assert(std::endian::native == std::endian::little, "token blobs are copied as they lie");

namespace {

constexpr std::string_view kTagPrefix = "tag.";

/// The row every tag shares: a tag is what the user wrote about the run, so it is content.
constexpr FieldInfo kTagField{"tag.", FieldPhase::kStart, FieldForm::kPlain, FieldPrivacy::kContent,
                              "tag given with the run"};

template <typename T>
const T* typed(const FieldMap& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

const std::vector<FieldInfo>& run_fields() {
  using enum FieldPhase;
  using enum FieldForm;
  using enum FieldPrivacy;
  static const std::vector<FieldInfo> kFields = {
#define DETRUN_FIELD(id, name, phase, form, privacy, doc) {name, phase, form, privacy, doc},
#include "detrun/run_fields.def"
#undef DETRUN_FIELD
  };
  return kFields;
}

const FieldInfo* find_field(std::string_view name) {
  for (const FieldInfo& info : run_fields()) {
    if (info.name == name) return &info;
  }
  const bool is_tag = name.starts_with(kTagPrefix) && name.size() > kTagPrefix.size();
  return is_tag ? &kTagField : nullptr;
}

std::optional<std::int64_t> field_i64(const FieldMap& fields, std::string_view name) {
  const auto* value = typed<std::int64_t>(fields, name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::string> field_text(const FieldMap& fields, std::string_view name) {
  const auto* value = typed<std::string>(fields, name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::string> field_blob(const FieldMap& fields, std::string_view name) {
  const auto* value = typed<Blob>(fields, name);
  return value != nullptr ? std::optional(value->bytes) : std::nullopt;
}

Blob tokens_to_blob(const std::vector<std::int32_t>& tokens) {
  Blob blob;
  blob.bytes.resize(tokens.size() * sizeof(std::int32_t));
  if (!tokens.empty()) std::memcpy(blob.bytes.data(), tokens.data(), blob.bytes.size());
  return blob;
}

std::optional<std::vector<std::int32_t>> blob_to_tokens(std::string_view bytes) {
  if (bytes.size() % sizeof(std::int32_t) != 0) return std::nullopt;
  std::vector<std::int32_t> tokens(bytes.size() / sizeof(std::int32_t));
  if (!tokens.empty()) std::memcpy(tokens.data(), bytes.data(), bytes.size());
  return tokens;
}

}  // namespace detrun
