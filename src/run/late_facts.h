// Facts of a run that take long to find out: digests of the model, the program and the objects
// mapped into it. Found on side threads, never in the way of the first token.
#pragma once

#include <cstddef>
#include <future>
#include <span>
#include <string>

#include "detrun/run.h"
#include "detrun/trace.h"
#include "run/bytes_digest.h"

namespace detrun {

class LateFacts {
 public:
  /// Starts at once. `model_bytes` outlives the object.
  explicit LateFacts(std::span<const std::byte> model_bytes);

  /// Fields that became known since the last call; does not wait.
  FieldMap take_ready();
  /// Waits for all fields not yet taken.
  FieldMap wait_rest(Observer& observer);

 private:
  struct Host {
    std::string program_sha256, objects;
  };
  static FieldMap to_fields(const Host& host);

  BytesDigest model_;
  std::future<Host> host_;
  bool model_taken_ = false, host_taken_ = false;
};

}  // namespace detrun
