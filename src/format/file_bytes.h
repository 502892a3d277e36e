// The bytes of one regular file in memory, mapped or read, and the descriptor they came through.
//
// It knows nothing of formats. The file is opened once and only once: size, bytes and the later
// question whether it changed are all answered by the same descriptor, never by the path again.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "detrun/model_file.h"

namespace detrun {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Owns pages of memory: a private mapping of a file, or anonymous memory. Page-aligned.
class Pages {
 public:
  Pages(void* start, std::size_t size) : start_(start), size_(size) {}
  ~Pages();
  Pages(Pages&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Pages& operator=(Pages&&) = delete;
  std::span<std::byte> span() const { return {static_cast<std::byte*>(start_), size_}; }

 private:
  void* start_;
  std::size_t size_;
};

class FileBytes {
 public:
  /// Error kUsage: missing, unreadable, no regular file (named as what it is), empty. Error
  /// kInternal: I/O error, out of memory or descriptors. Never waits for a FIFO's writer.
  static FileBytes open(const std::string& path, LoadMethod method);

  /// At least one byte, page-aligned, read-only.
  std::span<const std::byte> bytes() const { return pages_.span(); }
  /// Error kUsage when size, time of modification or time of status change differ from those at
  /// the time of opening. The last one cannot be set by anybody; it moves with a new name, a new
  /// link and other attributes too, and such a file is refused: nobody knows what else happened.
  void check_unchanged() const;
  /// Lets go of the whole pages of `part`, a part of bytes(): reading them again takes them from
  /// the file. Nothing where bytes() are a copy or the file is small (below
  /// one and a half mebibytes).
  void release(std::span<const std::byte> part) const;

 private:
  FileBytes(std::string path, FileDescriptor fd, const struct stat& opened, LoadMethod method,
            Pages pages)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        opened_(opened),
        method_(method),
        pages_(std::move(pages)) {}

  std::string path_;
  FileDescriptor fd_;
  struct stat opened_;
  LoadMethod method_;
  Pages pages_;
};

}  // namespace detrun
