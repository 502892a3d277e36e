// See late_facts.h.
#include "run/late_facts.h"

#include <chrono>

#include "detrun/host.h"

namespace detrun {
namespace {

int hex_digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

Blob blob_of_hex(const std::string& hex) {
  Blob blob;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    blob.bytes += static_cast<char>(hex_digit(hex[i]) * 16 + hex_digit(hex[i + 1]));
  }
  return blob;
}

}  // namespace

LateFacts::LateFacts(std::span<const std::byte> model_bytes) : model_(model_bytes) {
  host_ = std::async(std::launch::async, [] {
    return Host{program_sha256(), digest_loaded_objects().canonical()};
  });
}

FieldMap LateFacts::to_fields(const Host& host) {
  FieldMap fields;
  fields.emplace(field::stack_objects, host.objects);
  if (!host.program_sha256.empty()) {
    fields.emplace(field::tool_binary_sha256, blob_of_hex(host.program_sha256));
  }
  return fields;
}

FieldMap LateFacts::take_ready() {
  FieldMap fields;
  if (!host_taken_ && host_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    host_taken_ = true;
    fields = to_fields(host_.get());
  }
  if (!model_taken_ && model_.ready()) {
    model_taken_ = true;
    Observer nobody;
    fields.emplace(field::model_sha256, to_blob(*model_.wait(nobody, nullptr)));
  }
  return fields;
}

FieldMap LateFacts::wait_rest(Observer& observer) {
  FieldMap fields;
  if (!host_taken_) {
    host_taken_ = true;
    fields = to_fields(host_.get());
  }
  if (!model_taken_) {
    model_taken_ = true;
    fields.emplace(field::model_sha256, to_blob(*model_.wait(observer, nullptr)));
  }
  return fields;
}

}  // namespace detrun
