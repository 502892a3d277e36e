// Profile cublas on a backend that has no cuBLASLt: a clear no.
#include "detrun/backend.h"
#include "detrun/error.h"

namespace detrun {
namespace {

[[noreturn]] void throw_no_cublas(const BackendInfo& info) {
  throw_usage("profile cublas needs a GPU, backend " + info.name + " has none",
              "use --backend cuda, or --numerics portable");
}

}  // namespace

std::string Backend::product_library() { throw_no_cublas(info()); }

ProductPlan Backend::pin_products(std::uint32_t /*rows*/) { throw_no_cublas(info()); }

void Backend::use_products(const ProductPlan* plan) {
  if (plan != nullptr) throw_no_cublas(info());
}

void Backend::test_products(std::uint32_t /*times*/) { throw_no_cublas(info()); }

}  // namespace detrun
