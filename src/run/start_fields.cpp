// See start_fields.h.
#include "run/start_fields.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include "detrun/digest.h"
#include "detrun/host.h"
#include "detrun/json.h"
#include "detrun/text.h"
#include "run/product_plan.h"
#include "run/profile.h"

namespace detrun {
namespace {

bool is_provenance(std::string_view key) {
  static constexpr std::array<std::string_view, 5> kPrefixes = {
      "general.license", "general.source", "general.base_model", "general.organization",
      "general.author"};
  if (key == "general.url" || key == "general.repo_url") return true;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

void add_params(FieldMap& fields, const RecordOptions& options, const ModelSpec& spec,
                const BackendInfo& backend, const Prompt& prompt, std::uint32_t n_ctx) {
  if (options.n) fields.emplace(field::params_n, static_cast<std::int64_t>(*options.n));
  fields.emplace(field::params_ctx, std::int64_t{n_ctx});
  fields.emplace(field::params_kv, options.kv);
  fields.emplace(field::params_temp, "0");
  fields.emplace(field::params_seed, "0");
  fields.emplace(field::params_threads, std::int64_t{backend.n_threads});
  fields.emplace(field::params_backend, backend.name);
  fields.emplace(field::params_isa, backend.isa);
  if (backend.device) fields.emplace(field::params_graph, std::int64_t{backend.graph ? 1 : 0});
  const std::uint32_t chunk = chunk_rows(options.engine.chunk, spec, n_ctx, backend);
  fields.emplace(field::params_chunk, std::int64_t{chunk});
  fields.emplace(field::params_bos, std::int64_t{prompt.bos ? 1 : 0});
}

}  // namespace

FieldValue text_or_blob(std::string_view bytes) {
  if (is_utf8(bytes) && bytes.find('\0') == std::string_view::npos) return std::string(bytes);
  return Blob{std::string(bytes)};
}

std::string absolute_path(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failure);
  if (failure) return path;
  const std::filesystem::path normal = absolute.lexically_normal();
  return std::filesystem::equivalent(absolute, normal, failure) ? normal.string()
                                                                : absolute.string();
}

std::string provenance_of(const ModelFile& file) {
  Json found = Json::object();
  for (const std::string& key : file.keys()) {
    const bool ascii = std::all_of(key.begin(), key.end(), [](char c) { return c > 0; });
    if (!ascii || !is_provenance(key)) continue;
    if (file.type_of(key) == MetaType::kString) {
      found.set(key, Json::bytes(*file.get_string(key)));
    } else if (file.type_of(key) == MetaType::kU32 || file.type_of(key) == MetaType::kU64) {
      found.set(key, std::to_string(*file.get_u64(key)));
    }
  }
  return found.canonical();
}

FieldMap model_fields(const LoadedModel& model) {
  FieldMap fields;
  const ModelSpec& spec = model.model->spec();
  fields.emplace(field::model_size_bytes, static_cast<std::int64_t>(model.file->bytes().size()));
  if (!spec.name.empty()) fields.emplace(field::model_name, text_or_blob(spec.name));
  fields.emplace(field::model_arch, text_or_blob(spec.arch));
  fields.emplace(field::model_quantization, spec.quantization);
  fields.emplace(field::model_tokenizer_sha256, to_blob(model.tokenizer->digest()));
  if (const auto chat_template = model.file->get_string("tokenizer.chat_template")) {
    fields.emplace(field::model_chat_template_sha256, to_blob(sha256(*chat_template)));
  }
  const std::string provenance = provenance_of(*model.file);
  if (provenance != "{}") fields.emplace(field::model_provenance, provenance);
  return fields;
}

FieldMap start_fields(const RecordOptions& options, const LoadedModel& model,
                      const BackendInfo& backend, const std::optional<ProductPlan>& plan,
                      const Prompt& prompt, std::uint32_t n_ctx) {
  FieldMap fields = model_fields(model);
  fields.emplace(field::model_path, Blob{absolute_path(options.model_path)});
  fields.emplace(field::started_at, utc_timestamp(unix_time_ms()));
  fields.emplace(field::operator_name, operator_name());
  fields.emplace(field::numerics_profile, options.numerics);
  fields.emplace(field::numerics_version, std::int64_t{kNumericsVersion});
  add_params(fields, options, model.model->spec(), backend, prompt, n_ctx);
  if (plan) fields.emplace(field::params_products, plan_to_json(*plan));
  fields.emplace(field::prompt_source, options.tokens ? "tokens" : options.prompt_source);
  if (!options.tokens) fields.emplace(field::prompt, Blob{options.prompt});
  fields.emplace(field::prompt_tokens, tokens_to_blob(prompt.tokens));
  fields.emplace(field::tool_version, build_info().version);
  const std::string stack =
      collect_fingerprint(backend, options.numerics, library_of(plan)).canonical();
  fields.emplace(field::stack_digest, to_blob(sha256(stack)));
  fields.emplace(field::stack_document, stack);
  for (const auto& [key, value] : options.tags) fields.emplace("tag." + key, value);
  return fields;
}

}  // namespace detrun
