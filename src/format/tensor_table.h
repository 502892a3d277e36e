// The tensors of a GGUF file: their descriptions read and checked, then bound to bytes.
//
// After bind() every tensor lies inside the data section, none shares a byte with another, and no
// byte of the section is without an owner except padding to the alignment. Types are known by
// size only; whether a kernel exists is asked elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/model_file.h"
#include "format/byte_reader.h"

namespace detrun {

class TensorTable {
 public:
  explicit TensorTable(std::string path) : path_(std::move(path)) {}

  /// Reads `count` descriptions, checking each by itself and that no name comes twice.
  void parse(ByteReader& reader, std::uint64_t count);
  /// Gives each tensor its bytes. `infos_end`: the byte after the last description.
  void bind(std::span<const std::byte> file, std::uint64_t infos_end, std::uint64_t alignment);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;

 private:
  struct Place {
    std::uint64_t offset;  ///< from the start of the data section
    std::uint64_t size;    ///< bytes, > 0
  };

  void parse_one(ByteReader& reader, std::uint64_t index);
  std::uint64_t checked_bytes(const TensorInfo& tensor) const;
  void sort_and_refuse_duplicates();
  void check_fits(std::uint32_t index, std::uint64_t data_bytes) const;
  void check_layout(const std::vector<std::uint32_t>& by_offset, std::uint64_t data_bytes,
                    std::uint64_t alignment) const;
  [[noreturn]] void refuse_tensor(std::string_view name, const std::string& message,
                                  const std::string& hint = {}) const;

  std::string path_;
  std::vector<TensorInfo> tensors_;
  std::vector<Place> places_;         ///< parallel to tensors_
  std::vector<std::uint32_t> order_;  ///< indexes of tensors_ in bytewise order of the names
};

}  // namespace detrun
