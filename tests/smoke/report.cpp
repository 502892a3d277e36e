// Tables and what the host is. Numbers by to_chars-like formats of fixed width: no locale.
#include "report.h"

#include <gnu/libc-version.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

namespace detrun::smoke {

namespace {

std::string hex_word(const Bytes& bytes, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(4, bytes.size() - at));
  char text[16];
  std::snprintf(text, sizeof text, "%08x", word);
  return text;
}

std::string one_decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

}  // namespace

std::string difference(const Bytes& expected, const Bytes& found, bool zeros_allowed) {
  if (expected.size() != found.size()) {
    return "gave " + std::to_string(found.size()) + " bytes, expected " +
           std::to_string(expected.size());
  }
  const auto parting = std::mismatch(expected.begin(), expected.end(), found.begin());
  if (parting.first != expected.end()) {
    const auto at = static_cast<std::size_t>(parting.first - expected.begin()) / 4 * 4;
    return "word " + std::to_string(at / 4) + " is " + hex_word(found, at) + ", expected " +
           hex_word(expected, at);
  }
  const bool zero =
      std::all_of(expected.begin(), expected.end(), [](std::byte b) { return b == std::byte{0}; });
  if (zero && !zeros_allowed) return "nothing but zeros: the case proves nothing";
  return {};
}

void Table::add(const std::string& kernel, const std::string& shape, const std::string& difference,
                double milliseconds) {
  auto line =
      std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.kernel == kernel; });
  if (line == lines_.end()) {
    lines_.push_back({});
    line = lines_.end() - 1;
    line->kernel = kernel;
  }
  if (line->shapes.find(shape) == std::string::npos) {
    line->shapes += (line->shapes.empty() ? "" : "; ") + shape;
  }
  ++line->cases;
  line->milliseconds += milliseconds;
  if (difference.empty()) return;
  ++line->different;
  if (line->first_difference.empty()) {
    line->first_difference = (shape.empty() ? "" : shape + ": ") + difference;
  }
}

std::string Table::markdown() const {
  std::string text = "## " + title_ + "\n\n";
  text += "| kernel | shapes | cases | result | first difference | ms |\n";
  text += "| --- | --- | --- | --- | --- | --- |\n";
  for (const Line& line : lines_) {
    text += "| " + line.kernel + " | " + line.shapes + " | " + std::to_string(line.cases) + " | " +
            (line.different == 0 ? "equal" : "**" + std::to_string(line.different) + " differ**") +
            " | " + line.first_difference + " | " + one_decimal(line.milliseconds) + " |\n";
  }
  return text + "\n";
}

std::size_t Table::cases() const {
  std::size_t sum = 0;
  for (const Line& line : lines_) sum += line.cases;
  return sum;
}

std::size_t Table::different() const {
  std::size_t sum = 0;
  for (const Line& line : lines_) sum += line.different;
  return sum;
}

std::string describe_host() {
  std::string model = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos) {
      model = line.substr(line.find(": ") + 2);
      break;
    }
  }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " threads, glibc " +
         gnu_get_libc_version();
}

}  // namespace detrun::smoke
