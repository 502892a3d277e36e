// A file of prompts: JSON objects, one a line. Reads and checks; what needs a model to be checked
// (ids, lengths) is not done here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/digest.h"
#include "detrun/run.h"

namespace detrun {

inline constexpr std::size_t kPromptsFileBytesMax = std::size_t{1} << 30;
inline constexpr std::size_t kPromptsLineBytesMax = std::size_t{16} << 20;

struct PromptsFile {
  struct Line {
    std::uint64_t number;  ///< from 1; lines of spaces alone count but are not listed
    std::size_t begin, size;
  };

  std::string bytes;
  Sha256Digest sha256{};  ///< of all bytes as they are in the file
  std::vector<Line> lines;

  std::string_view text(const Line& line) const {
    return std::string_view(bytes).substr(line.begin, line.size);
  }
};

/// "-" is standard input. A byte order mark is skipped, a carriage return at the end of a line is
/// none of it. Error kUsage: cannot be read, too large, holds no line, UTF-16.
PromptsFile read_prompts_file(const std::string& path);

/// Splits; for read_prompts_file and tests. Errors as above.
PromptsFile split_prompts(std::string bytes, const std::string& path);

/// What one line asks for, over the defaults of the command line. Error kUsage saying what is
/// wrong; the caller adds where.
RecordOptions parse_prompts_line(std::string_view line, const RecordOptions& defaults);

}  // namespace detrun
