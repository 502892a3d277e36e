// Typed, range-checked reading of metadata. A per-layer array where the architecture has one value
// is read as that value when all layers agree; layers that differ are refused, never averaged.
#include "model/metadata.h"

#include <algorithm>
#include <cmath>

#include "detrun/error.h"

namespace detrun {

void refuse_model(const ModelFile& file, const std::string& what, const std::string& hint) {
  throw_usage(file.path() + ": " + what, hint);
}

void MetaReader::refuse_key(std::string_view key, const std::string& found,
                            const std::string& expected, const std::string& hint) const {
  refuse_model(file_, full_key(key) + " is " + found + ", expected " + expected, hint);
}

std::uint32_t MetaReader::checked(std::string_view key, std::uint64_t value, U32Range range) const {
  if (value < range.min || value > range.max) {
    refuse_key(key, std::to_string(value),
               std::to_string(range.min) + " to " + std::to_string(range.max));
  }
  return static_cast<std::uint32_t>(value);
}

std::optional<std::uint32_t> MetaReader::u32(std::string_view key, U32Range range) {
  const std::optional<std::uint64_t> value = file_.get_u64(look_at(key));
  if (!value) return std::nullopt;
  return checked(key, *value, range);
}

std::uint32_t MetaReader::required_u32(std::string_view key, U32Range range) {
  const std::optional<std::uint32_t> value = u32(key, range);
  if (!value) refuse_model(file_, "metadata key " + full_key(key) + " is missing");
  return *value;
}

std::optional<std::uint32_t> MetaReader::u32_of_all_layers(std::string_view key,
                                                           std::uint32_t n_layers, U32Range range) {
  const auto values = get_u64_per_layer(file_, look_at(key), n_layers);
  if (!values) return std::nullopt;
  for (std::size_t layer = 0; layer < values->size(); ++layer) {
    if ((*values)[layer] == values->front()) continue;
    refuse_key(key, std::to_string((*values)[layer]) + " in layer " + std::to_string(layer),
               std::to_string(values->front()) +
                   " as in layer 0 (layers of different shape are not supported)");
  }
  return checked(key, values->front(), range);
}

std::optional<double> MetaReader::number(std::string_view key) {
  const std::string full = look_at(key);
  const std::optional<MetaType> type = file_.type_of(full);
  if (type && type != MetaType::kF32 && type != MetaType::kF64) {
    const std::optional<std::uint64_t> integer = file_.get_u64(full);
    return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
  }
  const std::optional<double> value = file_.get_f64(full);
  if (value && !std::isfinite(*value)) refuse_key(key, "not finite", "a finite number");
  return value;
}

std::string MetaReader::look_at(std::string_view key) {
  looked_at_.push_back(full_key(key));
  return looked_at_.back();
}

std::vector<std::string> MetaReader::keys_not_looked_at() const {
  std::vector<std::string> keys;
  for (const std::string& key : file_.keys()) {
    if (!key.starts_with(prefix_)) continue;
    if (std::find(looked_at_.begin(), looked_at_.end(), key) == looked_at_.end()) {
      keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace detrun
