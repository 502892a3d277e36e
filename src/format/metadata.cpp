// Parses the key-value section and converts values.
//
// Names are found by sorting and binary search, not by hashing: a file made to collide must not
// make its reader slow. Source of the format: ggml's public description of GGUF (docs/gguf.md).
#include "format/metadata.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace detrun {
namespace {

constexpr std::uint64_t kKeyBytesMax = 65535;    // "at most 2^16-1 bytes long"
constexpr std::uint64_t kKeyEntryBytesMin = 14;  // length 8, one byte of key, type 4, value 1
constexpr std::uint32_t kTypeCount = 13;

constexpr std::array<std::string_view, kTypeCount> kTypeNames = {
    "U8", "I8", "U16", "I16", "U32", "I32", "F32", "BOOL", "STRING", "ARRAY", "U64", "I64", "F64"};

/// Bytes of a value, or the fewest bytes for those that vary (0: an array, never an element).
constexpr std::array<std::uint8_t, kTypeCount> kTypeBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};

std::uint64_t bytes_of(MetaType type) { return kTypeBytes[static_cast<std::uint32_t>(type)]; }

/// "an" before U8, I8, F32, ARRAY ..., so that messages read well.
std::string with_article(std::string_view name) {
  const bool vowel = name.starts_with('I') || name.starts_with('F') || name.starts_with('A');
  return (vowel ? "an " : "a ") + std::string(name);
}

bool is_signed(MetaType type) {
  return type == MetaType::kI8 || type == MetaType::kI16 || type == MetaType::kI32 ||
         type == MetaType::kI64;
}

bool is_unsigned(MetaType type) {
  return type == MetaType::kU8 || type == MetaType::kU16 || type == MetaType::kU32 ||
         type == MetaType::kU64;
}

bool is_integer(MetaType type) { return is_signed(type) || is_unsigned(type); }
bool is_float(MetaType type) { return type == MetaType::kF32 || type == MetaType::kF64; }

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// A stored integer in 64 bits; signed types are sign-extended.
std::uint64_t load_integer(MetaType type, const std::byte* at) {
  switch (type) {
    case MetaType::kU8:
      return load<std::uint8_t>(at);
    case MetaType::kU16:
      return load<std::uint16_t>(at);
    case MetaType::kU32:
      return load<std::uint32_t>(at);
    case MetaType::kI8:
      return static_cast<std::uint64_t>(std::int64_t{load<std::int8_t>(at)});
    case MetaType::kI16:
      return static_cast<std::uint64_t>(std::int64_t{load<std::int16_t>(at)});
    case MetaType::kI32:
      return static_cast<std::uint64_t>(std::int64_t{load<std::int32_t>(at)});
    default:
      return load<std::uint64_t>(at);  // kU64, kI64
  }
}

double load_float(MetaType type, const std::byte* at) {
  return type == MetaType::kF32 ? double{load<float>(at)} : load<double>(at);
}

MetaType read_type(ByteReader& reader, const Field& field) {
  const auto id = reader.number<std::uint32_t>(field);
  if (id >= kTypeCount) {
    refuse(reader.path(), field.text() + " is " + std::to_string(id) + "; 0 to " +
                              std::to_string(kTypeCount - 1) + " expected");
  }
  return static_cast<MetaType>(id);
}

/// The format allows 0 and 1; anything else means that reader and writer disagree.
void check_bools(const ByteReader& reader, std::span<const std::byte> raw, std::uint64_t raw_at,
                 const Field& field) {
  const auto bad =
      std::find_if(raw.begin(), raw.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad == raw.end()) return;
  refuse(reader.path(), field.text() + " holds a BOOL of " +
                            std::to_string(std::to_integer<int>(*bad)) + " at byte " +
                            std::to_string(raw_at + static_cast<std::uint64_t>(bad - raw.begin())) +
                            "; 0 or 1 expected");
}

}  // namespace

