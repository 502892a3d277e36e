// Bytes and text: UTF-8 validity, base64, escaping for a terminal, numbers independent of locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace detrun {

/// True when the bytes are well-formed UTF-8 (Unicode 15 table 3-7; no surrogates, no overlongs).
bool is_utf8(std::string_view bytes);

/// Length of the longest prefix that does not end in the middle of a UTF-8 character. An invalid
/// byte counts as a character of its own, so at most the last 3 bytes are ever held back.
std::size_t complete_utf8_prefix(std::string_view bytes);

/// Standard base64 with padding (RFC 4648 section 4).
std::string base64(std::string_view bytes);

/// Text that cannot drive a terminal: C0 (except \n, \t when `keep_newlines`), DEL, C1, bidi and
/// other format controls (U+061C, U+200B-200F, U+2028-202E, U+2060-2069, U+FEFF) and bytes that
/// are not UTF-8 become visible \xNN or \u{NNNN} escapes. A backslash stays as it is.
std::string escape_for_terminal(std::string_view bytes, bool keep_newlines = false);

/// Whole-string decimal parse; nullopt when empty, out of range, or anything else is in it.
std::optional<std::int64_t> parse_i64(std::string_view text);
std::optional<std::uint64_t> parse_u64(std::string_view text);

/// Shortest decimal that reads back as the same binary32; "inf", "-inf", "nan". Locale-free.
std::string format_f32(float value);

/// RFC 3339 UTC with milliseconds: 2026-11-29T21:12:30.123Z.
std::string utc_timestamp(std::int64_t unix_ms);
std::int64_t unix_time_ms();

/// A version 7 UUID (RFC 9562) in lower case, time from `unix_ms`, the rest random.
std::string uuid_v7(std::int64_t unix_ms);

}  // namespace detrun
