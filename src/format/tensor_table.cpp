// Parses tensor descriptions and checks the layout of the data section.
//
// Comparisons are written as subtractions of values already known to be in order, so that no sum
// of numbers from the file can wrap. Source: ggml's public description of GGUF (docs/gguf.md).
#include "format/tensor_table.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace detrun {
namespace {

constexpr std::uint64_t kNameBytesMax = 64;  // "must be at most 64 bytes long"
constexpr std::uint32_t kDimsMax = 4;
constexpr std::uint64_t kInfoBytesMin =
    33;  // length 8, one byte, n_dims 4, dim 8, type 4, offset 8

std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

std::string dims_text(const TensorInfo& tensor) {
  std::string out = "[";
  for (std::uint32_t i = 0; i < tensor.n_dims; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(tensor.dims[i]);
  }
  return out + "]";
}

}  // namespace

void TensorTable::refuse_tensor(std::string_view name, const std::string& message,
                                const std::string& hint) const {
  refuse(path_, "tensor '" + std::string(name) + "' " + message, hint);
}

void TensorTable::parse(ByteReader& reader, std::uint64_t count) {
  reader.require_room(count, kInfoBytesMin, {.what = "the number of tensors"});
  for (std::uint64_t i = 1; i <= count; ++i) parse_one(reader, i);
  sort_and_refuse_duplicates();
}

void TensorTable::parse_one(ByteReader& reader, std::uint64_t index) {
  const Field name_field{.what = "the name of tensor", .index = index};
  const std::string_view name = reader.string(name_field);
  check_name(path_, name, reader.position() - name.size(), kNameBytesMax, name_field);

  TensorInfo tensor{std::string(name), QType::kF32, 0, {1, 1, 1, 1}, {}};
  tensor.n_dims = reader.number<std::uint32_t>({.what = "n_dims of tensor", .name = name});
  if (tensor.n_dims == 0 || tensor.n_dims > kDimsMax) {
    refuse_tensor(name, "has " + std::to_string(tensor.n_dims) + " dimensions; 1 to 4 expected");
  }
  for (std::uint32_t i = 0; i < tensor.n_dims; ++i) {
    tensor.dims[i] = reader.number<std::uint64_t>({.what = "a dimension of tensor", .name = name});
    if (tensor.dims[i] == 0) {
      refuse_tensor(name, "has dimension " + std::to_string(i) + " of size 0; at least 1 expected");
    }
  }
  const auto type = reader.number<std::uint32_t>({.what = "the type of tensor", .name = name});
  const QTypeInfo* info = find_qtype(type);
  if (info == nullptr) {
    refuse_tensor(name,
                  "is of type " + std::to_string(type) +
                      ", which is unknown or was removed "
                      "from the format",
                  "convert the model to a current type, for example Q8_0");
  }
  tensor.type = info->type;
  const auto offset = reader.number<std::uint64_t>({.what = "the offset of tensor", .name = name});
  places_.push_back({offset, checked_bytes(tensor)});
  tensors_.push_back(std::move(tensor));
}

std::uint64_t TensorTable::checked_bytes(const TensorInfo& tensor) const {
  const QTypeInfo& info = qtype_info(tensor.type);
  if (tensor.row_elems() % info.block_elems != 0) {
    refuse_tensor(tensor.name, "has rows of " + std::to_string(tensor.row_elems()) +
                                   " elements, no whole number of " + std::string(info.name) +
                                   " blocks of " + std::to_string(info.block_elems));
  }
  std::optional<std::uint64_t> bytes = row_bytes(info, tensor.row_elems());
  for (std::size_t i = 1; i < tensor.dims.size() && bytes; ++i) {
    bytes = checked_multiply(*bytes, tensor.dims[i]);
  }
  if (!bytes) {
    refuse_tensor(tensor.name, "of dimensions " + dims_text(tensor) + " and type " +
                                   std::string(info.name) + " has a size that overflows 64 bits");
  }
  return *bytes;
}

