// See late_facts.h.
#include "run/late_facts.h"

#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include "detrun/host.h"
#include "run/start_thread.h"

namespace detrun {
namespace {

/// The digest's 32 bytes, or nothing where there is a reason instead.
std::optional<Blob> blob_of_hex(std::string_view hex) {
  Sha256Digest digest;
  if (!from_hex(hex, std::as_writable_bytes(std::span(digest)))) return std::nullopt;
  return to_blob(digest);
}

}  // namespace

LateFacts::LateFacts(const ModelFile& model) : file_(model), model_digest_(std::in_place, model) {}

LateFacts::LateFacts(const ModelFile& model, const Sha256Digest& digest)
    : file_(model), digest_(digest) {}

void LateFacts::start_host() {
  if (host_ || host_facts_.valid()) return;
  host_facts_ = start_thread([] { return std::async(std::launch::async, find_host); });
}

/// The first loaded object is the program itself: one reading of its file serves both fields.
LateFacts::Host LateFacts::find_host() {
  const Json objects = digest_loaded_objects();
  const JsonObject& members = objects.as_object();
  return {members.empty() ? std::string() : members.front().second.as_string(),
          objects.canonical()};
}

bool LateFacts::model_ready() const { return digest_ || model_digest_->ready(); }

bool LateFacts::host_ready() const {
  return host_ || (host_facts_.valid() &&
                   host_facts_.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
}

/// Nothing may have written to the file before its digest stands in a run.
const FieldMap& LateFacts::model(Observer& observer) {
  if (!digest_) digest_ = model_digest_->wait(observer, nullptr);
  if (!model_) {
    file_.check_unchanged();
    model_.emplace().emplace(field::model_sha256, to_blob(*digest_));
  }
  return *model_;
}

const FieldMap& LateFacts::host() {
  if (!host_) {
    start_host();
    const Host found = host_facts_.get();
    host_.emplace().emplace(field::stack_objects, found.objects);
    if (const auto blob = blob_of_hex(found.program_sha256)) {
      host_->emplace(field::tool_binary_sha256, *blob);
    }
  }
  return *host_;
}

void LateFields::take_model(Observer& observer, FieldMap& fields) {
  model_taken_ = true;
  const FieldMap& facts = facts_.model(observer);
  fields.insert(facts.begin(), facts.end());
}

void LateFields::take_host(FieldMap& fields) {
  host_taken_ = true;
  const FieldMap& facts = facts_.host();
  fields.insert(facts.begin(), facts.end());
}

// The model comes first: when it throws, the host's facts are still to be had.

FieldMap LateFields::take_ready() {
  FieldMap fields;
  Observer nobody;
  if (!model_taken_ && facts_.model_ready()) take_model(nobody, fields);
  if (!host_taken_ && facts_.host_ready()) take_host(fields);
  return fields;
}

FieldMap LateFields::wait_rest(Observer& observer) {
  FieldMap fields;
  if (!model_taken_) take_model(observer, fields);
  if (!host_taken_) take_host(fields);
  return fields;
}

}  // namespace detrun
