// See model_cache.h.
#include "run/model_cache.h"

#include <utility>

#include "detrun/error.h"
#include "run/bytes_digest.h"

namespace detrun {
namespace {

/// Models kept at once: enough for runs that alternate, few enough for memory.
constexpr std::size_t kModelsMax = 3;

}  // namespace

ModelCache::Entry* ModelCache::find_entry(const std::string& path,
                                          const std::optional<Sha256Digest>& wanted) {
  for (Entry& entry : entries_) {
    if (wanted && entry.digest == *wanted) return &entry;
  }
  for (Entry& entry : entries_) {
    if (entry.path == path) return &entry;
  }
  return nullptr;
}

ModelCache::Lookup ModelCache::open(const std::string& path) {
  Entry entry{path, {}, std::make_shared<LoadedModel>()};
  try {
    entry.model->file = ModelFile::open(path);
  } catch (const Error& error) {
    if (error.kind() != ExitCode::kUsage) throw;
    return {nullptr, "the model cannot be used: " + std::string(error.what()) +
                         "; give its place with --model PATH"};
  }
  BytesDigest digest(*entry.model->file);
  const std::optional<Sha256Digest> found = digest.wait(observer_, &cancel_);
  if (!found) return {nullptr, "cancelled while the model was hashed"};
  entry.digest = *found;
  if (entries_.size() == kModelsMax) entries_.erase(entries_.begin());
  entries_.push_back(std::move(entry));
  return {};
}

ModelCache::Lookup ModelCache::find(const std::string& path,
                                    const std::optional<Sha256Digest>& wanted) {
  const std::lock_guard lock(mutex_);
  Entry* entry = find_entry(path, wanted);
  if (entry == nullptr) {
    Lookup failed = open(path);
    if (!failed.why.empty()) return failed;
    entry = &entries_.back();
  }
  if (wanted && entry->digest != *wanted) {
    return {nullptr, "the model at " + path + " is another one: recorded sha256 " +
                         to_hex(*wanted) + ", found " + to_hex(entry->digest) +
                         "; give the recorded one with --model PATH"};
  }
  try {
    entry->model->bind(backend_, observer_);
    entry->model->file->check_unchanged();
  } catch (const Error& error) {
    if (error.kind() != ExitCode::kUsage) throw;
    return {nullptr, "the model cannot be used: " + error.with_hint()};
  }
  return {entry->model, {}};
}

}  // namespace detrun
