// Ctrl-C as a flag. The first one asks the run to end and be sealed, the second one kills.
#pragma once

#include <signal.h>

#include <atomic>

namespace detrun::cli {

/// While it lives, SIGINT sets the flag instead of killing; after that the default action is back,
/// so that a second Ctrl-C always ends the process. A process started with SIGINT ignored (a
/// background job of a script) goes on ignoring it. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& flag() const;

 private:
  struct sigaction before_;
};

}  // namespace detrun::cli
