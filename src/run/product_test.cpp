// See product_test.h.
#include "run/product_test.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <variant>

#include "detrun/digest.h"
#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/json.h"
#include "detrun/log.h"
#include "run/competing_load.h"
#include "run/product_plan.h"

namespace detrun {
namespace {

namespace fs = std::filesystem;

std::string folder_in(const char* variable, const char* below) {
  const char* value = std::getenv(variable);
  // A relative path would mean another folder in every working directory.
  if (value == nullptr || value[0] != '/') return {};
  return std::string(value) + below;
}

/// Whether a file holds this and nothing else. Whatever else lies there is read no further.
bool holds(const std::string& path, const std::string& text) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string found(text.size() + 1, '\0');
  file.read(found.data(), static_cast<std::streamsize>(found.size()));
  found.resize(static_cast<std::size_t>(file.gcount()));
  return found == text;
}

/// A whole file or none: another process may look at the same time.
void remember(const std::string& folder, const std::string& path, const std::string& proof) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());  // of this user alone
  if (file >= 0) {
    const auto size = static_cast<ssize_t>(proof.size());
    const bool written = write(file, proof.data(), proof.size()) == size;
    if (close(file) == 0 && written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
    unlink(temporary.c_str());
  }
  log_info("the test of the products is not remembered: " + folder + " cannot be written");
}

}  // namespace

std::string proof_of_products(const BackendInfo& backend, const ProductPlan& plan) {
  Json proof = binding_of(backend, kCublas, plan.cublaslt);
  proof.set("plan", plan_to_json(plan));
  proof.set("times", std::int64_t{kProductTests});
  proof.set("program", build_info().version);
  proof.set("kernels", build_info().kernel_sha256);
  if (backend.device) {
    proof.set("uuid", backend.device->uuid);
    proof.set("driver", backend.device->driver);
    for (const DeviceFact& fact : backend.device->facts) {
      const auto* text = std::get_if<std::string>(&fact.value);
      if (fact.name == "driver_version" && text != nullptr) proof.set("driver_version", *text);
    }
  }
  return proof.canonical();
}

std::string products_cache_folder() {
  const std::string own = folder_in("XDG_CACHE_HOME", "/detrun/products");
  return own.empty() ? folder_in("HOME", "/.cache/detrun/products") : own;
}

std::vector<std::string> load_command(const BackendInfo& backend) {
  std::vector<std::string> command = {"/proc/self/exe", "bench",     "-v",
                                      "--only",         "ceilings",  "--repeat",
                                      "10000",          "--backend", backend.name};
  if (backend.device) {
    command.insert(command.end(), {"--device", backend.device->uuid});
  }
  return command;
}

void TestedProducts::require(Backend& backend, const ProductPlan& plan, const std::string& folder,
                             const std::vector<std::string>& load) {
  const std::string proof = proof_of_products(backend.info(), plan);
  const std::lock_guard lock(mutex_);
  if (proofs_.contains(proof)) return;
  const std::string path = folder + "/" + to_hex(sha256(proof));
  if (!folder.empty() && holds(path, proof)) {
    proofs_.insert(proof);
    return;
  }
  log_info("testing every product of the profile cublas " + std::to_string(kProductTests) +
           " times beside another process");
  CompetingLoad beside(load, kLoadIsReady);
  backend.test_products(kProductTests);
  beside.check_running();
  proofs_.insert(proof);
  if (!folder.empty()) remember(folder, path, proof);
}

}  // namespace detrun
