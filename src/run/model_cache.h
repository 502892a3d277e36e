// The models of a replay: each file is mapped, hashed and loaded once, however many runs need it.
// A model is known by the digest of its mapped bytes; where it lies is only where to look. May be
// asked by several threads: one hashes and loads, the others wait for it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "detrun/digest.h"
#include "detrun/run.h"
#include "run/loaded_model.h"

namespace detrun {

class ModelCache {
 public:
  /// All outlive the object and what it handed out. `backend` loads the weights, under the cache's
  /// lock, and is used for nothing else meanwhile; `observer` is called by whoever asks.
  ModelCache(Backend& backend, Observer& observer, const std::atomic<bool>& cancel)
      : backend_(backend), observer_(observer), cancel_(cancel) {}

  /// A model that is ready to run, or why there is none here (a sentence with the remedy).
  struct Lookup {
    std::shared_ptr<const LoadedModel> model;  ///< stays usable when the cache lets go of it
    std::string why;
  };
  /// The model of this digest; `path` is where to look when it is not loaded. Without a digest:
  /// whatever lies at the path. Nothing is executed before the digests were compared.
  Lookup find(const std::string& path, const std::optional<Sha256Digest>& wanted);

 private:
  struct Entry {
    std::string path;
    Sha256Digest digest;
    std::shared_ptr<LoadedModel> model;
  };
  Entry* find_entry(const std::string& path, const std::optional<Sha256Digest>& wanted);
  Lookup open(const std::string& path);

  Backend& backend_;
  Observer& observer_;
  const std::atomic<bool>& cancel_;
  std::mutex mutex_;            ///< guards the entries and their loading
  std::vector<Entry> entries_;  ///< most recently opened last
};

}  // namespace detrun
