// Another process that keeps a GPU busy while results are compared.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace detrun {

class CompetingLoad {
 public:
  /// Starts `command` (a program and its arguments, its output thrown away but for errors) and
  /// waits until it has written a line with `ready` to its standard error. Error kInternal when it
  /// cannot be started or ends before, with its last line.
  CompetingLoad(const std::vector<std::string>& command, const std::string& ready);
  CompetingLoad(const CompetingLoad&) = delete;
  CompetingLoad& operator=(const CompetingLoad&) = delete;
  /// Ends it.
  ~CompetingLoad();

  /// Error kInternal when it has ended by itself: what was compared was compared without it.
  void check_running();

 private:
  void end();

  pid_t process_ = -1;
  int errors_ = -1;  ///< its standard error, to read from
};

}  // namespace detrun
