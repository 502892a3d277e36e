// The flag is the one mutable global of this room: a signal handler receives no argument.
#include "cli/interrupt.h"

namespace detrun::cli {
namespace {

constexpr std::array<int, Interrupt::kSignals> kNumbers{SIGINT, SIGTERM};

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

// The second signal, of either kind, is given its default action and sent again.
extern "C" void on_interrupt(int number) {
  if (!interrupted.exchange(true)) return;
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

Interrupt::Interrupt() {
  interrupted.store(false);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    ::sigaction(kNumbers[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kNumbers[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    ::sigaction(kNumbers[i], &before_[i], nullptr);
  }
}

const std::atomic<bool>& Interrupt::flag() const { return interrupted; }

}  // namespace detrun::cli
