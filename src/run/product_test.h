// The proof that profile cublas asks of a stack before it is used: every pinned product gives the
// same bits again and again while another process uses the GPU. Once a stack and plan; a file of
// the user's cache remembers.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "detrun/backend.h"

namespace detrun {

inline constexpr std::uint32_t kProductTests = 20;  ///< times that each product is computed

/// What one proof is about: device, driver, CUDA, cuBLASLt, program and plan, canonical JSON.
std::string proof_of_products(const BackendInfo& backend, const ProductPlan& plan);

/// The folder that remembers: detrun/products in $XDG_CACHE_HOME or ~/.cache; empty where the
/// environment names neither.
std::string products_cache_folder();

/// The command that keeps the GPU of `backend` busy: this program, measuring ceilings.
std::vector<std::string> load_command(const BackendInfo& backend);
/// What it writes to its standard error when it is under way.
inline constexpr const char* kLoadIsReady = "measured the ceilings";

/// The proofs of this process. May be asked by several threads: one tests, the others wait.
class TestedProducts {
 public:
  /// Nothing when this object or `folder` remembers the proof; otherwise computes every product
  /// that `backend` uses kProductTests times beside `load`, and remembers. Error kInternal: two
  /// results differ, or the load does not run. A folder that cannot be written is no error: another
  /// process makes the proof again.
  void require(Backend& backend, const ProductPlan& plan, const std::string& folder,
               const std::vector<std::string>& load);

 private:
  std::mutex mutex_;  ///< guards what follows, and the GPU
  std::set<std::string> proofs_;
};

}  // namespace detrun
