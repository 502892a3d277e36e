// See product_plan.h.
#include "run/product_plan.h"

#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "detrun/digest.h"
#include "detrun/error.h"
#include "detrun/json.h"
#include "detrun/quant.h"

namespace detrun {
namespace {

constexpr std::uint32_t kTypeIdsMax = 256;
constexpr std::uint64_t kWorkspaceMax = std::uint64_t{1} << 32U;
constexpr std::uint64_t kSizeMax = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(const std::string& why) { throw_usage("params.products: " + why); }

const Json& member(const Json& object, std::string_view name) {
  const Json* found = object.is_object() ? object.find(name) : nullptr;
  if (found == nullptr) refuse("'" + std::string(name) + "' is missing");
  return *found;
}

const std::string& text_of(const Json& object, std::string_view name) {
  const Json& value = member(object, name);
  if (!value.is_string()) refuse("'" + std::string(name) + "' is no text");
  return value.as_string();
}

/// A size from 1 to `most`.
std::uint64_t size_of(const Json& object, std::string_view name, std::uint64_t most) {
  const std::int64_t number = member(object, name).to_i64().value_or(0);
  if (number < 1 || static_cast<std::uint64_t>(number) > most) {
    refuse("'" + std::string(name) + "' is not from 1 to " + std::to_string(most));
  }
  return static_cast<std::uint64_t>(number);
}

QType type_of(const std::string& name) {
  for (std::uint32_t id = 0; id < kTypeIdsMax; ++id) {
    const QTypeInfo* info = find_qtype(id);
    if (info != nullptr && info->name == name) return static_cast<QType>(id);
  }
  refuse("the type of a product is unknown");
}

PinnedProduct read_product(const Json& json) {
  PinnedProduct product{};
  product.type = type_of(text_of(json, "type"));
  product.n = static_cast<std::uint32_t>(size_of(json, "n", kSizeMax));
  product.k = static_cast<std::uint32_t>(size_of(json, "k", kSizeMax));
  product.description = text_of(json, "description");
  if (!from_hex(text_of(json, "algorithm"), product.algorithm)) {
    refuse("an algorithm is not " + std::to_string(product.algorithm.size()) +
           " bytes in hexadecimal digits");
  }
  return product;
}

ProductPlan read_plan(const Json& json) {
  ProductPlan plan{};
  plan.cublaslt = text_of(json, "cublaslt");
  plan.rows = static_cast<std::uint32_t>(size_of(json, "rows", kSizeMax));
  plan.workspace_bytes = size_of(json, "workspace_bytes", kWorkspaceMax);
  const Json& products = member(json, "products");
  if (!products.is_array()) refuse("'products' is no list");
  const auto key = [](const PinnedProduct& p) { return std::tuple(p.type, p.n, p.k); };
  for (const Json& one : products.as_array()) {
    plan.products.push_back(read_product(one));
    const std::size_t count = plan.products.size();
    if (count > 1 && key(plan.products[count - 2]) >= key(plan.products[count - 1])) {
      refuse("the products are not in ascending order");
    }
  }
  return plan;
}

}  // namespace

std::string plan_to_json(const ProductPlan& plan) {
  Json products = Json::array();
  for (const PinnedProduct& product : plan.products) {
    Json one = Json::object();
    one.set("type", qtype_info(product.type).name);
    one.set("n", std::int64_t{product.n});
    one.set("k", std::int64_t{product.k});
    one.set("algorithm", to_hex(product.algorithm));
    one.set("description", product.description);
    products.push_back(std::move(one));
  }
  Json json = Json::object();
  json.set("cublaslt", plan.cublaslt);
  json.set("rows", std::int64_t{plan.rows});
  json.set("workspace_bytes", static_cast<std::int64_t>(plan.workspace_bytes));
  json.set("products", std::move(products));
  return json.canonical();
}

std::optional<ProductPlan> plan_from_json(std::string_view text, std::string& why) {
  try {
    const ProductPlan plan = read_plan(Json::parse(text, "params.products"));
    // Nothing but what is read here may stand there.
    if (plan_to_json(plan) != text) refuse("it is not written as detrun writes it");
    return plan;
  } catch (const Error& error) {
    why = error.what();
  }
  return std::nullopt;
}

}  // namespace detrun
