// The default chunk: within its limits, smaller for wider models and smaller caches.
#include <doctest/doctest.h>

#include "detrun/model.h"

namespace {

using detrun::default_chunk_rows;

detrun::ModelSpec spec_of(std::uint32_t n_embd, std::uint32_t n_heads, std::uint32_t n_kv_heads,
                          std::uint32_t n_ff) {
  detrun::ModelSpec spec;
  spec.n_embd = n_embd;
  spec.n_heads = n_heads;
  spec.n_kv_heads = n_kv_heads;
  spec.head_dim = n_embd / n_heads;
  spec.n_ff = n_ff;
  return spec;
}

TEST_CASE("a chunk's activations of one layer take half of the shared cache") {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  const auto llama_1b = spec_of(2048, 32, 4, 5632);  // 22,016 floats a row
  CHECK(default_chunk_rows(llama_1b, 32 * kMiB) == 176);
  CHECK(default_chunk_rows(llama_1b, 16 * kMiB) == 80);
  CHECK(default_chunk_rows(spec_of(4096, 32, 8, 14336), 64 * kMiB) == 160);
}

TEST_CASE("a chunk has 64 to 512 rows, whatever the model and the machine") {
  const auto small = spec_of(64, 8, 4, 172);
  const auto large = spec_of(16384, 128, 8, 53248);
  CHECK(default_chunk_rows(small, std::uint64_t{1} << 40U) == 512);
  CHECK(default_chunk_rows(large, 1) == 64);
  CHECK(default_chunk_rows(detrun::ModelSpec{}, 0) == 64);
  for (const auto& spec : {small, large}) {
    CHECK(default_chunk_rows(spec) >= 64);
    CHECK(default_chunk_rows(spec) <= 512);
  }
}

}  // namespace
