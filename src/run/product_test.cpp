// See product_test.h.
#include "run/product_test.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

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

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A whole file or none: another process may look at the same time.
void remember(const std::string& folder, const std::string& path, const std::string& proof) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  const std::string temporary = path + "." + std::to_string(getpid());
  {
    std::ofstream file(temporary, std::ios::binary);
    file << proof;
    file.flush();
    if (!file) failure = std::make_error_code(std::errc::io_error);
  }
  if (!failure) fs::rename(temporary, path, failure);
  if (!failure) return;
  log_info("the test of the products is not remembered: " + folder + " cannot be written");
  fs::remove(temporary, failure);
}

}  // namespace

std::string proof_of_products(const BackendInfo& backend, const ProductPlan& plan) {
  Json proof = binding_of(backend, kCublas, plan.library);
  proof.set("plan", plan_to_json(plan));
  proof.set("times", std::int64_t{kProductTests});
  proof.set("program", build_info().version);
  if (backend.device) {
    proof.set("uuid", backend.device->uuid);
    proof.set("driver", backend.device->driver);
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

void require_tested_products(Backend& backend, const ProductPlan& plan, const std::string& folder,
                             const std::vector<std::string>& load) {
  const std::string proof = proof_of_products(backend.info(), plan);
  const std::string path = folder + "/" + to_hex(sha256(proof));
  if (!folder.empty() && contents(path) == proof) return;
  log_info("testing every product of the profile cublas " + std::to_string(kProductTests) +
           " times beside another process");
  CompetingLoad beside(load, kLoadIsReady);
  backend.test_products(kProductTests);
  beside.check_running();
  if (!folder.empty()) remember(folder, path, proof);
}

}  // namespace detrun
