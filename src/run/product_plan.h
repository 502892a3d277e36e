// The pinned products of profile cublas as the field params.products: canonical JSON, read back
// with the distrust that a ledger of anybody's deserves.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "detrun/backend.h"

namespace detrun {

/// {"cublaslt": "13.1.0", "products": [{"algorithm": "<128 hex digits>", "description": "...",
/// "k": 64, "n": 192, "type": "F16"}, ...], "rows": 512, "workspace_bytes": 33554432}
std::string plan_to_json(const ProductPlan& plan);

/// nullopt, and in `why` what is wrong, for what plan_to_json never writes.
std::optional<ProductPlan> plan_from_json(std::string_view text, std::string& why);

}  // namespace detrun
