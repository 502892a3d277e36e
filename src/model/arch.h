// What a row of the architecture table holds: how metadata becomes a ModelSpec, and which tensors
// a layer and the model have, by name, shape and slot. The forward pass is not here: it is one for
// all architectures and follows the ModelSpec.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "detrun/backend.h"
#include "detrun/model.h"
#include "detrun/model_file.h"

namespace detrun {

/// Weights of one layer, on the device.
struct LayerWeights {
  std::unique_ptr<Buffer> attn_norm;    // (n_embd)
  std::unique_ptr<Weight> attn_q;       // (n_heads * head_dim, n_embd)
  std::unique_ptr<Weight> attn_k;       // (n_kv_heads * head_dim, n_embd)
  std::unique_ptr<Weight> attn_v;       // (n_kv_heads * head_dim, n_embd)
  std::unique_ptr<Weight> attn_output;  // (n_embd, n_heads * head_dim)
  std::unique_ptr<Buffer> ffn_norm;     // (n_embd)
  std::unique_ptr<Weight> ffn_gate;     // (n_ff, n_embd)
  std::unique_ptr<Weight> ffn_up;       // (n_ff, n_embd)
  std::unique_ptr<Weight> ffn_down;     // (n_embd, n_ff)
};

/// Weights outside the layers.
struct OuterWeights {
  std::unique_ptr<Weight> token_embd;   // (n_vocab, n_embd)
  std::unique_ptr<Buffer> output_norm;  // (n_embd)
  std::unique_ptr<Weight> output;       // (n_vocab, n_embd); null: token_embd is the head
};

/// A dimension of a tensor in words of the ModelSpec.
enum class Dim { kOne, kEmbd, kHeads, kKvHeads, kFf, kVocab };
std::uint64_t dim_size(Dim dim, const ModelSpec& spec);

/// One tensor: its name (in a layer after "blk.N."), its shape, and the slot it goes to. Exactly
/// one slot is not null: `matrix` of any supported type, or `vector`, always F32.
template <class Owner>
struct TensorRow {
  std::string_view name;
  Dim row_elems, n_rows;
  std::unique_ptr<Weight> Owner::*matrix;
  std::unique_ptr<Buffer> Owner::*vector;
};

struct Arch {
  std::string_view name;
  /// Everything but quantization, n_params and the check of the tensors.
  ModelSpec (*read_spec)(const ModelFile& file);
  std::span<const TensorRow<LayerWeights>> layer_tensors;
  std::span<const TensorRow<OuterWeights>> outer_tensors;
};

/// The row of a name; nullptr for an unknown architecture.
const Arch* find_arch(std::string_view name);

extern const Arch kArchLlama;

}  // namespace detrun
