// Open addressing with linear probing; nothing here depends on the order of slots.
#include "tokenizer/string_list.h"

#include <bit>
#include <functional>
#include <limits>

#include "detrun/error.h"

namespace detrun {

StringList::StringList(const std::vector<std::string_view>& strings) {
  DETRUN_CHECK(strings.size() <= std::numeric_limits<std::int32_t>::max());
  std::size_t total = 0;
  for (const std::string_view text : strings) total += text.size();
  bytes_.reserve(total);
  for (const std::string_view text : strings) bytes_.insert(bytes_.end(), text.begin(), text.end());

  views_.reserve(strings.size());
  slots_.resize(std::bit_ceil(strings.size() + strings.size() / 2 + 1));
  const char* next = bytes_.data();
  for (const std::string_view text : strings) {
    const auto index = static_cast<std::int32_t>(views_.size());
    views_.emplace_back(next, text.size());
    next += text.size();
    if (text.empty()) continue;
    std::uint32_t tag = 0;
    Slot& slot = slots_[slot_of(text, tag)];
    if (slot.index < 0) {
      slot = {tag, index};
    } else if (!first_repeat_) {
      first_repeat_ = index;
    }
  }
}

std::size_t StringList::slot_of(std::string_view text, std::uint32_t& tag) const {
  const std::uint64_t hash = std::hash<std::string_view>()(text);
  tag = static_cast<std::uint32_t>(hash >> 32U);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at].index >= 0; at = (at + 1) & mask) {
    if (slots_[at].tag == tag && views_[static_cast<std::size_t>(slots_[at].index)] == text) break;
  }
  return at;
}

std::optional<std::int32_t> StringList::find(std::string_view text) const {
  if (slots_.empty() || text.empty()) return std::nullopt;
  std::uint32_t tag = 0;
  const std::int32_t index = slots_[slot_of(text, tag)].index;
  return index < 0 ? std::nullopt : std::optional(index);
}

}  // namespace detrun
