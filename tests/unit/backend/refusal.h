// The Error that a call ends with, where a test wants one.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <string_view>

#include "detrun/error.h"

namespace detrun::test {

struct Refusal {
  ExitCode kind = ExitCode::kOk;
  std::string text;  ///< with the hint
  bool has(std::string_view part) const { return text.find(part) != std::string::npos; }
};

/// Fails the test when nothing is thrown.
inline Refusal refusal_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.kind(), error.with_hint()};
  }
  FAIL("nothing was refused");
  return {};
}

}  // namespace detrun::test
