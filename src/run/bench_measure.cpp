// See bench_measure.h.
#include "run/bench_measure.h"

#include <stdlib.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun {
namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

void Stopwatch::start() {
  cpu_started_ = cpu_seconds();
  started_ = std::chrono::steady_clock::now();
}

double Stopwatch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

double Stopwatch::cpu_share(std::uint32_t n_threads) const {
  return (cpu_seconds() - cpu_started_) / (seconds() * n_threads);
}

void reset_peak_rss() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::uint64_t peak_rss_bytes() {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word == "VmHWM:" && file >> word) return parse_u64(word).value_or(0) * 1024;
  }
  return 0;
}

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string name = (error ? std::string("/tmp") : parent.string()) + "/detrun-bench-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw_internal("cannot make a temporary folder " + name + ": " + std::strerror(errno),
                   "set TMPDIR to a folder that can be written");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // what cannot be removed stays; there is nobody to tell
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace detrun
