// UTF-8, base64, terminal escapes, numbers and times, all independent of locale.
#include "detrun/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <span>

#include "detrun/digest.h"
#include "detrun/error.h"

namespace detrun {
namespace {

std::uint8_t byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<std::uint8_t>(bytes[i]);
}

struct Utf8Char {
  std::uint32_t code_point;
  std::size_t length;  // 0: not well-formed here
};

// Decodes the character at `i`. Unicode 15, table 3-7: the second byte's range depends on the
// first.
Utf8Char decode_at(std::string_view bytes, std::size_t i) {
  const std::uint8_t lead = byte_at(bytes, i);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  std::uint8_t low = 0x80, high = 0xBF;
  std::uint32_t code_point = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    code_point = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    code_point = lead & 0x0Fu;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    code_point = lead & 0x07u;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {0, 0};
  }
  if (length > bytes.size() - i) return {0, 0};
  for (std::size_t k = 1; k < length; ++k) {
    const std::uint8_t next = byte_at(bytes, i + k);
    if (next < low || next > high) return {0, 0};
    low = 0x80;
    high = 0xBF;
    code_point = (code_point << 6) | (next & 0x3Fu);
  }
  return {code_point, length};
}

// Characters that move the cursor, reorder text or hide: nothing that prints.
bool drives_a_terminal(std::uint32_t c) {
  return c < 0x20 || c == 0x7F || (c >= 0x80 && c <= 0x9F) || c == 0xAD || c == 0x61C ||
         c == 0x180E || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) ||
         (c >= 0xE0000 && c <= 0xE0FFF);
}

void append_hex(std::string& out, std::uint32_t value, int digits) {
  std::array<char, 8> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, 16).ptr;
  const auto length = static_cast<int>(end - buffer.data());
  for (int i = length; i < digits; ++i) out.push_back('0');
  out.append(buffer.data(), end);
}

template <class Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  Integer value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

void append_padded(std::string& out, std::uint64_t value, std::size_t width) {
  const std::string digits = std::to_string(value);
  out.append(width > digits.size() ? width - digits.size() : 0, '0');
  out += digits;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const Utf8Char c = decode_at(bytes, i);
    if (c.length == 0) return false;
    i += c.length;
  }
  return true;
}

std::size_t complete_utf8_prefix(std::string_view bytes) {
  const std::size_t window = std::min<std::size_t>(bytes.size(), 3);
  for (std::size_t back = 1; back <= window; ++back) {
    const std::size_t start = bytes.size() - back;
    const std::uint8_t lead = byte_at(bytes, start);
    if ((lead & 0xC0) == 0x80) continue;  // a continuation byte: look further back
    const std::size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (wanted <= back) return bytes.size();
    // Held back only while more bytes could still complete it: padding with a legal continuation
    // must make a character.
    std::string probe(bytes.substr(start));
    const bool second_known = probe.size() > 1;
    for (const char second : {'\x80', '\x90', '\xA0'}) {
      std::string candidate = probe;
      if (!second_known) candidate.push_back(second);
      candidate.resize(wanted, '\x80');
      if (decode_at(candidate, 0).length == wanted) return start;
      if (second_known) break;
    }
    return bytes.size();
  }
  return bytes.size();
}

std::string base64(std::string_view bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = (group << 8) | (k < n ? byte_at(bytes, i + k) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out.push_back(k <= n ? kAlphabet[(group >> (18 - 6 * k)) & 63u] : '=');
  }
  return out;
}

std::string escape_for_terminal(std::string_view bytes, bool keep_newlines) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const Utf8Char c = decode_at(bytes, i);
    if (c.length == 0) {
      out += "\\x";
      append_hex(out, byte_at(bytes, i), 2);
      ++i;
      continue;
    }
    const bool kept = keep_newlines && (c.code_point == '\n' || c.code_point == '\t');
    if (kept || !drives_a_terminal(c.code_point)) {
      out.append(bytes.substr(i, c.length));
    } else if (c.code_point == '\n') {
      out += "\\n";
    } else if (c.code_point == '\t') {
      out += "\\t";
    } else if (c.code_point == '\r') {
      out += "\\r";
    } else if (c.code_point < 0x80) {
      out += "\\x";
      append_hex(out, c.code_point, 2);
    } else {
      out += "\\u{";
      append_hex(out, c.code_point, 4);
      out += "}";
    }
    i += c.length;
  }
  return out;
}

std::optional<std::int64_t> parse_i64(std::string_view text) {
  return parse_integer<std::int64_t>(text);
}
std::optional<std::uint64_t> parse_u64(std::string_view text) {
  return parse_integer<std::uint64_t>(text);
}

std::string format_f32(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

std::string utc_timestamp(std::int64_t unix_ms) {
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds{unix_ms}};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss<milliseconds> clock{time - day};
  std::string out;
  append_padded(out, static_cast<std::uint64_t>(int{date.year()}), 4);
  out.push_back('-');
  append_padded(out, unsigned{date.month()}, 2);
  out.push_back('-');
  append_padded(out, unsigned{date.day()}, 2);
  out.push_back('T');
  append_padded(out, static_cast<std::uint64_t>(clock.hours().count()), 2);
  out.push_back(':');
  append_padded(out, static_cast<std::uint64_t>(clock.minutes().count()), 2);
  out.push_back(':');
  append_padded(out, static_cast<std::uint64_t>(clock.seconds().count()), 2);
  out.push_back('.');
  append_padded(out, static_cast<std::uint64_t>(clock.subseconds().count()), 3);
  out.push_back('Z');
  return out;
}

std::int64_t unix_time_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string uuid_v7(std::int64_t unix_ms) {
  std::array<std::uint8_t, 16> id{};
  random_bytes(std::as_writable_bytes(std::span(id)));
  for (std::size_t i = 0; i < 6; ++i)
    id[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(unix_ms) >> (8 * (5 - i)));
  id[6] = static_cast<std::uint8_t>(0x70 | (id[6] & 0x0F));
  id[8] = static_cast<std::uint8_t>(0x80 | (id[8] & 0x3F));
  std::string hex = to_hex(id);
  for (const std::size_t at : {8u, 13u, 18u, 23u}) hex.insert(at, 1, '-');
  return hex;
}

}  // namespace detrun
