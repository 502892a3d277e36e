// See bytes_digest.h. The bytes are taken in blocks so that progress can be told and the work be
// stopped; the digest does not depend on the blocks.
#include "run/bytes_digest.h"

#include <algorithm>
#include <chrono>

#include "run/start_thread.h"

namespace detrun {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;
constexpr std::chrono::milliseconds kProgressEvery{100};

}  // namespace

BytesDigest::BytesDigest(std::span<const std::byte> bytes, const ModelFile* file)
    : bytes_(bytes), file_(file) {
  result_ =
      start_thread([this] { return std::async(std::launch::async, [this] { return run(); }); });
}

BytesDigest::~BytesDigest() {
  stop_ = true;  // the future's destructor waits for the thread
}

Sha256Digest BytesDigest::run() const {
  Sha256 hash;
  std::span<const std::byte> rest = bytes_;
  while (!rest.empty() && !stop_) {
    const std::span<const std::byte> block = rest.first(std::min(rest.size(), kBlockBytes));
    hash.update(block);
    if (file_ != nullptr) file_->release(block);
    rest = rest.subspan(block.size());
    done_bytes_ += block.size();
  }
  return hash.finish();
}

bool BytesDigest::ready() const {
  return result_.valid() && result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::optional<Sha256Digest> BytesDigest::wait(Observer& observer, const std::atomic<bool>* cancel) {
  while (result_.wait_for(kProgressEvery) != std::future_status::ready) {
    if (cancel != nullptr && *cancel) return std::nullopt;
    observer.on_progress("hashing the model", done_bytes_, bytes_.size(), "bytes");
  }
  return result_.get();
}

}  // namespace detrun
