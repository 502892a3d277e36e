// Side threads of the use cases. A thread that the system refuses is an Error like any other, not
// an exception of the standard library that nobody above knows.
#pragma once

#include <string>
#include <system_error>
#include <utility>

#include "detrun/error.h"

namespace detrun {

/// What `start` gives (std::thread, std::future). Error kInternal when no thread can be started.
template <typename Start>
auto start_thread(Start&& start) {
  try {
    return std::forward<Start>(start)();
  } catch (const std::system_error& error) {
    throw_internal(std::string("cannot start a thread: ") + error.what(),
                   "the number of processes or the memory of this user is used up");
  }
}

}  // namespace detrun
