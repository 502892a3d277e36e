// The front door of the room: which reader a path gets, and helpers over any ModelFile.
#include "detrun/model_file.h"

#include "format/byte_reader.h"
#include "format/file_bytes.h"
#include "format/gguf_file.h"

namespace detrun {

std::unique_ptr<ModelFile> ModelFile::open(const std::string& path, LoadMethod method) {
  std::unique_ptr<ModelFile> file = parse_gguf(path, FileBytes::open(path, method));
  // Bytes copied while somebody was still writing would be a mixture of two files.
  file->check_unchanged();
  return file;
}

std::optional<std::vector<std::uint64_t>> get_u64_per_layer(const ModelFile& file,
                                                            std::string_view key,
                                                            std::uint32_t n_layers) {
  if (!file.array_of(key)) {
    const std::optional<std::uint64_t> value = file.get_u64(key);
    if (!value) return std::nullopt;
    return std::vector<std::uint64_t>(n_layers, *value);
  }
  const std::vector<std::int64_t> values = *file.get_i64s(key);
  const std::string label = "key '" + std::string(key) + "'";
  if (values.size() != n_layers) {
    refuse(file.path(), label + " has " + std::to_string(values.size()) +
                            " values; one for each of " + std::to_string(n_layers) +
                            " layers expected");
  }
  std::vector<std::uint64_t> out;
  out.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) {
      refuse(file.path(), label + ": element " + std::to_string(i) + " is " +
                              std::to_string(values[i]) + "; 0 or more expected");
    }
    out.push_back(static_cast<std::uint64_t>(values[i]));
  }
  return out;
}

}  // namespace detrun
