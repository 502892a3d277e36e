// See recorded_profile.h.
#include "run/recorded_profile.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/json.h"
#include "detrun/text.h"
#include "run/compare_steps.h"
#include "run/product_plan.h"
#include "run/profile.h"

namespace detrun {
namespace {

/// "products.architecture" to its value, of every leaf.
void add_leaves(const Json& json, const std::string& name,
                std::map<std::string, std::string>& leaves) {
  if (!json.is_object()) {
    leaves.emplace(name, json.is_string() ? json.as_string() : json.dump());
    return;
  }
  for (const auto& [key, value] : json.as_object()) {
    std::string path = name;
    if (!path.empty()) path += '.';
    add_leaves(value, path.append(key), leaves);
  }
}

std::map<std::string, std::string> leaves_of(const std::string& binding) {
  std::map<std::string, std::string> leaves;
  add_leaves(Json::parse(binding, "stack.document"), "", leaves);
  return leaves;
}

/// "products.architecture recorded 'sm_90', here 'sm_80', ...": every field that differs.
std::string differences(const std::string& recorded, const std::string& here) {
  if (recorded == here) return {};
  std::map<std::string, std::pair<std::string, std::string>> fields;
  for (const auto& [name, value] : leaves_of(recorded)) fields[name].first = quoted(value);
  for (const auto& [name, value] : leaves_of(here)) fields[name].second = quoted(value);
  std::string text;
  for (const auto& [name, values] : fields) {
    if (values.first == values.second) continue;
    text += (text.empty() ? "" : ", ") + escape_for_terminal(name) + " recorded " +
            (values.first.empty() ? "nothing" : values.first) + ", here " +
            (values.second.empty() ? "nothing" : values.second);
  }
  return text.empty() ? "the same values in another form" : text;
}

/// The member "binding" of the stack document; nullopt when there is none.
std::optional<Json> binding_in(const FieldMap& fields) {
  const auto document = field_text(fields, field::stack_document);
  if (!document) return std::nullopt;
  try {
    const Json stack = Json::parse(*document, "stack.document");
    const Json* binding = stack.is_object() ? stack.find("binding") : nullptr;
    if (binding != nullptr && binding->is_object()) return *binding;
  } catch (const Error&) {
    return std::nullopt;
  }
  return std::nullopt;
}

/// The profile that a binding names; empty: none.
std::string profile_in(const Json& binding) {
  const Json* numerics = binding.find("numerics");
  const Json* profile =
      numerics != nullptr && numerics->is_object() ? numerics->find("profile") : nullptr;
  return profile != nullptr && profile->is_string() ? profile->as_string() : std::string();
}

}  // namespace

std::optional<RecordedProfile> read_profile(const FieldMap& fields, std::string& why) {
  RecordedProfile profile;
  profile.name = field_text(fields, field::numerics_profile).value_or("unknown");
  const std::int64_t version = field_i64(fields, field::numerics_version).value_or(0);
  const bool known = profile.name == kPortable || profile.name == kCublas;
  if (!known || version != kNumericsVersion) {
    why = "recorded under the arithmetic contract " + quoted(profile.name) + " version " +
          std::to_string(version) + ", this build computes portable and cublas version " +
          std::to_string(kNumericsVersion) + "; use a build that knows it";
    return std::nullopt;
  }
  const auto plan = field_text(fields, field::params_products);
  const auto binding = binding_in(fields);
  if (binding && profile_in(*binding) != profile.name) {
    why = "numerics.profile is " + quoted(profile.name) + ", but the stack is bound to " +
          quoted(profile_in(*binding));
    return std::nullopt;
  }
  if (profile.name == kPortable) {
    if (!plan && !fields.contains(field::params_products)) return profile;
    why = "recorded under the profile portable, but the ledger holds params.products";
    return std::nullopt;
  }
  if (!plan) {
    why = "recorded under the profile cublas, but the ledger does not hold params.products";
    return std::nullopt;
  }
  profile.plan = plan_from_json(*plan, why);
  if (!profile.plan) return std::nullopt;
  const std::int64_t rows = profile.plan->rows;
  if (field_i64(fields, field::params_chunk) != rows ||
      rows > field_i64(fields, field::params_ctx).value_or(0)) {
    why = "params.products is for " + std::to_string(rows) +
          " rows, which params.chunk and params.ctx do not allow";
    return std::nullopt;
  }
  if (!binding) {
    why =
        "recorded under the profile cublas, but the ledger does not hold the stack it is bound to";
    return std::nullopt;
  }
  profile.binding = binding->dump();
  return profile;
}

std::string foreign_product(const ProductPlan& plan, const ModelFile& model) {
  for (const PinnedProduct& product : plan.products) {
    const bool known =
        std::any_of(model.tensors().begin(), model.tensors().end(), [&](const TensorInfo& tensor) {
          return tensor.type == product.type && tensor.n_rows() == product.n &&
                 tensor.row_elems() == product.k;
        });
    if (known) continue;
    return "params.products has a product of " + std::string(qtype_info(product.type).name) + " " +
           std::to_string(product.n) + " x " + std::to_string(product.k) +
           ", which is no matrix of the model";
  }
  return {};
}

ProfileStart start_profile_of(const RecordedProfile& recorded, Backend& backend, bool force,
                              TestedProducts& tested) {
  if (!recorded.plan) {
    backend.use_products(nullptr);
    return {true, {}};
  }
  std::string library;
  try {
    library = backend.product_library();
  } catch (const Error& error) {
    if (error.kind() != ExitCode::kUsage) throw;
    return {false, std::string(error.what()) + "; replay the run on the stack that recorded it"};
  }
  const std::string here = binding_of(backend.info(), recorded.name, library).canonical();
  const std::string different = differences(recorded.binding, here);
  if (!different.empty() && !force) {
    return {false, "the stack differs: " + different +
                       "; replay on the recorded stack, or try it with --force"};
  }
  if (library != recorded.plan->cublaslt && !force) {
    return {false, "the stack differs: params.products recorded cuBLASLt " +
                       quoted(recorded.plan->cublaslt) + ", here " + quoted(library) +
                       "; replay on the recorded stack, or try it with --force"};
  }
  std::string why = different.empty() ? "" : "forced past a differing stack (" + different + ")";
  if (library == recorded.plan->cublaslt) {
    try {
      start_recorded_profile(backend, *recorded.plan, tested);
    } catch (const Error& error) {
      if (error.kind() != ExitCode::kInconclusive) throw;
      return {false, error.with_hint()};
    }
  } else {
    start_profile(backend, recorded.name, recorded.plan->rows, tested);
    why +=
        (why.empty() ? "" : ", ") + std::string("with the algorithms that cuBLASLt chooses here");
  }
  return {true, why};
}

}  // namespace detrun
