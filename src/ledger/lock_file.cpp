// Open-file-description locks on LEDGER-lock, byte = run number.
#include "ledger/lock_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun::ledger {
namespace {

struct flock byte_lock(short type, std::int64_t number) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = number;
  lock.l_len = 1;
  return lock;
}

}  // namespace

LockFile::LockFile(const std::string& ledger_path, Access access) : path_(ledger_path + "-lock") {
  if (access == Access::kRead) {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    return;
  }
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ >= 0) {
    ::fchmod(fd_, 0600);
  } else if (errno == EEXIST) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  }
  if (fd_ < 0)
    throw_usage(
        "lock file '" + escape_for_terminal(path_) + "' cannot be opened: " + std::strerror(errno),
        "Recording needs a folder and a lock file that can be written.");
}

LockFile::~LockFile() {
  if (fd_ >= 0) ::close(fd_);
}

bool LockFile::try_lock(std::int64_t number) {
  if (own_.contains(number)) return false;
  struct flock lock = byte_lock(F_WRLCK, number);
  if (::fcntl(fd_, F_OFD_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    throw_internal("lock file '" + escape_for_terminal(path_) + "': " + std::strerror(errno),
                   "The file system must support open-file-description locks.");
  }
  own_.insert(number);
  return true;
}

void LockFile::unlock(std::int64_t number) {
  if (own_.erase(number) == 0) return;
  struct flock lock = byte_lock(F_UNLCK, number);
  ::fcntl(fd_, F_OFD_SETLK, &lock);
}

bool LockFile::is_live(std::int64_t number) const {
  if (own_.contains(number)) return true;
  if (fd_ < 0) return false;
  struct flock lock = byte_lock(F_WRLCK, number);
  return ::fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace detrun::ledger
