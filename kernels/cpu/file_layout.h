// The packed form of instruction sets that keep a matrix as the file has it: bytes of its blocks,
// row after row, a group of one output. Everything has internal linkage: files of different
// instruction sets include it.
#pragma once

#include <cstdint>
#include <cstring>

namespace detrun::kernels {

/// Bytes of n rows of k elements; `block_elems` elements are a block.
template <class Block>
static inline std::uint64_t file_bytes(std::uint64_t k, std::uint64_t n, int block_elems) {
  return k / static_cast<std::uint64_t>(block_elems) * n * sizeof(Block);
}

/// Copies rows [g0, g1) of `row_bytes` each.
static inline void copy_rows(const void* rows, std::uint64_t row_bytes, std::uint64_t g0,
                             std::uint64_t g1, void* packed) {
  std::memcpy(static_cast<char*>(packed) + g0 * row_bytes,
              static_cast<const char*>(rows) + g0 * row_bytes, (g1 - g0) * row_bytes);
}

/// Row i of integer blocks, decoded.
template <class Type>
static inline void decode_file_row(const void* packed, std::uint64_t k, std::uint64_t i,
                                   float* out) {
  const std::uint64_t n_groups = k / Type::kBlockElems;
  const auto* w = static_cast<const typename Type::Block*>(packed) + i * n_groups;
  for (std::uint64_t g = 0; g < n_groups; ++g) {
    Type::decode(w[g], out + g * Type::kBlockElems);
  }
}

}  // namespace detrun::kernels
