// Tensor types: their names, block sizes and, for supported ones, decoding to binary32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace detrun {

enum class QType : std::uint32_t {
#define DETRUN_QTYPE(name, id, text, elems, bytes, supported) name = (id),
#include "detrun/qtypes.def"
#undef DETRUN_QTYPE
};

struct QTypeInfo {
  QType type;
  std::string_view name;      ///< as in GGUF tools: "F16", "Q8_0"
  std::uint32_t block_elems;  ///< elements a block
  std::uint32_t block_bytes;  ///< bytes a block
  bool supported;             ///< has kernels and a decoder
};

/// The row of a GGUF type id; nullptr for an id that no row names (removed or unknown types).
const QTypeInfo* find_qtype(std::uint32_t gguf_id);
/// The row of a type. DETRUN_CHECK when there is none.
const QTypeInfo& qtype_info(QType type);

/// Bytes of a row of n elements; nullopt when n is no multiple of the block or the size overflows.
std::optional<std::uint64_t> row_bytes(const QTypeInfo& info, std::uint64_t n_elems);

/// Decodes one row of a supported type: exactly, but for the one rounding of d * q + m (Q4_1, Q5_1)
/// and of d * (scale * q) - dmin * minimum (Q2_K, Q4_K, Q5_K).
/// bytes: row_bytes(type, out.size()). DETRUN_CHECK on sizes or an unsupported type.
void decode_row(QType type, std::span<const std::byte> bytes, std::span<float> out);

/// Index of the first element that is not finite, or of the first element of the block one of whose
/// scales or minima is not; nullopt when all are.
/// Works on whole rows laid end to end.
std::optional<std::uint64_t> first_non_finite(QType type, std::span<const std::byte> bytes);

/// Whether make_up_blocks knows the type: those of the synthetic models of `bench`.
bool can_make_up(QType type);
/// Blocks [first, first + n) of a tensor that is made up, as a file would hold them; elements, for
/// float types, `first` then a multiple of 4. Every byte is a function of type, key and index
/// alone, and finite. `out` has their size. DETRUN_CHECK for another type.
void make_up_blocks(QType type, std::uint64_t key, std::uint64_t first, std::span<std::byte> out);

}  // namespace detrun
