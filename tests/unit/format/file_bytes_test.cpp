// Opening: regular files only, mapped or read, through one descriptor.
#include "format/file_bytes.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/support/gguf_builder.h"
#include "tests/unit/format/refusal.h"

namespace detrun {
namespace {

using test::refusal_of;
using test::TempFolder;

std::string message_of(const std::string& path, LoadMethod method = LoadMethod::kMap) {
  return refusal_of([&] { FileBytes::open(path, method); }).message;
}

std::string text_of(const FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_CASE("mapped and read bytes are the bytes of the file, page-aligned") {
  const TempFolder folder;
  // More than one piece of the reading loop.
  std::string content;
  for (int i = 0; i < 9'000'000; ++i)
    content.push_back(static_cast<char>(i * 7 + i / 256 + i / 65536));
  const std::string path = folder.write("a", content);
  for (const LoadMethod method : {LoadMethod::kMap, LoadMethod::kRead}) {
    const FileBytes file = FileBytes::open(path, method);
    CHECK((text_of(file) == content));  // no 9 MB in a message
    CHECK(reinterpret_cast<std::uintptr_t>(file.bytes().data()) % 4096 == 0);
  }
}

/// KiB of the mapping that starts at `start` which are in this process's memory now.
std::uint64_t resident_kib(const void* start) {
  std::ostringstream address;
  address << std::hex << reinterpret_cast<std::uintptr_t>(start) << '-';
  std::ifstream maps("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    found = found || line.starts_with(address.str());
    if (found && line.starts_with("Rss:")) return std::stoull(line.substr(4));
  }
  return 0;
}

TEST_CASE("released pages leave the memory of the process and come back with the same bytes") {
  constexpr std::size_t kPage = 4096;
  const TempFolder folder;
  std::string content;
  for (std::size_t i = 0; i < 400 * kPage + 100; ++i)
    content.push_back(static_cast<char>(i * 7 + i / 256 + i / 65536));
  const std::string path = folder.write("a", content);
  const FileBytes file = FileBytes::open(path, LoadMethod::kMap);
  const auto resident_after = [&](std::size_t first, std::size_t size) {
    CHECK((text_of(file) == content));  // all pages are in
    CHECK(resident_kib(file.bytes().data()) == 401 * 4);
    file.release(file.bytes().subspan(first, size));
    return resident_kib(file.bytes().data());
  };
  CHECK(resident_after(0, file.bytes().size()) == 0);
  CHECK(resident_after(kPage, 100 * kPage) == 301 * 4);
  // Of a page that is only partly of it others may have need.
  CHECK(resident_after(1, 100 * kPage) == 302 * 4);
  CHECK(resident_after(400 * kPage - 1, 101) == 400 * 4);
  CHECK(resident_after(400 * kPage, 99) == 401 * 4);
  CHECK(resident_after(7, 0) == 401 * 4);
  CHECK((text_of(file) == content));
}

TEST_CASE("of a small file nothing is released") {
  const TempFolder folder;
  const std::string content(380 * 4096, 'x');
  const FileBytes file = FileBytes::open(folder.write("a", content), LoadMethod::kMap);
  CHECK((text_of(file) == content));
  file.release(file.bytes());
  CHECK(resident_kib(file.bytes().data()) == 380 * 4);
}

TEST_CASE("a copy of the file keeps what is released") {
  const TempFolder folder;
  const std::string content(100000, 'x');
  const FileBytes file = FileBytes::open(folder.write("a", content), LoadMethod::kRead);
  file.release(file.bytes());
  CHECK((text_of(file) == content));
}

TEST_CASE("bytes outlive the name of the file and the object that opened it") {
  const TempFolder folder;
  const std::string path = folder.write("a", "content");
  for (const LoadMethod method : {LoadMethod::kMap, LoadMethod::kRead}) {
    folder.write("a", "content");
    FileBytes first = FileBytes::open(path, method);
    const FileBytes second = std::move(first);
    CHECK_NOTHROW(second.check_unchanged());
    std::filesystem::remove(path);
    CHECK(text_of(second) == "content");
  }
}

TEST_CASE("a missing file is refused") {
  const TempFolder folder;
  const std::string path = folder.file("absent.gguf");
  CHECK(message_of(path) == path + ": cannot open: No such file or directory");
  CHECK(message_of("") == ": cannot open: No such file or directory");
  CHECK(message_of(std::string("a\0b", 3)).find("NUL byte") != std::string::npos);
}

TEST_CASE("an empty file is refused") {
  const TempFolder folder;
  const std::string path = folder.write("empty.gguf", "");
  CHECK(message_of(path) == path + ": is empty (0 bytes); a GGUF file expected");
  CHECK(message_of(path, LoadMethod::kRead) == path + ": is empty (0 bytes); a GGUF file expected");
}

TEST_CASE("a directory, a device, a FIFO and a socket are refused as what they are") {
  const TempFolder folder;
  const std::string directory = folder.path().string();
  CHECK(message_of(directory) == directory + ": is a directory; a regular file expected");
  CHECK(message_of("/dev/null") == "/dev/null: is a character device; a regular file expected");
  CHECK(message_of("/dev/zero", LoadMethod::kRead).find("character device") != std::string::npos);

  // Nobody writes into this FIFO: an open that waited for a writer would never come back.
  const std::string fifo = folder.file("fifo");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(message_of(fifo) == fifo + ": is a FIFO; a regular file expected");

  const std::string path = folder.file("socket");
  const FileDescriptor bound(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::copy(path.begin(), path.end(), address.sun_path);
  REQUIRE(::bind(bound.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(message_of(path) == path + ": is a socket; a regular file expected");
}

TEST_CASE("a symbolic link is followed, a dangling one refused") {
  const TempFolder folder;
  folder.write("target", "content");
  std::filesystem::create_symlink("target", folder.path() / "link");
  CHECK(text_of(FileBytes::open(folder.file("link"), LoadMethod::kMap)) == "content");
  std::filesystem::create_symlink("nowhere", folder.path() / "dangling");
  CHECK(message_of(folder.file("dangling")).find("No such file") != std::string::npos);
}

TEST_CASE("an unreadable file is refused") {
  const TempFolder folder;
  const std::string path = folder.write("secret.gguf", "content");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(path, std::filesystem::perms::none);
  // The superuser reads everything, so the attempt is made as nobody.
  const uid_t user = geteuid();
  if (user == 0) REQUIRE(seteuid(65534) == 0);
  const std::string message = message_of(path);
  if (user == 0) REQUIRE(seteuid(0) == 0);
  CHECK(message == path + ": cannot open: Permission denied");
}

TEST_CASE("a file that grows, shrinks or is rewritten while open is noticed") {
  const TempFolder folder;
  const std::string path = folder.write("a", "content");
  for (const LoadMethod method : {LoadMethod::kMap, LoadMethod::kRead}) {
    folder.write("a", "content");
    const FileBytes file = FileBytes::open(path, method);
    CHECK_NOTHROW(file.check_unchanged());
    folder.write("a", "content and more");
    CHECK(refusal_of([&] { file.check_unchanged(); }).message ==
          path + ": changed while in use: 7 bytes when opened, 16 bytes now");
  }
  folder.write("a", "content");
  const FileBytes file = FileBytes::open(path, LoadMethod::kRead);
  folder.write("a", "CONTENT");
  const timespec times[2] = {{0, UTIME_OMIT}, {1000000000, 5}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  CHECK(refusal_of([&] { file.check_unchanged(); }).message ==
        path + ": changed while in use: written to since it was opened");
  CHECK(text_of(file) == "content");
}

TEST_CASE("a time of modification that is set back hides no change") {
  const TempFolder folder;
  const std::string path = folder.write("a", "content");
  const FileBytes file = FileBytes::open(path, LoadMethod::kRead);
  struct stat before {};
  REQUIRE(stat(path.c_str(), &before) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // clocks of files are coarse
  folder.write("a", "CONTENT");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  struct stat after {};
  REQUIRE(stat(path.c_str(), &after) == 0);
  REQUIRE(after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
  CHECK(refusal_of([&] { file.check_unchanged(); }).says("changed while in use"));
}

TEST_CASE("another file moved over the name is not mistaken for the open one, and is told") {
  const TempFolder folder;
  const std::string path = folder.write("a", "content");
  const FileBytes file = FileBytes::open(path, LoadMethod::kMap);
  folder.write("b", "other");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::filesystem::rename(folder.path() / "b", folder.path() / "a");
  CHECK(text_of(file) == "content");
  CHECK(refusal_of([&] { file.check_unchanged(); }).says("replaced"));
}

TEST_CASE("a file larger than the address space allows is an internal error, not a crash") {
  const TempFolder folder;
  const std::string path = folder.write("sparse.gguf", "GGUF");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 43);  // 8 TiB of holes
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit small = before;
  small.rlim_cur = rlim_t{1} << 40;
  if (setrlimit(RLIMIT_AS, &small) != 0) {
    MESSAGE("skipped: the address space cannot be limited here");
    return;
  }
  std::string message;
  ExitCode kind = ExitCode::kOk;
  try {
    FileBytes::open(path, LoadMethod::kMap);
  } catch (const Error& error) {
    kind = error.kind();
    message = error.what();
  }
  setrlimit(RLIMIT_AS, &before);
  CHECK(kind == ExitCode::kInternal);
  CHECK(message == path + ": cannot map 8796093022208 bytes: Cannot allocate memory");
}

}  // namespace
}  // namespace detrun
