// See competing_load.h. Between fork and exec only calls that are safe there, for other threads of
// this process may hold any lock. The load ends with its parent, however that ends.
#include "run/competing_load.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun {
namespace {

constexpr int kPatienceMs = 60'000;  // without a word of the load

[[noreturn]] void run_load(char* const* command, int errors, pid_t parent) {
  setpgid(0, 0);  // what a terminal sends to this command is for its parent
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // gone already
  const int nothing = open("/dev/null", O_RDWR);
  const bool redirected = nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
                          dup2(nothing, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0;
  if (redirected) execv(command[0], command);
  _exit(127);
}

/// Whether `text` has a whole line with `word` in it.
bool has_line_with(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  return at != std::string::npos && text.find('\n', at) != std::string::npos;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t end = text.rfind('\n');
  return escape_for_terminal(end == std::string::npos ? text : text.substr(end + 1));
}

}  // namespace

CompetingLoad::CompetingLoad(const std::vector<std::string>& command, const std::string& ready) {
  DETRUN_CHECK(!command.empty());
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw_internal(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  errors_ = ends[0];
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) run_load(arguments.data(), ends[1], parent);
  const int failed = errno;
  close(ends[1]);
  std::string said;
  while (process_ > 0) {
    pollfd waiting{errors_, POLLIN, 0};
    const int found = poll(&waiting, 1, kPatienceMs);
    if (found < 0 && errno == EINTR) continue;
    std::array<char, 4096> bytes{};
    const ssize_t count = found > 0 ? read(errors_, bytes.data(), bytes.size()) : 0;
    if (count <= 0) break;
    said.append(bytes.data(), static_cast<std::size_t>(count));
    if (has_line_with(said, ready)) return;
  }
  const std::string why = process_ < 0   ? std::strerror(failed)
                          : said.empty() ? "it said nothing"
                                         : "its last words: " + last_line(std::move(said));
  end();
  throw_internal("the competing load " + command.front() + " does not run: " + why,
                 "it is a second process on the GPU, which must be allowed; or use --numerics "
                 "portable");
}

CompetingLoad::~CompetingLoad() { end(); }

void CompetingLoad::end() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  process_ = -1;
  if (errors_ >= 0) close(errors_);
  errors_ = -1;
}

void CompetingLoad::check_running() {
  const bool runs = process_ > 0 && waitpid(process_, nullptr, WNOHANG) == 0;
  if (runs) return;
  process_ = -1;
  throw_internal("the competing load ended before the results were compared");
}

}  // namespace detrun