std::string_view meta_type_name(MetaType type) {
  const auto id = static_cast<std::uint32_t>(type);
  return id < kTypeCount ? kTypeNames[id] : "?";
}

void Metadata::parse(ByteReader& reader, std::uint64_t count) {
  reader.require_room(count, kKeyEntryBytesMin, {.what = "the number of metadata keys"});
  for (std::uint64_t i = 1; i <= count; ++i) {
    const Field field{.what = "the name of metadata key", .index = i};
    const std::string_view key = reader.string(field);
    check_name(path_, key, reader.position() - key.size(), kKeyBytesMax, field);
    entries_.push_back(parse_value(reader, key));
    keys_.emplace_back(key);
  }
  sort_and_refuse_duplicates();
}

Metadata::Entry Metadata::parse_value(ByteReader& reader, std::string_view key) const {
  Entry entry;
  entry.type = read_type(reader, {.what = "the value type of key", .name = key});
  const Field field{.what = "the value of key", .name = key};
  entry.value_at = reader.position();
  if (entry.type == MetaType::kArray) {
    parse_array(reader, key, entry);
  } else if (entry.type == MetaType::kString) {
    const std::string_view text = reader.string(field);
    entry.value_at += sizeof(std::uint64_t);
    entry.value = std::as_bytes(std::span(text.data(), text.size()));
  } else {
    const std::span<const std::byte> raw = reader.take(bytes_of(entry.type), field);
    if (entry.type == MetaType::kBool) check_bools(reader, raw, entry.value_at, field);
    std::copy(raw.begin(), raw.end(), entry.scalar.begin());
  }
  return entry;
}

void Metadata::parse_array(ByteReader& reader, std::string_view key, Entry& entry) const {
  entry.element_type = read_type(reader, {.what = "the element type of key", .name = key});
  const Field count_field{.what = "the array length of key", .name = key};
  entry.count = reader.number<std::uint64_t>(count_field);
  if (entry.element_type == MetaType::kArray) {
    refuse(path_, "key '" + std::string(key) + "' is an array of arrays, which is not supported");
  }
  reader.require_room(entry.count, bytes_of(entry.element_type), count_field);
  entry.value_at = reader.position();
  const Field field{.what = "the array of key", .name = key};
  if (entry.element_type != MetaType::kString) {
    entry.value = reader.take(entry.count * bytes_of(entry.element_type), field);
    if (entry.element_type == MetaType::kBool) {
      check_bools(reader, entry.value, entry.value_at, field);
    }
    return;
  }
  // Walked once on a copy of the cursor to find the end; the views are made when asked for.
  ByteReader walk = reader;
  for (std::uint64_t i = 1; i <= entry.count; ++i) {
    walk.string({.what = "string", .index = i, .name = key});
  }
  entry.value = reader.take(walk.position() - reader.position(), field);
}

void Metadata::sort_and_refuse_duplicates() {
  order_.resize(keys_.size());
  std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const int order = keys_[a].compare(keys_[b]);
    return order != 0 ? order < 0 : a < b;
  });
  for (std::size_t i = 1; i < order_.size(); ++i) {
    const std::uint32_t first = order_[i - 1];
    const std::uint32_t second = order_[i];
    if (keys_[first] != keys_[second]) continue;
    refuse(path_, "key '" + keys_[first] + "' is there twice (metadata keys " +
                      std::to_string(first + 1) + " and " + std::to_string(second + 1) +
                      "); each key once expected");
  }
}

const Metadata::Entry* Metadata::find(std::string_view key) const {
  const auto at = std::lower_bound(
      order_.begin(), order_.end(), key,
      [this](std::uint32_t index, std::string_view wanted) { return keys_[index] < wanted; });
  return at != order_.end() && keys_[*at] == key ? &entries_[*at] : nullptr;
}

void Metadata::refuse_kind(std::string_view key, const Entry& entry,
                           std::string_view wanted) const {
  std::string found = with_article(meta_type_name(entry.type));
  if (entry.type == MetaType::kArray) {
    found += " of " + std::to_string(entry.count) + " " +
             std::string(meta_type_name(entry.element_type));
  }
  refuse(path_,
         "key '" + std::string(key) + "' is " + found + "; " + std::string(wanted) + " expected");
}

