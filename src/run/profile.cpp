// See profile.h.
#include "run/profile.h"

#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/text.h"

namespace detrun {
namespace {

void test_products(Backend& backend, const ProductPlan& plan, TestedProducts& tested) {
  tested.require(backend, plan, products_cache_folder(), load_command(backend.info()));
}

}  // namespace

void check_profile(const std::string& profile, const EngineOptions& engine) {
  if (profile == kPortable) return;
  if (profile != kCublas) {
    throw_usage("unknown numerics profile '" + escape_for_terminal(profile) + "'",
                "known are portable and cublas");
  }
  const bool automatic = engine.backend == "auto" && engine.device.empty();
  if (engine.backend == "cpu" || (automatic && cuda_backend_name() != "cuda")) {
    throw_usage("profile cublas needs a GPU, backend " + engine.backend + " has none here",
                "use --backend cuda, or --numerics portable");
  }
  if (!automatic) return;
  try {
    require_cuda_device({});
  } catch (const Error& error) {
    if (error.kind() != ExitCode::kUsage) throw;
    throw_usage(std::string("profile cublas needs a GPU: ") + error.what(),
                "use --numerics portable");
  }
}

void require_profile(Backend& backend, const std::string& profile) {
  if (profile == kCublas) static_cast<void>(backend.product_library());
}

std::optional<ProductPlan> start_profile(Backend& backend, const std::string& profile,
                                         std::uint32_t rows, TestedProducts& tested) {
  if (profile == kPortable) {
    backend.use_products(nullptr);
    return std::nullopt;
  }
  std::optional<ProductPlan> plan = backend.pin_products(rows);
  test_products(backend, *plan, tested);
  return plan;
}

void start_recorded_profile(Backend& backend, const ProductPlan& plan, TestedProducts& tested) {
  backend.use_products(&plan);
  test_products(backend, plan, tested);
}

std::string library_of(const std::optional<ProductPlan>& plan) {
  return plan ? plan->cublaslt : std::string();
}

}  // namespace detrun
