// The values of a synthetic model: which tensors a shape has, their types, their bytes. The image
// around them is made in bench_image.cpp. scripts/make_synthetic_model.py is the same in Python.
#include "run/bench_model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "detrun/error.h"
#include "run/bench_shapes.h"

namespace detrun {
namespace {

static_assert(std::endian::native == std::endian::little, "images are little-endian");

/// File type, type of the matrices, of the head, of v and down in half of the layers.
struct Mixture {
  std::string_view name;
  std::uint32_t file_type;
  QType base, head, better;
};
constexpr Mixture kMixtures[] = {
    {"f32", 0, QType::kF32, QType::kF32, QType::kF32},
    {"f16", 1, QType::kF16, QType::kF16, QType::kF16},
    {"bf16", 32, QType::kBF16, QType::kBF16, QType::kBF16},
    {"q4_0", 2, QType::kQ4_0, QType::kQ6_K, QType::kQ4_0},
    {"q4_1", 3, QType::kQ4_1, QType::kQ6_K, QType::kQ4_1},
    {"q5_0", 8, QType::kQ5_0, QType::kQ6_K, QType::kQ5_0},
    {"q5_1", 9, QType::kQ5_1, QType::kQ6_K, QType::kQ5_1},
    {"q8_0", 7, QType::kQ8_0, QType::kQ8_0, QType::kQ8_0},
    {"q4_k_m", 15, QType::kQ4_K, QType::kQ6_K, QType::kQ6_K},
    {"q5_k_m", 17, QType::kQ5_K, QType::kQ6_K, QType::kQ6_K},
    {"q6_k", 18, QType::kQ6_K, QType::kQ6_K, QType::kQ6_K},
};

/// Where a type's scale lies in a block, its fixed and its random bits; where a minimum lies (-1:
/// nowhere), its fixed bits and the shift of the scale's random bits for it.
struct BlockKind {
  QType type;
  std::uint32_t scale_at;
  std::uint16_t scale_fixed, scale_random;
  int min_at;
  std::uint16_t min_fixed;
  int min_shift;
};
constexpr std::uint16_t kNegative = 0x8000;
constexpr BlockKind kBlockKinds[] = {
    {QType::kQ4_0, 0, 6 << 10, 1023, -1, 0, 0},
    {QType::kQ4_1, 0, 6 << 10, 1023, 2, kNegative | 9 << 10, 0},
    {QType::kQ5_0, 0, 5 << 10, 1023, -1, 0, 0},
    {QType::kQ5_1, 0, 5 << 10, 1023, 2, kNegative | 9 << 10, 0},
    {QType::kQ8_0, 0, 2 << 10, 1023, -1, 0, 0},
    {QType::kQ4_K, 0, 512, 511, 2, 3 << 10, 1},
    {QType::kQ5_K, 0, 256, 255, 2, 3 << 10, 2},
    {QType::kQ6_K, 208, 64, 63, -1, 0, 0},
};

/// Bits of the mantissa, and the exponent field of the largest values (below 2^-5).
struct FloatKind {
  QType type;
  std::uint32_t n_bytes;
  int mantissa_bits;
  std::uint32_t exponent;
};
constexpr FloatKind kFloatKinds[] = {
    {QType::kF32, 4, 23, 121},
    {QType::kF16, 2, 10, 9},
    {QType::kBF16, 2, 7, 121},
};

const Mixture& find_mixture(std::string_view name) {
  for (const Mixture& mixture : kMixtures) {
    if (mixture.name == name) return mixture;
  }
  std::string known;
  for (const Mixture& mixture : kMixtures) {
    known += (known.empty() ? "" : ", ") + std::string(mixture.name);
  }
  throw_usage("unknown type of weights '" + std::string(name) + "'", "known are " + known);
}

/// FNV-1a, 64 bits.
std::uint64_t key_of(std::string_view name) {
  std::uint64_t key = 0xCBF29CE484222325U;
  for (const char c : name) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return key;
}

/// Word i of a tensor: splitmix64 (Steele, Lea, Flood 2014) as a function of a counter.
std::uint64_t random_word(std::uint64_t key, std::uint64_t i) {
  std::uint64_t x = key + (i + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

/// Random sign and mantissa, one of four exponents; weights of norms lie between 1 and 2.
std::uint32_t float_bits(const FloatKind& kind, bool is_norm, std::uint32_t random) {
  if (is_norm) return (random & 0x7FFFFFU) | 0x3F800000U;
  const std::uint32_t sign = 1U << (8 * kind.n_bytes - 1);
  const std::uint32_t mantissa = (1U << kind.mantissa_bits) - 1;
  const std::uint32_t exponent = kind.exponent - (random >> kind.mantissa_bits & 3U);
  return (random & (sign | mantissa)) | exponent << kind.mantissa_bits;
}

void fill_floats(const FloatKind& kind, std::string_view name, std::uint64_t first,
                 std::span<std::byte> out) {
  const bool is_norm = name.ends_with("norm.weight");
  const std::uint64_t key = key_of(name);
  const std::uint32_t bits = 8 * kind.n_bytes;
  const std::uint64_t per_word = 8 / kind.n_bytes;
  const std::uint64_t first_word = first / per_word;
  for (std::size_t at = 0; at < out.size(); at += 8) {
    std::uint64_t word = random_word(key, first_word + at / 8);
    std::uint64_t values = 0;
    for (std::uint64_t i = 0; i < per_word; ++i) {
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      const auto random = static_cast<std::uint32_t>(word & mask);
      word >>= bits;
      values |= std::uint64_t{float_bits(kind, is_norm, random)} << (bits * i);
    }
    std::memcpy(out.data() + at, &values, std::min<std::size_t>(8, out.size() - at));
  }
}

void store_u16(std::byte* at, std::uint32_t value) {
  const auto half = static_cast<std::uint16_t>(value);
  std::memcpy(at, &half, sizeof(half));
}

/// Random bytes, but for the scales.
void fill_block(const BlockKind& kind, std::span<std::byte> block) {
  if (kind.type == QType::kQ8_0) {  // quantizers never write -128
    for (std::byte& quant : block.subspan(2)) {
      if (quant == std::byte{0x80}) quant = std::byte{0x81};
    }
  }
  std::uint16_t half = 0;
  std::memcpy(&half, block.data() + kind.scale_at, sizeof(half));
  const std::uint32_t random = half & kind.scale_random;
  store_u16(block.data() + kind.scale_at, random | kind.scale_fixed);
  if (kind.min_at < 0) return;
  store_u16(block.data() + kind.min_at, random << kind.min_shift | kind.min_fixed);
}

void fill_blocks(const BlockKind& kind, std::string_view name, std::uint64_t first,
                 std::span<std::byte> out) {
  const std::uint64_t key = key_of(name);
  const std::size_t n_bytes = qtype_info(kind.type).block_bytes;
  const std::size_t n_words = (n_bytes + 7) / 8;
  for (std::uint64_t block = 0; block < out.size() / n_bytes; ++block) {
    const std::span<std::byte> bytes = out.subspan(block * n_bytes, n_bytes);
    for (std::size_t i = 0; i < n_words; ++i) {
      const std::uint64_t word = random_word(key, (first + block) * n_words + i);
      std::memcpy(bytes.data() + 8 * i, &word, std::min<std::size_t>(8, n_bytes - 8 * i));
    }
    fill_block(kind, bytes);
  }
}

/// Layers whose v and down matrices get the better type of a mixture: llama.cpp's rule.
bool use_more_bits(std::uint32_t layer, std::uint32_t n_layers) {
  const std::uint32_t eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

/// A row that is no whole number of super-blocks gets the type that llama.cpp gives it.
QType fitting_type(QType wanted, std::uint64_t row_elems) {
  if (row_elems % qtype_info(wanted).block_elems == 0) return wanted;
  if (wanted == QType::kQ4_K) return QType::kQ5_0;
  return wanted == QType::kQ5_K ? QType::kQ5_1 : QType::kQ8_0;
}

}  // namespace

std::vector<std::string> synthetic_types() {
  std::vector<std::string> names;
  for (const Mixture& mixture : kMixtures) names.emplace_back(mixture.name);
  return names;
}

std::uint32_t synthetic_file_type(std::string_view type) { return find_mixture(type).file_type; }

std::vector<SyntheticTensor> synthetic_tensors(std::string_view shape_name, std::string_view type) {
  const SyntheticShape& shape = find_synthetic_shape(shape_name);
  const Mixture& mixture = find_mixture(type);
  std::vector<SyntheticTensor> out;
  const auto matrix = [&out](std::string name, std::uint64_t rows, std::uint64_t k, QType wanted) {
    out.push_back({std::move(name), rows, k, fitting_type(wanted, k)});
  };
  const auto norm = [&](std::string name) {
    out.push_back({std::move(name), 1, shape.n_embd, QType::kF32});
  };
  const std::uint64_t q_rows = std::uint64_t{shape.n_heads} * shape.head_dim;
  const std::uint64_t kv_rows = std::uint64_t{shape.n_kv_heads} * shape.head_dim;
  matrix("token_embd.weight", shape.n_vocab, shape.n_embd,
         shape.separate_head ? mixture.base : mixture.head);
  for (std::uint32_t i = 0; i < shape.n_layers; ++i) {
    const QType more = use_more_bits(i, shape.n_layers) ? mixture.better : mixture.base;
    const std::string layer = "blk." + std::to_string(i) + ".";
    norm(layer + "attn_norm.weight");
    matrix(layer + "attn_q.weight", q_rows, shape.n_embd, mixture.base);
    matrix(layer + "attn_k.weight", kv_rows, shape.n_embd, mixture.base);
    matrix(layer + "attn_v.weight", kv_rows, shape.n_embd, more);
    matrix(layer + "attn_output.weight", shape.n_embd, q_rows, mixture.base);
    norm(layer + "ffn_norm.weight");
    matrix(layer + "ffn_gate.weight", shape.n_ff, shape.n_embd, mixture.base);
    matrix(layer + "ffn_up.weight", shape.n_ff, shape.n_embd, mixture.base);
    matrix(layer + "ffn_down.weight", shape.n_embd, shape.n_ff, more);
  }
  norm("output_norm.weight");
  if (shape.separate_head) {
    matrix("output.weight", shape.n_vocab, shape.n_embd, mixture.head);
  }
  return out;
}

void fill_synthetic(std::string_view name, QType type, std::uint64_t first, std::uint64_t count,
                    std::span<std::byte> out) {
  DETRUN_CHECK(first % 4 == 0 && out.size() == count * qtype_info(type).block_bytes);
  for (const FloatKind& kind : kFloatKinds) {
    if (kind.type == type) return fill_floats(kind, name, first, out);
  }
  for (const BlockKind& kind : kBlockKinds) {
    if (kind.type == type) return fill_blocks(kind, name, first, out);
  }
  DETRUN_CHECK(false);
}

}  // namespace detrun
