// Runs the real program as a child process: arguments, standard input, environment, terminals on
// either output, signals at a chosen moment; captures both outputs and how it ended. Linux only.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace detrun::test {

/// What to run. The environment is this process's without DETRUN_* and NO_COLOR, then `env`.
struct CliRun {
  std::vector<std::string> arguments;
  std::string program;                     ///< empty: program_path()
  std::string input;                       ///< standard input
  std::map<std::string, std::string> env;  ///< set on top
  bool out_terminal = false, err_terminal = false;
  std::string out_path;            ///< standard output goes there instead
  bool out_missing = false;        ///< descriptor 1 is closed
  bool close_out_at_once = false;  ///< the reader is gone before the program starts
  bool read_out = true;            ///< false: nobody reads, the pipe holds 4096 bytes
  std::string interrupt_when_err;  ///< SIGINT when standard error holds this
  int interrupts = 1;
  int timeout_s = 120;
};

struct CliResult {
  int code = -1;  ///< exit code; -1 when a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string out, err;
};

namespace cli_runner_detail {

inline void require(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

/// Two ends: the parent's and the child's.
struct Channel {
  int parent = -1, child = -1;
};

inline Channel make_terminal() {
  Channel channel;
  channel.parent = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  require(channel.parent >= 0 && ::grantpt(channel.parent) == 0 && ::unlockpt(channel.parent) == 0,
          "no pseudo-terminal");
  channel.child = ::open(::ptsname(channel.parent), O_RDWR | O_NOCTTY | O_CLOEXEC);
  require(channel.child >= 0, "no pseudo-terminal");
  termios modes = {};
  ::tcgetattr(channel.child, &modes);
  ::cfmakeraw(&modes);  // the bytes as written: no newline translation
  ::tcsetattr(channel.child, TCSANOW, &modes);
  return channel;
}

inline Channel make_pipe(bool to_child) {
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC) == 0, "no pipe");
  return to_child ? Channel{ends[1], ends[0]} : Channel{ends[0], ends[1]};
}

inline std::vector<std::string> environment(const CliRun& run) {
  std::vector<std::string> out;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool ours = name.rfind("DETRUN_", 0) == 0 || name == "NO_COLOR" || name == "TERM";
    if (!ours && run.env.count(name) == 0) out.push_back(text);
  }
  if (run.env.count("TERM") == 0) out.push_back("TERM=xterm");
  for (const auto& [name, value] : run.env) {
    out.push_back(name);
    out.back().append("=").append(value);
  }
  return out;
}

inline std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

struct Pipes {
  Channel in, out, err;
};

inline pid_t start(const std::string& program, const CliRun& run, const Pipes& pipes) {
  std::vector<std::string> words{program};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  std::vector<std::string> env = environment(run);
  const std::vector<char*> argv = pointers(words), envp = pointers(env);
  const pid_t pid = ::fork();
  require(pid >= 0, "cannot fork");
  if (pid != 0) return pid;
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(pipes.in.child, 0);
  ::dup2(pipes.out.child, 1);
  ::dup2(pipes.err.child, 2);
  if (run.out_missing) ::close(1);
  ::execve(program.c_str(), argv.data(), envp.data());
  ::_exit(127);
}

/// Appends what is there; closes the descriptor at its end (a terminal ends in EIO).
inline void take(int& fd, std::string& to) {
  char block[65536];
  const ssize_t n = ::read(fd, block, sizeof block);
  if (n > 0) {
    to.append(block, static_cast<std::size_t>(n));
  } else if (n == 0 || errno != EINTR) {
    ::close(fd);
    fd = -1;
  }
}

inline void give(int& fd, std::string_view& rest) {
  const ssize_t n = rest.empty() ? -1 : ::write(fd, rest.data(), rest.size());
  if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
  if (n <= 0 || rest.empty()) {
    ::close(fd);
    fd = -1;
  }
}

inline void close_end(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

/// Moves bytes until the program ends, and sends the signals.
inline void serve(pid_t pid, const CliRun& run, Pipes& pipes, CliResult& result) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(run.timeout_s);
  std::string_view rest = run.input;
  int interrupts_left = run.interrupt_when_err.empty() ? 0 : run.interrupts;
  if (rest.empty()) close_end(pipes.in.parent);
  while ((run.read_out && pipes.out.parent >= 0) || pipes.err.parent >= 0) {
    pollfd fds[3] = {{pipes.in.parent, POLLOUT, 0},
                     {run.read_out ? pipes.out.parent : -1, POLLIN, 0},
                     {pipes.err.parent, POLLIN, 0}};
    ::poll(fds, 3, 50);
    if (fds[0].revents != 0) give(pipes.in.parent, rest);
    if (fds[1].revents != 0) take(pipes.out.parent, result.out);
    if (fds[2].revents != 0) take(pipes.err.parent, result.err);
    if (interrupts_left > 0 && result.err.find(run.interrupt_when_err) != std::string::npos) {
      ::kill(pid, SIGINT);
      if (--interrupts_left > 0) ::usleep(20000);
    }
    if (Clock::now() > deadline) {
      result.timed_out = true;
      ::kill(pid, SIGKILL);
      return;
    }
  }
}

}  // namespace cli_runner_detail

/// The program of this build.
inline std::string program_path() { return DETRUN_BINARY_DIR "/bin/detrun"; }

inline CliResult run_cli(const CliRun& run) {
  using namespace cli_runner_detail;
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  Pipes pipes;
  pipes.in = make_pipe(true);
  pipes.err = run.err_terminal ? make_terminal() : make_pipe(false);
  pipes.out = run.out_terminal ? make_terminal() : make_pipe(false);
  if (!run.out_path.empty()) {
    close_end(pipes.out.child);
    pipes.out.child = ::open(run.out_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    require(pipes.out.child >= 0, "cannot open the output");
  }
  if (!run.read_out) ::fcntl(pipes.out.child, F_SETPIPE_SZ, 4096);
  if (run.close_out_at_once) close_end(pipes.out.parent);

  const pid_t pid = start(run.program.empty() ? program_path() : run.program, run, pipes);
  close_end(pipes.in.child);
  close_end(pipes.out.child);
  close_end(pipes.err.child);
  CliResult result;
  serve(pid, run, pipes, result);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  for (int* fd : {&pipes.in.parent, &pipes.out.parent, &pipes.err.parent}) close_end(*fd);
  ::signal(SIGPIPE, handler);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

inline CliResult run_cli(std::vector<std::string> arguments) {
  CliRun run;
  run.arguments = std::move(arguments);
  return run_cli(run);
}

/// A folder of its own that goes away with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "detrun-cli-XXXXXX").string();
    cli_runner_detail::require(::mkdtemp(name.data()) != nullptr, "no scratch folder");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace detrun::test
