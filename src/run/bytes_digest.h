// SHA-256 of bytes in memory on a thread of its own, beside other work. The destructor stops it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <span>

#include "detrun/digest.h"
#include "detrun/model_file.h"
#include "detrun/run.h"

namespace detrun {

class BytesDigest {
 public:
  /// Starts at once. `bytes` outlives the object. Error kInternal when no thread can be started.
  explicit BytesDigest(std::span<const std::byte> bytes) : BytesDigest(bytes, nullptr) {}
  /// Of all bytes of a file, releasing what was read. `file` outlives the object.
  explicit BytesDigest(const ModelFile& file) : BytesDigest(file.bytes(), &file) {}
  ~BytesDigest();
  BytesDigest(const BytesDigest&) = delete;
  BytesDigest& operator=(const BytesDigest&) = delete;

  bool ready() const;
  /// Waits; progress in bytes goes to the observer from this thread. nullopt when `cancel` (may be
  /// null) became true first. To be called until it has given the digest, then not again.
  std::optional<Sha256Digest> wait(Observer& observer, const std::atomic<bool>* cancel);

 private:
  BytesDigest(std::span<const std::byte> bytes, const ModelFile* file);
  Sha256Digest run() const;

  std::span<const std::byte> bytes_;
  const ModelFile* file_;  ///< nullptr: nobody to release to
  std::atomic<bool> stop_ = false;
  mutable std::atomic<std::uint64_t> done_bytes_ = 0;
  std::future<Sha256Digest> result_;
};

}  // namespace detrun
