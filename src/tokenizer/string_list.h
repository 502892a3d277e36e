// A list of strings that is also looked up by string: the tokens of a vocabulary, its merges. One
// block of bytes and one flat table, because a vocabulary has 10^5 entries and is loaded often.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace detrun {

class StringList {
 public:
  StringList() = default;
  /// Copies the strings, at most 2^31 - 1 of them.
  explicit StringList(const std::vector<std::string_view>& strings);
  StringList(const StringList&) = delete;  // views into itself
  StringList& operator=(const StringList&) = delete;
  StringList(StringList&&) = default;
  StringList& operator=(StringList&&) = default;

  std::size_t size() const { return views_.size(); }
  std::string_view operator[](std::size_t i) const { return views_[i]; }

  /// Index of the first entry that equals `text`. Empty entries are never found.
  std::optional<std::int32_t> find(std::string_view text) const;
  /// Index of the first entry that equals an earlier one; nullopt when all differ.
  std::optional<std::int32_t> first_repeat() const { return first_repeat_; }

 private:
  struct Slot {
    std::uint32_t tag = 0;    // high half of the hash
    std::int32_t index = -1;  // -1: free
  };
  /// The slot of an equal entry, or the free slot where it would be.
  std::size_t slot_of(std::string_view text, std::uint32_t& tag) const;

  std::vector<char> bytes_;
  std::vector<std::string_view> views_;
  std::vector<Slot> slots_;  // a power of two, at most two thirds of them used
  std::optional<std::int32_t> first_repeat_;
};

}  // namespace detrun
