// One compiled PCRE2 pattern over bytes, searched under limits. Bytes only: no UTF mode, no
// Unicode properties, no locale tables, no JIT, so a match depends on pattern and subject alone.
// PCRE2's matcher keeps its backtracking on the heap: no input can overflow the stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace detrun {

struct RegexMatch {
  std::size_t begin;
  std::size_t end;
};

/// Immutable after construction; search() may run in several threads at once.
class Regex {
 public:
  /// `pattern` is a constant of this program: one that does not compile is a bug (DETRUN_CHECK).
  explicit Regex(const std::string& pattern);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// Leftmost match in the subject alone (lookaround sees nothing outside it) from `from` on.
  /// Error kInternal when a limit of steps or memory was hit: never a wrong answer instead.
  std::optional<RegexMatch> search(std::string_view subject, std::size_t from) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detrun
