// The shapes of synthetic models, as numbers. Inside of bench_model and bench_image.
#pragma once

#include <cstdint>
#include <string_view>

namespace detrun {

struct SyntheticShape {
  std::string_view name;
  std::uint32_t n_embd, n_layers, n_heads, n_kv_heads, head_dim, n_ff, n_vocab;
  bool separate_head;
  std::uint32_t n_ctx_train;
  float rope_base;
};
/// Error kUsage, naming the known ones.
const SyntheticShape& find_synthetic_shape(std::string_view name);

/// The number of a mixture in general.file_type. Error kUsage as synthetic_tensors.
std::uint32_t synthetic_file_type(std::string_view type);

}  // namespace detrun
