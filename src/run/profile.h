// The arithmetic profile of a run on the backend that computes it: portable as it is; cublas with
// its products pinned and tested.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "detrun/backend.h"
#include "detrun/run.h"
#include "run/product_test.h"

namespace detrun {

/// What can be known before a backend is opened. Error kUsage: a profile that nobody knows, or
/// cublas where the options, or this program, have no GPU for it; kInternal: the driver fails.
void check_profile(const std::string& profile, const EngineOptions& engine);
/// Error kUsage: the backend cannot compute under this profile, whatever the model.
void require_profile(Backend& backend, const std::string& profile);

/// From now on `backend` computes under `profile`, with passes of at most `rows` rows and the
/// weights that are loaded; for cublas the products that were chosen, tested as TestedProducts
/// says. Before a context of these rows is made. Errors: Backend::pin_products and the test's.
std::optional<ProductPlan> start_profile(Backend& backend, const std::string& profile,
                                         std::uint32_t rows, TestedProducts& tested);
/// Under cublas, as a recorded run pinned it. Errors: Backend::use_products and the test's.
void start_recorded_profile(Backend& backend, const ProductPlan& plan, TestedProducts& tested);

/// Version of cuBLASLt of a plan, as the fingerprint wants it; empty without one.
std::string library_of(const std::optional<ProductPlan>& plan);

}  // namespace detrun
