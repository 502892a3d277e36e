// Opens, checks and maps (or reads) one regular file.
//
// No other room opens a model file. O_NONBLOCK is there so that a FIFO given by mistake is refused
// and not waited for; it has no effect on regular files.
#include "format/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "detrun/error.h"

namespace detrun {
namespace {

/// The smallest file of which parts are let go.
constexpr std::size_t kReleaseFrom = std::size_t{3} << 19;

/// strerror() follows the locale, this does not.
std::string reason(int error) {
  const char* text = strerrordesc_np(error);
  return text != nullptr ? text : "error " + std::to_string(error);
}

/// What a path that is no regular file is, for the message.
const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  if (S_ISSOCK(mode)) return "a socket";
  return "a special file";
}

/// Faults of the machine rather than of the path that was given.
bool is_machine_fault(int error) {
  return error == EIO || error == ENOMEM || error == EMFILE || error == ENFILE;
}

[[noreturn]] void refuse_kind(const std::string& path, mode_t mode) {
  throw_usage(path + ": is " + kind_of(mode) + "; a regular file expected",
              "give the path of the .gguf file itself");
}

FileDescriptor open_read_only(const std::string& path) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd >= 0) return FileDescriptor(fd);
  const int error = errno;
  const std::string message = path + ": cannot open: " + reason(error);
  if (is_machine_fault(error)) throw_internal(message);
  // A socket cannot be opened at all, so it is named here.
  struct stat status {};
  if (error == ENXIO && ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    refuse_kind(path, status.st_mode);
  }
  throw_usage(message);
}

struct stat status_of(const FileDescriptor& fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    throw_internal(path + ": cannot get its size: " + reason(errno));
  }
  return status;
}

/// Pages of `size` bytes: of the file when fd >= 0, otherwise zeroed memory that can be written.
Pages map_pages(const std::string& path, int fd, std::size_t size) {
  const int protection = fd >= 0 ? PROT_READ : PROT_READ | PROT_WRITE;
  const int flags = fd >= 0 ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS;
  void* start = ::mmap(nullptr, size, protection, flags, fd, 0);
  if (start == MAP_FAILED) {
    const int error = errno;
    const std::string message =
        path + ": cannot map " + std::to_string(size) + " bytes: " + reason(error);
    if (error == ENODEV) throw_usage(message, "copy the file to a local file system");
    throw_internal(message);
  }
  return {start, size};
}

Pages read_pages(const std::string& path, const FileDescriptor& fd, std::size_t size) {
  constexpr std::size_t kPieceBytesMax = 8 * 1024 * 1024;  // one read() takes less than 2^31
  Pages pages = map_pages(path, -1, size);
  const std::span<std::byte> out = pages.span();
  std::size_t done = 0;
  while (done < size) {
    const std::size_t piece = std::min(size - done, kPieceBytesMax);
    const ssize_t got = ::pread(fd.get(), out.data() + done, piece, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw_internal(path + ": cannot read at byte " + std::to_string(done) + ": " + reason(errno));
    }
    if (got == 0) {
      throw_usage(path + ": ended at byte " + std::to_string(done) + " while it was read; " +
                      std::to_string(size) + " bytes expected",
                  "something is still writing this file: wait until it is complete");
    }
    done += static_cast<std::size_t>(got);
  }
  ::mprotect(out.data(), size, PROT_READ);
  return pages;
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Pages::~Pages() {
  if (start_ != nullptr) ::munmap(start_, size_);
}

FileBytes FileBytes::open(const std::string& path, LoadMethod method) {
  if (path.find('\0') != std::string::npos) {
    throw_usage("a model path holds a NUL byte; no file can have that name");
  }
  FileDescriptor fd = open_read_only(path);
  const struct stat status = status_of(fd, path);
  if (!S_ISREG(status.st_mode)) refuse_kind(path, status.st_mode);
  if (status.st_size <= 0) throw_usage(path + ": is empty (0 bytes); a GGUF file expected");
  const auto size = static_cast<std::size_t>(status.st_size);
  Pages pages =
      method == LoadMethod::kMap ? map_pages(path, fd.get(), size) : read_pages(path, fd, size);
  return {path, std::move(fd), status, method, std::move(pages)};
}

void FileBytes::release(std::span<const std::byte> part) const {
  // Of a copy these would come back as zeros.
  if (method_ != LoadMethod::kMap || part.empty()) return;
  const std::span<std::byte> all = pages_.span();
  // Every core must hear of it, which costs more than little memory is worth.
  if (all.size() < kReleaseFrom) return;
  DETRUN_CHECK(part.data() >= all.data() && part.size() <= all.size());
  const auto first = static_cast<std::size_t>(part.data() - all.data());
  DETRUN_CHECK(first <= all.size() - part.size());
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (first + page - 1) / page * page;
  // The last page of the file may be cut short: it belongs to whoever has the last byte.
  const std::size_t last = first + part.size();
  const std::size_t end = last == all.size() ? last : last / page * page;
  if (begin < end) ::madvise(all.data() + begin, end - begin, MADV_DONTNEED);  // only a wish
}

void FileBytes::check_unchanged() const {
  const struct stat now = status_of(fd_, path_);
  const char* hint = "let nothing write to a model file while it is used; run the command again";
  if (now.st_size != opened_.st_size) {
    throw_usage(path_ + ": changed while in use: " + std::to_string(opened_.st_size) +
                    " bytes when opened, " + std::to_string(now.st_size) + " bytes now",
                hint);
  }
  if (!same_time(now.st_mtim, opened_.st_mtim)) {
    throw_usage(path_ + ": changed while in use: written to since it was opened", hint);
  }
  // The time of modification can be set back, this one cannot: what hides behind it is unknown.
  if (!same_time(now.st_ctim, opened_.st_ctim)) {
    throw_usage(path_ +
                    ": changed while in use: written to, renamed, replaced or given other "
                    "attributes since it was opened",
                hint);
  }
}

}  // namespace detrun
