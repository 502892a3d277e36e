// A cursor over bytes that cannot leave them: every read and every count is compared with what
// remains, by subtraction, before anything is touched or allocated.
//
// It knows GGUF's primitive encodings (little-endian numbers, u64 length + bytes) and no structure.
// Its errors are kUsage and say file, field, byte, what was needed and what remains.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace detrun {

static_assert(std::endian::native == std::endian::little, "GGUF is read by copying numbers");

/// The part of a file that is being read, for messages; formatted only when one is needed.
struct Field {
  std::string_view what;    ///< "length of key", "type of tensor"
  std::uint64_t index = 0;  ///< counted from 1; 0: no index
  std::string_view name{};  ///< name of the key or tensor once it is known

  /// "type of tensor 3 'output.weight'".
  std::string text() const;
};

/// Error kUsage "PATH: MESSAGE".
[[noreturn]] void refuse(const std::string& path, const std::string& message,
                         const std::string& hint = {});

class ByteReader {
 public:
  /// `path` and `bytes` outlive the reader. `origin`: the place of bytes[0] in the file.
  ByteReader(const std::string& path, std::span<const std::byte> bytes, std::uint64_t origin = 0)
      : path_(path), bytes_(bytes), origin_(origin) {}

  const std::string& path() const { return path_; }
  /// Byte of the file that is read next.
  std::uint64_t position() const { return origin_ + at_; }
  std::uint64_t remaining() const { return bytes_.size() - at_; }

  template <typename T>
  T number(const Field& field) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }

  /// The next `size` bytes.
  std::span<const std::byte> take(std::uint64_t size, const Field& field) {
    if (size > remaining()) cut_short(size, field);
    const std::span<const std::byte> taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

  /// A u64 length and as many bytes. The view points into the bytes.
  std::string_view string(const Field& field) {
    const auto length = number<std::uint64_t>(field);
    if (length > remaining()) cut_short(length, field);
    const std::span<const std::byte> raw = take(length, field);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }

  /// Refuses a count of things of at least `bytes_each` (> 0) that the rest cannot hold.
  void require_room(std::uint64_t count, std::uint64_t bytes_each, const Field& field) const;

 private:
  [[noreturn]] void cut_short(std::uint64_t needed, const Field& field) const;

  const std::string& path_;
  std::span<const std::byte> bytes_;
  std::uint64_t origin_;
  std::uint64_t at_ = 0;
};

/// Refuses names (keys, tensor names) that are empty, longer than `bytes_max`, not UTF-8 or hold a
/// control character (C0, DEL, C1). The message gives the byte of the file.
void check_name(const std::string& path, std::string_view name, std::uint64_t name_at,
                std::uint64_t bytes_max, const Field& field);

}  // namespace detrun
