// What operators throw for what only the data can show: one sentence for all backends.
#pragma once

#include <cstdint>
#include <string_view>

#include "detrun/backend.h"

namespace detrun {

/// Row `row` of the `rows` that the weight named `weight` was to be multiplied with.
[[noreturn]] void throw_activation_not_finite(std::string_view weight, std::uint64_t row,
                                              std::uint64_t rows);
/// Where activations are rounded to the type of the weight.
[[noreturn]] void throw_activation_does_not_fit(std::string_view weight, QType type,
                                                std::uint64_t row, std::uint64_t rows);
[[noreturn]] void throw_norm_not_finite(std::uint64_t row, std::uint64_t rows);
[[noreturn]] void throw_kv_does_not_fit(KvType type, std::uint32_t layer, std::uint64_t position);

/// Error kUsage unless the view's bytes are n_rows whole rows of its type, one the backend has.
void check_weight_view(const WeightView& view, bool has_type);
/// The first element that is not finite, counted through the whole matrix.
[[noreturn]] void throw_weight_not_finite(const WeightView& view, std::uint64_t element);

}  // namespace detrun
