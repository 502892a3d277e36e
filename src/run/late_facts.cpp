// See late_facts.h.
#include "run/late_facts.h"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>

#include "detrun/host.h"
#include "run/start_thread.h"

namespace detrun {
namespace {

/// The digest's 32 bytes, or nothing where there is a reason instead.
std::optional<Blob> blob_of_hex(std::string_view hex) {
  constexpr std::size_t kBytes = std::tuple_size_v<Sha256Digest>;
  if (hex.size() != 2 * kBytes) return std::nullopt;
  Blob blob;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const char* end = hex.data() + i + 2;
    if (std::from_chars(hex.data() + i, end, value, 16).ptr != end) return std::nullopt;
    blob.bytes += static_cast<char>(value);
  }
  return blob;
}

}  // namespace

LateFacts::LateFacts(const ModelFile& model) : file_(model), model_(model.bytes()) {
  host_ = start_thread([] { return std::async(std::launch::async, find_host); });
}

/// The first loaded object is the program itself: one reading of its file serves both fields.
LateFacts::Host LateFacts::find_host() {
  const Json objects = digest_loaded_objects();
  const JsonObject& members = objects.as_object();
  return {members.empty() ? std::string() : members.front().second.as_string(),
          objects.canonical()};
}

/// Nothing may have written to the file before its digest stands in the run.
void LateFacts::take_model(Observer& observer, FieldMap& fields) {
  model_taken_ = true;
  const Sha256Digest digest = *model_.wait(observer, nullptr);
  file_.check_unchanged();
  fields.emplace(field::model_sha256, to_blob(digest));
}

void LateFacts::take_host(FieldMap& fields) {
  host_taken_ = true;
  const Host host = host_.get();
  fields.emplace(field::stack_objects, host.objects);
  if (const auto blob = blob_of_hex(host.program_sha256)) {
    fields.emplace(field::tool_binary_sha256, *blob);
  }
}

// The model comes first: when it throws, the host's facts are still to be had.

FieldMap LateFacts::take_ready() {
  FieldMap fields;
  Observer nobody;
  if (!model_taken_ && model_.ready()) take_model(nobody, fields);
  if (!host_taken_ && host_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    take_host(fields);
  }
  return fields;
}

FieldMap LateFacts::wait_rest(Observer& observer) {
  FieldMap fields;
  if (!model_taken_) take_model(observer, fields);
  if (!host_taken_) take_host(fields);
  return fields;
}

}  // namespace detrun
