// Tiny random llama models for tests: any shape, any supported tensor type, and a file whose keys
// and tensors a test may change or drop before it is written.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/fp.h"
#include "tests/support/gguf_builder.h"

namespace detrun::test {

struct TinyShape {
  std::uint32_t n_layers = 2, n_embd = 64, n_ff = 96, n_vocab = 61;
  std::uint32_t n_heads = 4, n_kv_heads = 2, head_dim = 16;
  std::uint32_t rope_dim = 16, n_ctx = 256;
  bool tied = false;
  std::uint32_t type = gguf::kTensorF32;      ///< of all matrices, except:
  std::uint32_t ffn_down_type = 0xffffffffU;  ///< this one, when it is set
};

/// A GGUF file as lists that a test can edit.
class TinyFile {
 public:
  struct Tensor {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> dims;
    std::string data;
  };
  using Put = std::function<void(GgufBuilder&)>;

  /// Sets or replaces a key.
  void key(const std::string& name, Put put) {
    for (auto& [known, old] : keys_) {
      if (known == name) {
        old = std::move(put);
        return;
      }
    }
    keys_.emplace_back(name, std::move(put));
  }
  void u32(const std::string& name, std::uint32_t value) {
    key(name, [=](GgufBuilder& file) { file.u32(name, value); });
  }
  void f32(const std::string& name, float value) {
    key(name, [=](GgufBuilder& file) { file.f32(name, value); });
  }
  void string(const std::string& name, const std::string& value) {
    key(name, [=](GgufBuilder& file) { file.string(name, value); });
  }
  void drop_key(const std::string& name) {
    std::erase_if(keys_, [&](const auto& entry) { return entry.first == name; });
  }
  void drop_tensor(const std::string& name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  }
  Tensor& tensor(const std::string& name) {
    for (Tensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::logic_error("no tensor " + name);
  }
  std::string bytes() const {
    GgufBuilder file;
    for (const auto& [name, put] : keys_) put(file);
    for (const Tensor& t : tensors) file.tensor(t.name, t.type, t.dims, t.data);
    return file.build();
  }

  std::vector<Tensor> tensors;

 private:
  std::vector<std::pair<std::string, Put>> keys_;
};

/// Random weights with a spread that keeps activations alive through the layers.
class TinyWeights {
 public:
  explicit TinyWeights(unsigned seed) : generator_(seed) {}

  std::string matrix(std::uint32_t type, std::uint64_t row_elems, std::uint64_t n_rows) {
    const float scale = 1.5F / std::sqrt(static_cast<float>(row_elems));
    std::string data;
    if (type == gguf::kTensorQ8_0) {
      for (std::uint64_t i = 0; i < row_elems / 32 * n_rows; ++i) {
        put_le(data, kernels::f32_to_f16(scale / 127.0F * (1.0F + 0.5F * uniform())));
        for (int j = 0; j < 32; ++j) put_le(data, static_cast<std::int8_t>(127.0F * uniform()));
      }
      return data;
    }
    for (std::uint64_t i = 0; i < row_elems * n_rows; ++i) {
      const float value = 1.7F * scale * uniform();
      if (type == gguf::kTensorF32) put_le(data, value);
      if (type == gguf::kTensorF16) put_le(data, kernels::f32_to_f16(value));
      if (type == gguf::kTensorBF16) put_le(data, kernels::f32_to_bf16(value));
    }
    return data;
  }
  std::string norm(std::uint64_t n) {
    std::string data;
    for (std::uint64_t i = 0; i < n; ++i) put_le(data, 1.0F + 0.3F * uniform());
    return data;
  }

 private:
  float uniform() {  // -1 .. 1, the same on every standard library
    return static_cast<float>(static_cast<std::int32_t>(generator_())) * 0x1p-31F;
  }
  std::mt19937 generator_;
};

inline TinyFile tiny_llama(const TinyShape& shape, unsigned seed = 1) {
  TinyFile file;
  TinyWeights weights(seed);
  file.string("general.architecture", "llama");
  file.string("general.name", "tiny");
  file.u32("llama.block_count", shape.n_layers);
  file.u32("llama.context_length", shape.n_ctx);
  file.u32("llama.embedding_length", shape.n_embd);
  file.u32("llama.feed_forward_length", shape.n_ff);
  file.u32("llama.attention.head_count", shape.n_heads);
  file.u32("llama.attention.head_count_kv", shape.n_kv_heads);
  file.u32("llama.attention.key_length", shape.head_dim);
  file.u32("llama.attention.value_length", shape.head_dim);
  file.u32("llama.rope.dimension_count", shape.rope_dim);
  file.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  const auto matrix = [&](const std::string& name, std::uint32_t type, std::uint64_t row_elems,
                          std::uint64_t n_rows) {
    file.tensors.push_back(
        {name, type, {row_elems, n_rows}, weights.matrix(type, row_elems, n_rows)});
  };
  const auto norm = [&](const std::string& name) {
    file.tensors.push_back({name, gguf::kTensorF32, {shape.n_embd}, weights.norm(shape.n_embd)});
  };
  const std::uint64_t q_dim = std::uint64_t{shape.n_heads} * shape.head_dim;
  const std::uint64_t kv_dim = std::uint64_t{shape.n_kv_heads} * shape.head_dim;
  const std::uint32_t down_type =
      shape.ffn_down_type == 0xffffffffU ? shape.type : shape.ffn_down_type;
  matrix("token_embd.weight", shape.type, shape.n_embd, shape.n_vocab);
  for (std::uint32_t layer = 0; layer < shape.n_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    norm(prefix + "attn_norm.weight");
    matrix(prefix + "attn_q.weight", shape.type, shape.n_embd, q_dim);
    matrix(prefix + "attn_k.weight", shape.type, shape.n_embd, kv_dim);
    matrix(prefix + "attn_v.weight", shape.type, shape.n_embd, kv_dim);
    matrix(prefix + "attn_output.weight", shape.type, q_dim, shape.n_embd);
    norm(prefix + "ffn_norm.weight");
    matrix(prefix + "ffn_gate.weight", shape.type, shape.n_embd, shape.n_ff);
    matrix(prefix + "ffn_up.weight", shape.type, shape.n_embd, shape.n_ff);
    matrix(prefix + "ffn_down.weight", down_type, shape.n_ff, shape.n_embd);
  }
  norm("output_norm.weight");
  if (!shape.tied) matrix("output.weight", shape.type, shape.n_embd, shape.n_vocab);
  return file;
}

}  // namespace detrun::test
