// The llama architecture: metadata keys `llama.*` and tensor names of GGUF files to a ModelSpec.
// RMSNorm, rotated adjacent pairs, grouped-query attention, SwiGLU, tied or separate head. What
// would change the arithmetic and is not done here is refused by name, never ignored.
// Source of the keys: the public GGUF specification.
#include <array>
#include <cmath>
#include <string>

#include "detrun/log.h"
#include "detrun/quant.h"
#include "detrun/text.h"
#include "model/arch.h"
#include "model/metadata.h"
#include "model/weights.h"

namespace detrun {
namespace {

// Bounds far above any published model; the products of any two stay far below 2^64.
constexpr U32Range kLayers = {1, 4096};
constexpr U32Range kWidth = {1, 1U << 22U};
constexpr U32Range kHeads = {1, 1U << 16U};
constexpr U32Range kHeadDim = {1, 1U << 14U};
constexpr U32Range kVocab = {1, 1U << 26U};
constexpr U32Range kCtx = {1, (1U << 31U) - 1};

/// Keys that change the arithmetic, and the value at which they do nothing.
struct NeutralKey {
  std::string_view key;
  double neutral;
};
constexpr std::array kNeutralKeys = {
    NeutralKey{"expert_count", 0},
    NeutralKey{"expert_used_count", 0},
    NeutralKey{"expert_shared_count", 0},
    NeutralKey{"attention.sliding_window", 0},
    NeutralKey{"attention.max_alibi_bias", 0},
    NeutralKey{"attention.clamp_kqv", 0},
    NeutralKey{"attention.scale", 0},
    NeutralKey{"attn_logit_softcapping", 0},
    NeutralKey{"final_logit_softcapping", 0},
    NeutralKey{"embedding_scale", 1},
    NeutralKey{"residual_scale", 1},
    NeutralKey{"logit_scale", 1},
    NeutralKey{"rope.scale_linear", 1},
    NeutralKey{"rope.scaling.factor", 1},
    NeutralKey{"rope.scaling.attn_factor", 1},
};
struct NeutralFlag {
  std::string_view key;
  bool neutral;
};
constexpr std::array kNeutralFlags = {
    NeutralFlag{"attention.causal", true},
    NeutralFlag{"use_parallel_residual", false},
};

std::string decimal(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  return format_f32(static_cast<float>(value));
}

void refuse_unsupported_features(MetaReader& meta) {
  const auto scaling = meta.text("rope.scaling.type");
  if (scaling && *scaling != "none" && *scaling != "linear") {
    meta.refuse_key("rope.scaling.type", "\"" + std::string(*scaling) + "\"",
                    "\"none\" (this scaling of RoPE is not supported)");
  }
  for (const NeutralKey& row : kNeutralKeys) {
    const auto value = meta.number(row.key);
    if (value && *value != row.neutral) {
      meta.refuse_key(row.key, decimal(*value),
                      decimal(row.neutral) + " (this feature is not supported)");
    }
  }
  for (const NeutralFlag& row : kNeutralFlags) {
    const auto value = meta.flag(row.key);
    if (value && *value != row.neutral) {
      meta.refuse_key(row.key, *value ? "true" : "false",
                      row.neutral ? "true (this feature is not supported)"
                                  : "false (this feature is not supported)");
    }
  }
}

/// Said by Llama files and without influence on what this version computes.
constexpr std::array<std::string_view, 3> kHarmlessKeys = {
    "rope.scaling.original_context_length", "rope.scaling.finetuned", "tensor_data_layout"};

void warn_about_unknown_keys(const ModelFile& file, MetaReader& meta) {
  for (const std::string_view key : kHarmlessKeys) meta.look_at(key);
  for (const std::string& key : meta.keys_not_looked_at()) {
    log_warning(file.path() + ": metadata key " + key + " is not known to this version; ignored");
  }
}

void read_heads(const ModelFile& file, MetaReader& meta, ModelSpec& spec) {
  const auto heads = meta.u32_of_all_layers("attention.head_count", spec.n_layers, kHeads);
  if (!heads) {
    refuse_model(file, "metadata key " + meta.full_key("attention.head_count") + " is missing");
  }
  spec.n_heads = *heads;
  spec.n_kv_heads =
      meta.u32_of_all_layers("attention.head_count_kv", spec.n_layers, kHeads).value_or(*heads);
  if (spec.n_heads % spec.n_kv_heads != 0) {
    meta.refuse_key("attention.head_count_kv", std::to_string(spec.n_kv_heads),
                    "a divisor of the " + std::to_string(spec.n_heads) + " query heads");
  }
  const auto key_length = meta.u32("attention.key_length", kHeadDim);
  if (!key_length && spec.n_embd % spec.n_heads != 0) {
    meta.refuse_key("attention.head_count", std::to_string(spec.n_heads),
                    "a divisor of the embedding length " + std::to_string(spec.n_embd));
  }
  spec.head_dim = key_length.value_or(spec.n_embd / spec.n_heads);
  if (spec.head_dim > kHeadDim.max) {
    meta.refuse_key("attention.head_count", std::to_string(spec.n_heads),
                    "heads of at most " + std::to_string(kHeadDim.max) + " elements");
  }
  const auto value_length = meta.u32("attention.value_length", kHeadDim);
  if (value_length && *value_length != spec.head_dim) {
    meta.refuse_key("attention.value_length", std::to_string(*value_length),
                    "the key length " + std::to_string(spec.head_dim) +
                        " (different lengths are not supported)");
  }
}

void read_rope_factors(const ModelFile& file, ModelSpec& spec) {
  const TensorInfo* tensor = file.find_tensor(kRopeFactorsName);
  if (tensor == nullptr) return;
  const std::uint64_t n = spec.rope_dim / 2;
  const std::string name(kRopeFactorsName);
  if (tensor->type != QType::kF32) {
    refuse_model(file, "tensor " + name + " has type " +
                           std::string(qtype_info(tensor->type).name) + ", expected F32");
  }
  if (tensor->row_elems() != n || tensor->n_rows() != 1) {
    refuse_model(file, "tensor " + name + " has " + std::to_string(tensor->row_elems()) + " x " +
                           std::to_string(tensor->n_rows()) + " elements, expected " +
                           std::to_string(n) + " (half of " + std::to_string(spec.rope_dim) +
                           " rotated elements)");
  }
  spec.rope_freq_factors.resize(n);
  decode_row(QType::kF32, tensor->data, spec.rope_freq_factors);
  for (std::size_t i = 0; i < n; ++i) {
    const float factor = spec.rope_freq_factors[i];
    if (!std::isfinite(factor) || factor <= 0.0F) {
      refuse_model(file, "tensor " + name + " holds " + format_f32(factor) + " at index " +
                             std::to_string(i) + ", expected a finite divisor above 0");
    }
  }
}

void read_rope(const ModelFile& file, MetaReader& meta, ModelSpec& spec) {
  spec.rope_pairs = RopePairs::kAdjacent;
  spec.rope_dim = meta.u32("rope.dimension_count", kHeadDim).value_or(spec.head_dim);
  if (spec.rope_dim % 2 != 0) {
    meta.refuse_key("rope.dimension_count", std::to_string(spec.rope_dim), "an even number");
  }
  if (spec.rope_dim > spec.head_dim) {
    meta.refuse_key("rope.dimension_count", std::to_string(spec.rope_dim),
                    "at most the head length " + std::to_string(spec.head_dim));
  }
  spec.rope_theta = meta.number("rope.freq_base").value_or(spec.rope_theta);
  if (!(spec.rope_theta >= 1.0 && spec.rope_theta <= 1e12)) {
    meta.refuse_key("rope.freq_base", decimal(spec.rope_theta), "a number from 1 to 1e12");
  }
  read_rope_factors(file, spec);
}

std::uint32_t read_vocab_size(const ModelFile& file, MetaReader& meta) {
  const TensorInfo* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) refuse_model(file, "tensor token_embd.weight is missing");
  const std::uint64_t rows = embedding->n_rows();
  if (rows < kVocab.min || rows > kVocab.max) {
    refuse_model(file, "tensor token_embd.weight has " + std::to_string(rows) +
                           " rows, expected 1 to " + std::to_string(kVocab.max));
  }
  const auto stated = meta.u32("vocab_size", kVocab);
  if (stated && *stated != rows) {
    meta.refuse_key("vocab_size", std::to_string(*stated),
                    "the " + std::to_string(rows) + " rows of token_embd.weight");
  }
  return static_cast<std::uint32_t>(rows);
}

ModelSpec read_llama_spec(const ModelFile& file) {
  MetaReader meta(file, kArchLlama.name);
  refuse_unsupported_features(meta);
  ModelSpec spec;
  spec.arch = kArchLlama.name;
  spec.name = std::string(file.get_string("general.name").value_or(""));
  spec.n_layers = meta.required_u32("block_count", kLayers);
  spec.n_ctx_train = meta.required_u32("context_length", kCtx);
  spec.n_embd = meta.required_u32("embedding_length", kWidth);
  const auto n_ff = meta.u32_of_all_layers("feed_forward_length", spec.n_layers, kWidth);
  if (!n_ff) {
    refuse_model(file, "metadata key " + meta.full_key("feed_forward_length") + " is missing");
  }
  spec.n_ff = *n_ff;
  read_heads(file, meta, spec);
  const auto eps = meta.number("attention.layer_norm_rms_epsilon");
  if (!eps) {
    refuse_model(
        file, "metadata key " + meta.full_key("attention.layer_norm_rms_epsilon") + " is missing");
  }
  spec.rms_eps = static_cast<float>(*eps);
  if (!(spec.rms_eps > 0.0F && spec.rms_eps < 1.0F)) {
    meta.refuse_key("attention.layer_norm_rms_epsilon", format_f32(spec.rms_eps),
                    "a number above 0 and below 1");
  }
  read_rope(file, meta, spec);
  spec.n_vocab = read_vocab_size(file, meta);
  warn_about_unknown_keys(file, meta);
  spec.tied_head = file.find_tensor("output.weight") == nullptr;
  return spec;
}

using Layer = LayerWeights;
using Outer = OuterWeights;
constexpr TensorRow<Layer> kLayerTensors[] = {
    {"attn_norm.weight", Dim::kEmbd, Dim::kOne, nullptr, &Layer::attn_norm},
    {"attn_q.weight", Dim::kEmbd, Dim::kHeads, &Layer::attn_q, nullptr},
    {"attn_k.weight", Dim::kEmbd, Dim::kKvHeads, &Layer::attn_k, nullptr},
    {"attn_v.weight", Dim::kEmbd, Dim::kKvHeads, &Layer::attn_v, nullptr},
    {"attn_output.weight", Dim::kHeads, Dim::kEmbd, &Layer::attn_output, nullptr},
    {"ffn_norm.weight", Dim::kEmbd, Dim::kOne, nullptr, &Layer::ffn_norm},
    {"ffn_gate.weight", Dim::kEmbd, Dim::kFf, &Layer::ffn_gate, nullptr},
    {"ffn_up.weight", Dim::kEmbd, Dim::kFf, &Layer::ffn_up, nullptr},
    {"ffn_down.weight", Dim::kFf, Dim::kEmbd, &Layer::ffn_down, nullptr},
};
constexpr TensorRow<Outer> kOuterTensors[] = {
    {"token_embd.weight", Dim::kEmbd, Dim::kVocab, &Outer::token_embd, nullptr},
    {"output_norm.weight", Dim::kEmbd, Dim::kOne, nullptr, &Outer::output_norm},
    {"output.weight", Dim::kEmbd, Dim::kVocab, &Outer::output, nullptr},
};

}  // namespace

const Arch kArchLlama = {"llama", read_llama_spec, kLayerTensors, kOuterTensors};

}  // namespace detrun
