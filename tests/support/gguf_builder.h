// Writes small GGUF files (versions 2 and 3) for tests: valid ones, or ones damaged on purpose.
//
// It is no part of the program and shares no code with the reader: sizes come from qtypes.def only.
// Nothing is checked here, so every wrong count, offset or type can be written; build() also says
// where each field lies (layout), so that a test can patch one field of a valid file.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace detrun::test {

/// Type ids of metadata values and tensors, as numbers of the file format.
namespace gguf {
inline constexpr std::uint32_t kU8 = 0, kI8 = 1, kU16 = 2, kI16 = 3, kU32 = 4, kI32 = 5, kF32 = 6,
                               kBool = 7, kString = 8, kArray = 9, kU64 = 10, kI64 = 11, kF64 = 12;
inline constexpr std::uint32_t kTensorF32 = 0, kTensorF16 = 1, kTensorQ4_0 = 2, kTensorQ8_0 = 8,
                               kTensorQ8_1 = 9, kTensorQ4_K = 12, kTensorBF16 = 30;
}  // namespace gguf

/// Appends the little-endian bytes of a number.
template <typename T>
void put_le(std::string& out, T value) {
  static_assert(std::is_arithmetic_v<T> && std::endian::native == std::endian::little);
  std::array<char, sizeof(T)> raw;
  std::memcpy(raw.data(), &value, sizeof(T));
  out.append(raw.data(), raw.size());
}

/// Overwrites a number inside `bytes`.
template <typename T>
void patch_le(std::string& bytes, std::uint64_t at, T value) {
  std::string raw;
  put_le(raw, value);
  bytes.replace(at, raw.size(), raw);
}

/// Raw little-endian bytes of numbers laid end to end (tensor data, array elements).
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string out;
  for (const T value : values) put_le(out, value);
  return out;
}

/// Where the fields of a built file lie, in bytes from its start.
struct GgufLayout {
  struct Tensor {
    std::uint64_t name_length, n_dims, dims, type, offset;
    std::uint64_t data, data_bytes;  ///< of the tensor's bytes in the file
  };
  struct Key {
    std::uint64_t key_length, type, value;
  };
  static constexpr std::uint64_t kVersion = 4, kTensorCount = 8, kKeyCount = 16, kHeaderBytes = 24;
  std::vector<Key> keys;        ///< in the order they were added
  std::vector<Tensor> tensors;  ///< in the order they were added
  std::uint64_t data_start = 0;
};

class GgufBuilder {
 public:
  explicit GgufBuilder(std::uint32_t version = 3) : version_(version) {}

  // Header fields that a test may falsify.
  GgufBuilder& version(std::uint32_t value) { return version_ = value, *this; }
  GgufBuilder& key_count(std::uint64_t value) { return key_count_ = value, *this; }
  GgufBuilder& tensor_count(std::uint64_t value) { return tensor_count_ = value, *this; }
  /// Writes `general.alignment` and lays the data section out by it (0: not laid out at all).
  GgufBuilder& alignment(std::uint32_t value) {
    alignment_ = value;
    return u32("general.alignment", value);
  }
  /// Bytes after the last tensor, in place of the padding to the alignment.
  GgufBuilder& tail(std::string bytes) { return tail_ = std::move(bytes), *this; }

