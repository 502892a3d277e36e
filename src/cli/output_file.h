// A file that a command writes as a whole: it has its old content or all of the new one, never a
// part. Mode 0600.
#pragma once

#include <string>
#include <string_view>

namespace detrun::cli {

class OutputFile {
 public:
  /// Makes a file beside the final one, so that a place that cannot be written is known before any
  /// work. A device or pipe is opened as it is. Error kUsage naming `option`.
  OutputFile(const std::string& path, const std::string& option);
  /// Without `commit` the final file stays as it was.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Writes and gives the file its name. Once. Error kInternal: disk full, I/O error.
  void commit(std::string_view bytes);

 private:
  std::string shown_, final_, temporary_;  ///< temporary_ empty: written in place
  int fd_ = -1;
};

}  // namespace detrun::cli
