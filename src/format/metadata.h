// The metadata of a GGUF file: keys in file order, values found and checked, conversion on demand.
//
// It knows no key by meaning. Scalars are copied when parsed; strings and array elements stay in
// the bytes of the file and are bounded again each time they are walked, because a mapped file can
// be overwritten by others while it is in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/model_file.h"
#include "format/byte_reader.h"

namespace detrun {

class Metadata {
 public:
  explicit Metadata(std::string path) : path_(std::move(path)) {}

  /// Reads `count` keys with their values. Error kUsage: see ModelFile::open.
  void parse(ByteReader& reader, std::uint64_t count);

  // As in ModelFile, where the errors are described.
  const std::vector<std::string>& keys() const { return keys_; }
  std::optional<MetaType> type_of(std::string_view key) const;
  std::optional<MetaArray> array_of(std::string_view key) const;
  std::optional<std::uint64_t> get_u64(std::string_view key) const;
  std::optional<double> get_f64(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string_view> get_string(std::string_view key) const;
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const;
  std::optional<std::vector<double>> get_f64s(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> get_i64s(std::string_view key) const;

 private:
  struct Entry {
    MetaType type = MetaType::kU8;
    MetaType element_type = MetaType::kU8;  ///< arrays only
    std::uint64_t count = 0;                ///< arrays only
    std::uint64_t value_at = 0;             ///< byte of the file at which `value` starts
    std::array<std::byte, 8> scalar{};      ///< numbers and bool
    std::span<const std::byte> value;       ///< text, or the elements of an array
  };

  Entry parse_value(ByteReader& reader, std::string_view key) const;
  void parse_array(ByteReader& reader, std::string_view key, Entry& entry) const;
  void sort_and_refuse_duplicates();
  const Entry* find(std::string_view key) const;
  const Entry* find_array(std::string_view key, std::string_view wanted) const;
  [[noreturn]] void refuse_kind(std::string_view key, const Entry& entry,
                                std::string_view wanted) const;

  std::string path_;
  std::vector<std::string> keys_;
  std::vector<Entry> entries_;        ///< parallel to keys_
  std::vector<std::uint32_t> order_;  ///< indexes of keys_ in bytewise order of the keys
};

}  // namespace detrun
