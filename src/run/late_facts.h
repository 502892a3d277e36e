// Facts of a process that take long to find out: digests of the model, the program and the objects
// mapped into it. Found once, on side threads, never in the way of the first token; every run of
// the process gets them.
#pragma once

#include <future>
#include <optional>
#include <string>

#include "detrun/model_file.h"
#include "detrun/run.h"
#include "detrun/trace.h"
#include "run/bytes_digest.h"

namespace detrun {

class LateFacts {
 public:
  /// Starts with the model. `model` outlives the object.
  explicit LateFacts(const ModelFile& model);
  /// The model's digest is known, or what stands for it: nothing of the model is read.
  LateFacts(const ModelFile& model, const Sha256Digest& digest);

  /// Starts with the rest, unless that is under way: when the first token is out, because the
  /// program and its objects are tens of megabytes. Error kInternal when no thread can be started.
  void start_host();
  bool model_ready() const;
  bool host_ready() const;
  /// Fields about the model; waits. Error kUsage when its file changed before its digest was known:
  /// the digest is then never given.
  const FieldMap& model(Observer& observer);
  /// Fields about the program and its objects; starts with them if nobody did, and waits.
  const FieldMap& host();

 private:
  struct Host {
    std::string program_sha256, objects;
  };
  static Host find_host();

  const ModelFile& file_;
  std::optional<BytesDigest> model_digest_;  ///< unless it was known
  std::future<Host> host_facts_;
  std::optional<Sha256Digest> digest_;
  std::optional<FieldMap> model_, host_;
};

/// The late facts on their way into one run.
class LateFields {
 public:
  explicit LateFields(LateFacts& facts) : facts_(facts) {}

  /// To be called with the first token: what nobody needed before may begin.
  void start_rest() { facts_.start_host(); }
  /// Fields that became known since the last call; does not wait. Throws LateFacts' Error once.
  FieldMap take_ready();
  /// Waits for all fields not yet taken. Errors as above.
  FieldMap wait_rest(Observer& observer);

 private:
  void take_model(Observer& observer, FieldMap& fields);
  void take_host(FieldMap& fields);

  LateFacts& facts_;
  bool model_taken_ = false, host_taken_ = false;
};

}  // namespace detrun
