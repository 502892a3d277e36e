// Ctrl-C and SIGTERM as a flag. The first signal asks the run to end and be sealed, the second one
// kills.
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace detrun::cli {

/// While it lives, the first SIGINT or SIGTERM sets the flag instead of killing; any further one
/// has its default action and ends the process. A signal that was ignored when the process started
/// (SIGINT in a background job of a script) goes on being ignored. One at a time.
class Interrupt {
 public:
  static constexpr std::size_t kSignals = 2;

  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& flag() const;

 private:
  std::array<struct sigaction, kSignals> before_;
};

}  // namespace detrun::cli
