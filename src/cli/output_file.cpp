// See output_file.h. The bytes are on the disk before the name is given.
#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "detrun/error.h"

namespace detrun::cli {

OutputFile::OutputFile(const std::string& path, const std::string& option)
    : shown_(option + " '" + path + "'"), final_(path) {
  if (path.empty()) throw_usage(option + ": the file name is empty");
  const auto refuse = [this](const std::string& why) {
    throw_usage(shown_ + " cannot be written: " + why, "choose another place");
  };
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) refuse("it is a directory");
  if (exists && !S_ISREG(info.st_mode)) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) refuse(std::strerror(errno));
    return;
  }
  // What a symbolic link names is replaced, not the link.
  std::array<char, PATH_MAX> real{};
  if (exists && ::realpath(path.c_str(), real.data()) != nullptr) final_ = real.data();
  temporary_ = final_ + ".XXXXXX";
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) {
    temporary_.clear();
    refuse(std::strerror(errno));
  }
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::commit(std::string_view bytes) {
  const auto fail = [this] {
    throw_internal(shown_ + " cannot be written: " + std::strerror(errno));
  };
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail();
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (temporary_.empty()) return;
  if (::fsync(fd_) != 0) fail();
  if (std::rename(temporary_.c_str(), final_.c_str()) != 0) fail();
  temporary_.clear();
}

}  // namespace detrun::cli