const Metadata::Entry* Metadata::find_array(std::string_view key, std::string_view wanted) const {
  const Entry* entry = find(key);
  if (entry != nullptr && entry->type != MetaType::kArray) refuse_kind(key, *entry, wanted);
  return entry;
}

std::optional<MetaType> Metadata::type_of(std::string_view key) const {
  const Entry* entry = find(key);
  return entry == nullptr ? std::nullopt : std::optional(entry->type);
}

std::optional<MetaArray> Metadata::array_of(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr || entry->type != MetaType::kArray) return std::nullopt;
  return MetaArray{entry->element_type, entry->count};
}

std::optional<std::uint64_t> Metadata::get_u64(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (!is_integer(entry->type)) refuse_kind(key, *entry, "an integer");
  const std::uint64_t value = load_integer(entry->type, entry->scalar.data());
  if (is_signed(entry->type) && static_cast<std::int64_t>(value) < 0) {
    refuse(path_, "key '" + std::string(key) + "' is " +
                      std::to_string(static_cast<std::int64_t>(value)) + "; 0 or more expected");
  }
  return value;
}

std::optional<double> Metadata::get_f64(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (!is_float(entry->type)) refuse_kind(key, *entry, "F32 or F64");
  return load_float(entry->type, entry->scalar.data());
}

std::optional<bool> Metadata::get_bool(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->type != MetaType::kBool) refuse_kind(key, *entry, "a BOOL");
  return entry->scalar[0] != std::byte{0};
}

std::optional<std::string_view> Metadata::get_string(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->type != MetaType::kString) refuse_kind(key, *entry, "a STRING");
  return std::string_view(reinterpret_cast<const char*>(entry->value.data()), entry->value.size());
}

std::optional<std::vector<std::string_view>> Metadata::get_strings(std::string_view key) const {
  constexpr std::string_view kWanted = "an ARRAY of STRING";
  const Entry* entry = find_array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (entry->element_type != MetaType::kString) refuse_kind(key, *entry, kWanted);
  std::vector<std::string_view> strings;
  strings.reserve(entry->count);
  ByteReader reader(path_, entry->value, entry->value_at);
  for (std::uint64_t i = 1; i <= entry->count; ++i) {
    strings.push_back(reader.string({.what = "string", .index = i, .name = key}));
  }
  return strings;
}

std::optional<std::vector<double>> Metadata::get_f64s(std::string_view key) const {
  constexpr std::string_view kWanted = "an ARRAY of F32 or F64";
  const Entry* entry = find_array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (!is_float(entry->element_type)) refuse_kind(key, *entry, kWanted);
  std::vector<double> values(entry->count);
  const std::uint64_t step = bytes_of(entry->element_type);
  for (std::uint64_t i = 0; i < entry->count; ++i) {
    values[i] = load_float(entry->element_type, entry->value.data() + i * step);
  }
  return values;
}

std::optional<std::vector<std::int64_t>> Metadata::get_i64s(std::string_view key) const {
  constexpr std::string_view kWanted = "an ARRAY of integers";
  const Entry* entry = find_array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  const MetaType type = entry->element_type;
  if (!is_integer(type)) refuse_kind(key, *entry, kWanted);
  std::vector<std::int64_t> values(entry->count);
  const std::uint64_t step = bytes_of(type);
  for (std::uint64_t i = 0; i < entry->count; ++i) {
    const std::uint64_t value = load_integer(type, entry->value.data() + i * step);
    if (type == MetaType::kU64 && value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      refuse(path_, "key '" + std::string(key) + "': element " + std::to_string(i) + " is " +
                        std::to_string(value) + "; at most 9223372036854775807 expected");
    }
    values[i] = static_cast<std::int64_t>(value);
  }
  return values;
}

}  // namespace detrun
