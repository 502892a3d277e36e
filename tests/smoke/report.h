// What was compared, as a Markdown table: one line a kernel, cases counted, the first difference
// shown. The report is the product of a run on a machine that nobody sees again.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace detrun::smoke {

using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& to, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Where two results part, in words; empty when they are equal. Equal results that hold nothing but
/// zeros prove nothing and count as a difference unless `zeros_allowed`.
std::string difference(const Bytes& expected, const Bytes& found, bool zeros_allowed);

/// One line of a table.
struct Line {
  std::string kernel;
  std::string shapes;  ///< of its cases, or what they are
  std::size_t cases = 0;
  std::size_t different = 0;
  std::string first_difference;
  double milliseconds = 0;
};

class Table {
 public:
  explicit Table(std::string title) : title_(std::move(title)) {}
  /// Adds a case to the line of its kernel.
  void add(const std::string& kernel, const std::string& shape, const std::string& difference,
           double milliseconds);
  std::string markdown() const;
  std::size_t cases() const;
  std::size_t different() const;

 private:
  std::string title_;
  std::vector<Line> lines_;
};

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// "Intel(R) ...", threads, C library.
std::string describe_host();

}  // namespace detrun::smoke
