// A backend of the CPU that claims to be a GPU with a cuBLASLt, and notes what profile cublas asks
// of it. It multiplies as the contract says: what run makes of plans is tested with it, no product.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "detrun/backend.h"
#include "detrun/error.h"
#include "run/bench_trace.h"

namespace detrun::test {

class PinningBackend final : public TracingBackend {
 public:
  PinningBackend() : TracingBackend(make_cpu_backend({.n_threads = 1, .isa = "scalar"})) {
    info_ = TracingBackend::info();
    info_.name = "cuda";
    info_.isa = "sm_90";
    DeviceInfo device{};
    device.name = "a GPU";
    device.uuid = "GPU-1";
    device.n_multiprocessors = 132;
    device.driver = device.runtime = "13.0";
    info_.device = device;
  }

  const BackendInfo& info() const override { return info_; }
  BackendInfo& changeable_info() { return info_; }

  std::string product_library() override {
    if (cublaslt.empty()) throw_usage("no cuBLASLt", "install it");
    return cublaslt;
  }
  ProductPlan pin_products(std::uint32_t rows) override {
    calls.push_back("pin " + std::to_string(rows));
    return {cublaslt, rows, 4096, {{QType::kF16, 64, 32, {}, "the first"}}};
  }
  void use_products(const ProductPlan* plan) override {
    calls.push_back(plan == nullptr ? "own" : "use " + std::to_string(plan->rows));
    if (plan != nullptr && !refusal.empty()) throw Error(ExitCode::kInconclusive, refusal);
  }
  void test_products(std::uint32_t times) override {
    calls.push_back("test " + std::to_string(times));
    if (while_testing) while_testing();
    if (differs) throw_internal("two results differ");
  }

  std::string cublaslt = "13.1.0";  ///< empty: there is none
  std::string refusal;              ///< what is wrong with every plan
  bool differs = false;             ///< whether products give other bits now and then
  std::function<void()> while_testing;
  std::vector<std::string> calls;

 private:
  BackendInfo info_;
};

}  // namespace detrun::test