  // Metadata, in the order of the calls.
  GgufBuilder& u8(std::string key, std::uint8_t v) { return scalar(std::move(key), gguf::kU8, v); }
  GgufBuilder& i8(std::string key, std::int8_t v) { return scalar(std::move(key), gguf::kI8, v); }
  GgufBuilder& u16(std::string key, std::uint16_t v) {
    return scalar(std::move(key), gguf::kU16, v);
  }
  GgufBuilder& i16(std::string key, std::int16_t v) {
    return scalar(std::move(key), gguf::kI16, v);
  }
  GgufBuilder& u32(std::string key, std::uint32_t v) {
    return scalar(std::move(key), gguf::kU32, v);
  }
  GgufBuilder& i32(std::string key, std::int32_t v) {
    return scalar(std::move(key), gguf::kI32, v);
  }
  GgufBuilder& u64(std::string key, std::uint64_t v) {
    return scalar(std::move(key), gguf::kU64, v);
  }
  GgufBuilder& i64(std::string key, std::int64_t v) {
    return scalar(std::move(key), gguf::kI64, v);
  }
  GgufBuilder& f32(std::string key, float v) { return scalar(std::move(key), gguf::kF32, v); }
  GgufBuilder& f64(std::string key, double v) { return scalar(std::move(key), gguf::kF64, v); }
  GgufBuilder& boolean(std::string key, bool v) {
    return scalar(std::move(key), gguf::kBool, std::uint8_t{v});
  }
  GgufBuilder& string(std::string key, std::string_view text) {
    return value(std::move(key), gguf::kString, counted(text));
  }
  GgufBuilder& strings(std::string key, const std::vector<std::string>& texts) {
    std::string elements;
    for (const std::string& text : texts) elements += counted(text);
    return array(std::move(key), gguf::kString, texts.size(), elements);
  }
  /// An array of numbers; the element type follows from T (bool: give std::uint8_t and kBool to
  /// array() instead).
  template <typename T>
  GgufBuilder& numbers(const std::string& key, const std::vector<T>& values) {
    return array(key, type_id<T>(), values.size(), bytes_of(values));
  }
  /// An array with any claimed element type and count over the given element bytes.
  GgufBuilder& array(std::string key, std::uint32_t type, std::uint64_t count,
                     std::string_view elements) {
    std::string raw;
    put_le(raw, type);
    put_le(raw, count);
    return value(std::move(key), gguf::kArray, raw.append(elements));
  }
  /// A value of any claimed type over any bytes.
  GgufBuilder& value(std::string key, std::uint32_t type, std::string raw) {
    keys_.push_back({std::move(key), type, std::move(raw)});
    return *this;
  }

