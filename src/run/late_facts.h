// Facts of a run that take long to find out: digests of the model, the program and the objects
// mapped into it. Found on side threads, never in the way of the first token.
#pragma once

#include <future>
#include <string>

#include "detrun/model_file.h"
#include "detrun/run.h"
#include "detrun/trace.h"
#include "run/bytes_digest.h"

namespace detrun {

class LateFacts {
 public:
  /// Starts at once. `model` outlives the object.
  explicit LateFacts(const ModelFile& model);

  /// Fields that became known since the last call; does not wait. Error kUsage, once, when the
  /// model's file changed before its digest was known: the digest is then never given.
  FieldMap take_ready();
  /// Waits for all fields not yet taken. Errors as above.
  FieldMap wait_rest(Observer& observer);

 private:
  struct Host {
    std::string program_sha256, objects;
  };
  static Host find_host();
  void take_model(Observer& observer, FieldMap& fields);
  void take_host(FieldMap& fields);

  const ModelFile& file_;
  BytesDigest model_;
  std::future<Host> host_;
  bool model_taken_ = false, host_taken_ = false;
};

}  // namespace detrun
