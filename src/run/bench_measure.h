// Small tools of `bench`: a stopwatch that also knows processor time, peak memory, a folder that
// vanishes. Inside of bench.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace detrun {

/// Time since it was made, or last started.
class Stopwatch {
 public:
  Stopwatch() { start(); }
  void start();
  double seconds() const;
  /// Processor time of all threads of this process over `n_threads` times the time passed.
  double cpu_share(std::uint32_t n_threads) const;

 private:
  std::chrono::steady_clock::time_point started_;
  double cpu_started_ = 0;
};

/// Forgets the largest resident size so far, where the system lets it.
void reset_peak_rss();
/// The largest resident size of this process in bytes; 0 where the system does not say.
std::uint64_t peak_rss_bytes();

/// A new folder among the temporary ones, removed with all it holds. Error kInternal when none can
/// be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace detrun
