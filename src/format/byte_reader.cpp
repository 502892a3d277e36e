// The refusals of the bounded cursor, and the check of names; nothing here is on a fast path.
#include "format/byte_reader.h"

#include <optional>

#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun {
namespace {

constexpr const char* kCutHint =
    "the file is damaged or its download incomplete: compare its size and checksum with the source";

/// Index of the first control character of valid UTF-8 text: C0, DEL, or C1 (C2 80 to C2 9F).
std::optional<std::size_t> first_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return i;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      return i;
    }
  }
  return std::nullopt;
}

/// Index of the first byte at which the text stops being UTF-8.
std::size_t first_invalid(std::string_view text) {
  std::size_t valid = 0;
  while (valid < text.size()) {
    std::size_t length = 1;
    while (length <= 4 && valid + length <= text.size() && !is_utf8(text.substr(valid, length))) {
      ++length;
    }
    if (length > 4 || valid + length > text.size()) break;
    valid += length;
  }
  return valid;
}

}  // namespace

std::string Field::text() const {
  std::string out(what);
  if (index != 0) out += " " + std::to_string(index);
  if (!name.empty()) out.append(" '").append(name).append("'");
  return out;
}

void refuse(const std::string& path, const std::string& message, const std::string& hint) {
  throw_usage(path + ": " + message, hint);
}

void ByteReader::cut_short(std::uint64_t needed, const Field& field) const {
  refuse(path_,
         "cut short: " + field.text() + " needs " + std::to_string(needed) + " bytes at byte " +
             std::to_string(position()) + ", but " + std::to_string(remaining()) + " remain",
         kCutHint);
}

void ByteReader::require_room(std::uint64_t count, std::uint64_t bytes_each,
                              const Field& field) const {
  if (count <= remaining() / bytes_each) return;
  refuse(path_,
         field.text() + " is " + std::to_string(count) + ", but the " +
             std::to_string(remaining()) + " bytes from byte " + std::to_string(position()) +
             " on hold at most " + std::to_string(remaining() / bytes_each) + " of at least " +
             std::to_string(bytes_each) + " bytes each",
         kCutHint);
}

void check_name(const std::string& path, std::string_view name, std::uint64_t name_at,
                std::uint64_t bytes_max, const Field& field) {
  const std::string hint = "write the file again with a current converter";
  if (name.empty()) {
    refuse(path, field.text() + " is empty (byte " + std::to_string(name_at) + ")", hint);
  }
  if (name.size() > bytes_max) {
    refuse(path,
           field.text() + " is " + std::to_string(name.size()) + " bytes long (byte " +
               std::to_string(name_at) + "); at most " + std::to_string(bytes_max) + " expected",
           hint);
  }
  if (!is_utf8(name)) {
    refuse(path,
           field.text() + " is not UTF-8: invalid at byte " +
               std::to_string(name_at + first_invalid(name)) + ", in \"" +
               escape_for_terminal(name) + "\"",
           hint);
  }
  if (const auto at = first_control(name)) {
    refuse(path,
           field.text() + " holds a control character at byte " + std::to_string(name_at + *at) +
               ", in \"" + escape_for_terminal(name) + "\"",
           hint);
  }
}

}  // namespace detrun
