// The flag is the one mutable global of this room: a signal handler receives no argument.
#include "cli/interrupt.h"

namespace detrun::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

extern "C" void on_interrupt(int) { interrupted.store(true); }

}  // namespace

Interrupt::Interrupt() {
  interrupted.store(false);
  struct sigaction action = {};
  ::sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() { ::sigaction(SIGINT, &before_, nullptr); }

const std::atomic<bool>& Interrupt::flag() const { return interrupted; }

}  // namespace detrun::cli