void TensorTable::sort_and_refuse_duplicates() {
  order_.resize(tensors_.size());
  std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const int order = tensors_[a].name.compare(tensors_[b].name);
    return order != 0 ? order < 0 : a < b;
  });
  for (std::size_t i = 1; i < order_.size(); ++i) {
    const std::uint32_t first = order_[i - 1];
    const std::uint32_t second = order_[i];
    if (tensors_[first].name != tensors_[second].name) continue;
    refuse_tensor(tensors_[first].name, "is there twice (tensors " + std::to_string(first + 1) +
                                            " and " + std::to_string(second + 1) +
                                            "); each name once expected");
  }
}

void TensorTable::bind(std::span<const std::byte> file, std::uint64_t infos_end,
                       std::uint64_t alignment) {
  // infos_end is at most the size of the file and the alignment was checked: this cannot wrap.
  const std::uint64_t data_start = (infos_end + (alignment - 1)) / alignment * alignment;
  const std::uint64_t data_bytes = data_start <= file.size() ? file.size() - data_start : 0;
  std::vector<std::uint32_t> by_offset(tensors_.size());
  std::iota(by_offset.begin(), by_offset.end(), std::uint32_t{0});
  std::sort(by_offset.begin(), by_offset.end(), [this](std::uint32_t a, std::uint32_t b) {
    return places_[a].offset != places_[b].offset ? places_[a].offset < places_[b].offset : a < b;
  });
  check_layout(by_offset, data_bytes, alignment);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].data = file.subspan(data_start + places_[i].offset, places_[i].size);
  }
}

void TensorTable::check_fits(std::uint32_t index, std::uint64_t data_bytes) const {
  const Place& place = places_[index];
  if (place.offset <= data_bytes && place.size <= data_bytes - place.offset) return;
  refuse_tensor(tensors_[index].name,
                "does not fit: " + std::to_string(place.size) + " bytes at offset " +
                    std::to_string(place.offset) + " of a data section of " +
                    std::to_string(data_bytes) + " bytes",
                "the file is cut short or damaged: compare its size and checksum with the source");
}

void TensorTable::check_layout(const std::vector<std::uint32_t>& by_offset,
                               std::uint64_t data_bytes, std::uint64_t alignment) const {
  // What does not fit is named before the hole that a wrong offset leaves elsewhere.
  for (const std::uint32_t index : by_offset) check_fits(index, data_bytes);
  std::uint64_t end = 0;  // of the bytes owned so far, in the data section
  std::string_view owner;
  for (const std::uint32_t index : by_offset) {
    const Place& place = places_[index];
    const std::string& name = tensors_[index].name;
    const std::string at = "at offset " + std::to_string(place.offset);
    if (place.offset % alignment != 0) {
      refuse_tensor(name, at + ", no multiple of the alignment " + std::to_string(alignment));
    }
    if (place.offset < end) {
      refuse_tensor(name, at + " overlaps tensor '" + std::string(owner) + "', which ends at " +
                              std::to_string(end));
    }
    if (place.offset - end >= alignment) {
      refuse_tensor(name,
                    at + " leaves " + std::to_string(place.offset - end) +
                        " bytes before it that belong to no tensor; less than the alignment " +
                        std::to_string(alignment) + " expected");
    }
    end = place.offset + place.size;
    owner = name;
  }
  const std::uint64_t padding = (alignment - end % alignment) % alignment;
  if (data_bytes - end > padding) {
    refuse(path_, std::to_string(data_bytes - end) +
                      " bytes at the end of the file belong to no tensor; at most " +
                      std::to_string(padding) + " of padding expected");
  }
}

const TensorInfo* TensorTable::find(std::string_view name) const {
  const auto at = std::lower_bound(order_.begin(), order_.end(), name,
                                   [this](std::uint32_t index, std::string_view wanted) {
                                     return tensors_[index].name < wanted;
                                   });
  return at != order_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

}  // namespace detrun
