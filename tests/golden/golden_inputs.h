// Inputs of the golden operator cases, by the rule of fixtures/golden/README.md: a pure function of
// (seed, tensor, element), in integers, so that another implementation makes the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "detrun/quant.h"

namespace golden {

std::uint64_t word(std::uint64_t seed, std::uint64_t tensor, std::uint64_t element);

/// One value of a kind named in the README. Error kUsage for another name.
float value(std::string_view kind, std::uint64_t word);

/// n values of one tensor.
std::vector<float> values(std::string_view kind, std::uint64_t seed, std::uint64_t tensor,
                          std::uint64_t n);

/// A weight matrix (n, k) as a file holds it. `kind` is one of values or, for integer types,
/// `random`, `low`, `high`.
std::vector<std::byte> matrix(const detrun::QTypeInfo& type, std::string_view kind,
                              std::uint64_t seed, std::uint64_t tensor, std::uint64_t n,
                              std::uint64_t k);

}  // namespace golden
