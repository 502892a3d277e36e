// Unicode normalization form C of a text that may hold invalid bytes. Only for vocabularies whose
// reference tokenizer normalizes; the result no longer decodes to the given bytes.
#pragma once

#include <string>
#include <string_view>

namespace detrun {

/// NFC (Unicode annex 15) of the valid stretches; invalid bytes stay and separate stretches. NFC
/// of assigned characters is the same in every Unicode version (stability policy). Error kUsage
/// for more than 4096 combining marks in a row: ordering them takes quadratic time.
std::string nfc(std::string_view text);

}  // namespace detrun
