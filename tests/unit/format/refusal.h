// What a refused input says: runs a parse and hands back the message and hint of its Error.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "detrun/error.h"
#include "detrun/model_file.h"
#include "format/gguf_file.h"

namespace detrun::test {

struct Refusal {
  std::string message;  ///< empty: nothing was refused
  std::string hint;
  bool says(std::string_view part) const { return message.find(part) != std::string::npos; }
};

/// Calls `attempt`, which must throw an Error of kind kUsage.
template <typename F>
Refusal refusal_of(F&& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kUsage);
    return {error.what(), error.hint()};
  }
  FAIL_CHECK("accepted, but a refusal was expected");
  return {};
}

inline std::unique_ptr<ModelFile> parsed(const std::string& bytes) {
  return parse_gguf("m.gguf", std::as_bytes(std::span(bytes.data(), bytes.size())));
}

/// The refusal of a whole file given as bytes. Every message starts with the file's name.
inline Refusal refused(const std::string& bytes) {
  Refusal refusal = refusal_of([&] { parsed(bytes); });
  CHECK(refusal.message.starts_with("m.gguf: "));
  if (refusal.message.starts_with("m.gguf: ")) refusal.message.erase(0, 8);
  return refusal;
}

}  // namespace detrun::test