  /// A tensor over the given bytes. dims[0] is the row length; data may be of any size.
  GgufBuilder& tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> dims,
                      std::string data) {
    tensors_.push_back({std::move(name), type, std::move(dims), std::move(data), std::nullopt});
    return *this;
  }
  GgufBuilder& f32_tensor(std::string name, std::vector<std::uint64_t> dims,
                          const std::vector<float>& values) {
    return tensor(std::move(name), gguf::kTensorF32, std::move(dims), bytes_of(values));
  }
  /// A tensor of zero bytes, as many as type and dims ask for.
  GgufBuilder& zero_tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> dims) {
    std::uint64_t elems = 1;
    for (const std::uint64_t dim : dims) elems *= dim;
    const auto [block_elems, block_bytes] = block_of(type);
    return tensor(std::move(name), type, std::move(dims),
                  std::string(elems / block_elems * block_bytes, '\0'));
  }
  /// Writes this offset for the tensor added last; its bytes stay where they would be.
  GgufBuilder& at_offset(std::uint64_t offset) { return tensors_.back().offset = offset, *this; }

  /// The bytes of the file. `layout` (may be null) receives the place of every field.
  std::string build(GgufLayout* layout = nullptr) const {
    GgufLayout place;
    std::string out = "GGUF";
    put_le(out, version_);
    put_le(out, tensor_count_.value_or(tensors_.size()));
    put_le(out, key_count_.value_or(keys_.size()));
    for (const Key& key : keys_) {
      GgufLayout::Key at{out.size(), 0, 0};
      out += counted(key.name);
      at.type = out.size();
      put_le(out, key.type);
      at.value = out.size();
      out += key.raw;
      place.keys.push_back(at);
    }
    std::uint64_t running = 0;
    for (const Tensor& tensor : tensors_) {
      put_tensor_info(out, tensor, running, place);
      running += padded(tensor.data.size());
    }
    if (!tensors_.empty()) out.resize(padded(out.size()), '\0');
    place.data_start = out.size();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      place.tensors[i].data = out.size();
      place.tensors[i].data_bytes = tensors_[i].data.size();
      out += tensors_[i].data;
      if (i + 1 < tensors_.size() || !tail_) {
        const std::uint64_t used = out.size() - place.data_start;
        out.resize(place.data_start + padded(used), '\0');
      }
    }
    if (tail_) out += *tail_;
    if (layout != nullptr) *layout = std::move(place);
    return out;
  }

 private:
  struct Key {
    std::string name;
    std::uint32_t type;
    std::string raw;
  };
  struct Tensor {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> dims;
    std::string data;
    std::optional<std::uint64_t> offset;
  };

  static std::string counted(std::string_view text) {
    std::string out;
    put_le(out, std::uint64_t{text.size()});
    return out.append(text);
  }

  template <typename T>
  GgufBuilder& scalar(std::string key, std::uint32_t type, T v) {
    std::string raw;
    put_le(raw, v);
    return value(std::move(key), type, std::move(raw));
  }

  template <typename T>
  static constexpr std::uint32_t type_id() {
    if constexpr (std::is_same_v<T, std::uint8_t>) return gguf::kU8;
    if constexpr (std::is_same_v<T, std::int8_t>) return gguf::kI8;
    if constexpr (std::is_same_v<T, std::uint16_t>) return gguf::kU16;
    if constexpr (std::is_same_v<T, std::int16_t>) return gguf::kI16;
    if constexpr (std::is_same_v<T, std::uint32_t>) return gguf::kU32;
    if constexpr (std::is_same_v<T, std::int32_t>) return gguf::kI32;
    if constexpr (std::is_same_v<T, float>) return gguf::kF32;
    if constexpr (std::is_same_v<T, std::uint64_t>) return gguf::kU64;
    if constexpr (std::is_same_v<T, std::int64_t>) return gguf::kI64;
    if constexpr (std::is_same_v<T, double>) return gguf::kF64;
  }

  /// Elements and bytes of a block; (1, 4) for an id that no row names.
  static std::pair<std::uint64_t, std::uint64_t> block_of(std::uint32_t type) {
#define DETRUN_QTYPE(name, id, text, elems, bytes, supported) \
  if (type == (id)) return {elems, bytes};
#include "detrun/qtypes.def"
#undef DETRUN_QTYPE
    return {1, 4};
  }

  std::uint64_t padded(std::uint64_t size) const {
    return alignment_ == 0 ? size : (size + alignment_ - 1) / alignment_ * alignment_;
  }

  static void put_tensor_info(std::string& out, const Tensor& tensor, std::uint64_t running,
                              GgufLayout& place) {
    GgufLayout::Tensor at{};
    at.name_length = out.size();
    out += counted(tensor.name);
    at.n_dims = out.size();
    put_le(out, static_cast<std::uint32_t>(tensor.dims.size()));
    at.dims = out.size();
    for (const std::uint64_t dim : tensor.dims) put_le(out, dim);
    at.type = out.size();
    put_le(out, tensor.type);
    at.offset = out.size();
    put_le(out, tensor.offset.value_or(running));
    place.tensors.push_back(at);
  }

  std::uint32_t version_;
  std::uint32_t alignment_ = 32;
  std::optional<std::uint64_t> key_count_, tensor_count_;
  std::optional<std::string> tail_;
  std::vector<Key> keys_;
  std::vector<Tensor> tensors_;
};

/// A fresh folder that is removed with everything in it.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "detrun-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + name);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  /// Path of a name inside.
  std::string file(std::string_view name) const { return (path_ / name).string(); }
  /// Writes the bytes and returns the path.
  std::string write(std::string_view name, std::string_view bytes) const {
    std::ofstream out(path_ / name, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file(name));
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace detrun::test
