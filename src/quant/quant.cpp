// The table of tensor types, their sizes, decoding and the search for values that are not
// finite. No arithmetic of the contract: that is kernels/.
#include "detrun/quant.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>

#include "detrun/error.h"
#include "kernels/quant/all.h"

namespace detrun {
namespace {

using namespace kernels;

constexpr QTypeInfo kTypes[] = {
#define DETRUN_QTYPE(name, id, text, elems, bytes, supported) \
  {QType::name, (text), (elems), (bytes), (supported) != 0},
#include "detrun/qtypes.def"
#undef DETRUN_QTYPE
};

template <class Type>
void decode_blocks(std::span<const std::byte> bytes, std::span<float> out) {
  typename Type::Block block;
  for (std::size_t i = 0; i < out.size() / Type::kBlockElems; ++i) {
    std::memcpy(&block, bytes.data() + i * sizeof block, sizeof block);
    Type::decode(block, out.data() + i * Type::kBlockElems);
  }
}

/// Not zero when one of the packed elements of `word` has an exponent field of all ones: adding one
/// to the field then carries into the place of the sign, which the mask has cleared, no further.
template <class Type>
std::uint64_t non_finite_bits(std::uint64_t word) {
  return ((word & Type::kExponentMask) + Type::kExponentStep) & Type::kSignMask;
}

/// Elements are looked at eight bytes at a time: this runs over every weight of a model.
template <class Type>
std::optional<std::uint64_t> first_non_finite_element(std::span<const std::byte> bytes) {
  constexpr std::size_t kElemBytes = sizeof(typename Type::Block);
  constexpr std::size_t kChunkWords = 512;
  std::size_t done = 0;
  while (done < bytes.size()) {
    // A chunk at a time without a branch inside; the last bytes are padded with finite zeros.
    std::uint64_t words[kChunkWords] = {};
    const std::size_t n = std::min(sizeof words, bytes.size() - done);
    std::memcpy(words, bytes.data() + done, n);
    std::uint64_t found = 0;
    for (const std::uint64_t word : words) found |= non_finite_bits<Type>(word);
    if (found != 0) {
      for (std::size_t i = 0; i < kChunkWords; ++i) {
        const std::uint64_t bits = non_finite_bits<Type>(words[i]);
        if (bits == 0) continue;
        const auto in_word = static_cast<std::size_t>(std::countr_zero(bits)) / (8 * kElemBytes);
        return done / kElemBytes + i * (sizeof(std::uint64_t) / kElemBytes) + in_word;
      }
    }
    done += n;
  }
  return std::nullopt;
}

/// Index of the first element of the first block one of whose scales or minima is not finite.
template <class Type>
std::optional<std::uint64_t> first_non_finite_block(std::span<const std::byte> bytes) {
  typename Type::Block block;
  for (std::size_t b = 0; b < bytes.size() / sizeof block; ++b) {
    std::memcpy(&block, bytes.data() + b * sizeof block, sizeof block);
    if (!Type::is_finite(block)) return b * Type::kBlockElems;
  }
  return std::nullopt;
}

/// What a supported type can do: one row a type.
struct Codec {
  std::uint32_t gguf_id;
  void (*decode)(std::span<const std::byte> bytes, std::span<float> out);
  std::optional<std::uint64_t> (*first_non_finite)(std::span<const std::byte> bytes);
};

template <class Type>
constexpr Codec element_codec() {
  return {Type::kGgufId, decode_blocks<Type>, first_non_finite_element<Type>};
}
template <class Type>
constexpr Codec block_codec() {
  return {Type::kGgufId, decode_blocks<Type>, first_non_finite_block<Type>};
}

constexpr Codec kCodecs[] = {
    element_codec<TypeF32>(), element_codec<TypeF16>(), element_codec<TypeBF16>(),
    block_codec<TypeQ4_0>(),  block_codec<TypeQ4_1>(),  block_codec<TypeQ5_0>(),
    block_codec<TypeQ5_1>(),  block_codec<TypeQ8_0>(),  block_codec<TypeIQ4_NL>(),
    block_codec<TypeQ2_K>(),  block_codec<TypeQ3_K>(),  block_codec<TypeQ4_K>(),
    block_codec<TypeQ5_K>(),  block_codec<TypeQ6_K>(),  block_codec<TypeIQ4_XS>(),
};

const Codec& codec(QType type) {
  const auto* found = std::find_if(std::begin(kCodecs), std::end(kCodecs), [type](const Codec& c) {
    return c.gguf_id == static_cast<std::uint32_t>(type);
  });
  DETRUN_CHECK(found != std::end(kCodecs));
  return *found;
}

}  // namespace

const QTypeInfo* find_qtype(std::uint32_t gguf_id) {
  for (const QTypeInfo& info : kTypes) {
    if (static_cast<std::uint32_t>(info.type) == gguf_id) return &info;
  }
  return nullptr;
}

const QTypeInfo& qtype_info(QType type) {
  const QTypeInfo* info = find_qtype(static_cast<std::uint32_t>(type));
  DETRUN_CHECK(info != nullptr);
  return *info;
}

std::optional<std::uint64_t> row_bytes(const QTypeInfo& info, std::uint64_t n_elems) {
  if (n_elems % info.block_elems != 0) return std::nullopt;
  const std::uint64_t n_blocks = n_elems / info.block_elems;
  if (n_blocks > std::numeric_limits<std::uint64_t>::max() / info.block_bytes) return std::nullopt;
  return n_blocks * info.block_bytes;
}

void decode_row(QType type, std::span<const std::byte> bytes, std::span<float> out) {
  const auto expected = row_bytes(qtype_info(type), out.size());
  DETRUN_CHECK(expected && *expected == bytes.size());
  codec(type).decode(bytes, out);
}

std::optional<std::uint64_t> first_non_finite(QType type, std::span<const std::byte> bytes) {
  DETRUN_CHECK(bytes.size() % qtype_info(type).block_bytes == 0);
  return codec(type).first_non_finite(bytes);
}

}  // namespace detrun
