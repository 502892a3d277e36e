// The tensors of a synthetic model: which a shape has, their types, their bytes. The image around
// them is made in bench_image.cpp. scripts/make_synthetic_model.py is the same in Python.
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

std::uint64_t synthetic_key(std::string_view name) {
  std::uint64_t key = 0xCBF29CE484222325U;
  for (const char c : name) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return key;
}

void fill_synthetic(std::string_view name, QType type, std::uint64_t first, std::uint64_t count,
                    std::span<std::byte> out) {
  DETRUN_CHECK(out.size() == count * qtype_info(type).block_bytes);
  make_up_blocks(type, synthetic_key(name), first, out);
  if (!name.ends_with("norm.weight")) return;
  for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, out.data() + at, sizeof(bits));
    bits = (bits & 0x7FFFFFU) | 0x3F800000U;
    std::memcpy(out.data() + at, &bits, sizeof(bits));
  }
}

}  // namespace detrun
