// NFC through utf8proc, stretch by stretch.
#include "tokenizer/normalize.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "detrun/error.h"
#include "tokenizer/utf8.h"

namespace detrun {
namespace {

constexpr std::size_t kMarksMax = 4096;

struct Free {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }  // NOLINT: utf8proc's malloc
};

void append_nfc(std::string_view valid, std::string& out) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                   static_cast<utf8proc_ssize_t>(valid.size()), &mapped,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(mapped);
  if (length == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (length < 0) {
    throw_internal(std::string("normalizing a text to NFC failed: ") + utf8proc_errmsg(length));
  }
  out.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
}

}  // namespace

std::string nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t begin = 0;  // of the stretch of valid characters that is not in `out` yet
  std::size_t marks = 0;  // combining marks just before `pos`
  bool is_nfc = true;     // nothing below U+0300 takes part in a composition or changes
  const auto flush = [&](std::size_t end) {
    const std::string_view stretch = text.substr(begin, end - begin);
    if (is_nfc) {
      out += stretch;
    } else {
      append_nfc(stretch, out);
    }
    is_nfc = true;
    marks = 0;
  };
  for (std::size_t pos = 0; pos < text.size();) {
    const Utf8Char c = utf8_at(text, pos);
    if (!c.valid) {
      flush(pos);
      out += text[pos];
      begin = pos + 1;
    } else if (c.code >= 0x300) {
      is_nfc = false;
      const bool mark =
          utf8proc_get_property(static_cast<utf8proc_int32_t>(c.code))->combining_class != 0;
      marks = mark ? marks + 1 : 0;
      if (marks > kMarksMax) {
        throw_usage("the text has more than " + std::to_string(kMarksMax) +
                    " combining marks in a row, at byte " + std::to_string(pos));
      }
    } else {
      marks = 0;
    }
    pos += c.bytes;
  }
  flush(text.size());
  return out;
}

}  // namespace detrun
