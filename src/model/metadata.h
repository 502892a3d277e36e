// Typed, range-checked reading of an architecture's metadata keys. Knows no architecture. Every
// refusal is Error kUsage and names file, key and value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/model_file.h"

namespace detrun {

/// Error kUsage: "FILE: what". The path comes first in every message about a model file.
[[noreturn]] void refuse_model(const ModelFile& file, const std::string& what,
                               const std::string& hint = {});

/// Bounds of an integer value, both included.
struct U32Range {
  std::uint32_t min, max;
};

class MetaReader {
 public:
  MetaReader(const ModelFile& file, std::string_view arch)
      : file_(file), prefix_(std::string(arch) + ".") {}

  std::string full_key(std::string_view key) const { return prefix_ + std::string(key); }

  /// The key with its prefix, remembered as looked at.
  std::string look_at(std::string_view key);
  /// Keys of this architecture that nothing looked at: they may matter, this version cannot know.
  std::vector<std::string> keys_not_looked_at() const;

  std::optional<std::uint32_t> u32(std::string_view key, U32Range range);
  std::uint32_t required_u32(std::string_view key, U32Range range);
  /// A value every layer shares, written as a scalar or as an array with one value a layer.
  std::optional<std::uint32_t> u32_of_all_layers(std::string_view key, std::uint32_t n_layers,
                                                 U32Range range);
  std::optional<bool> flag(std::string_view key) { return file_.get_bool(look_at(key)); }
  std::optional<std::string_view> text(std::string_view key) {
    return file_.get_string(look_at(key));
  }
  /// Of a floating-point or an integer kind; finite only.
  std::optional<double> number(std::string_view key);

  [[noreturn]] void refuse_key(std::string_view key, const std::string& found,
                               const std::string& expected, const std::string& hint = {}) const;

 private:
  std::uint32_t checked(std::string_view key, std::uint64_t value, U32Range range) const;

  const ModelFile& file_;
  std::string prefix_;
  std::vector<std::string> looked_at_;
};

}  // namespace detrun
