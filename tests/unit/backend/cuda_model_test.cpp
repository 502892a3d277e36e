// Whole models on the CUDA backend, emulated: logits of every row and the KV cache are those of the
// scalar CPU, bit for bit, whatever the chunk.
#include <doctest/doctest.h>

#include <string>

#include "cuda_support.h"

using namespace detrun;
using namespace detrun::test;

TEST_CASE("tiny models of every form of weight give the bits of the CPU in any chunk") {
  const TinyShape shapes[] = {
      {.n_layers = 1,
       .n_embd = 45,
       .n_ff = 77,
       .n_heads = 3,
       .n_kv_heads = 1,
       .head_dim = 20,
       .rope_dim = 12},
      {.n_layers = 1,
       .n_embd = 32,
       .n_ff = 40,
       .n_vocab = 33,
       .tied = true,
       .type = gguf::kTensorF16},
      {.n_vocab = 64, .type = gguf::kTensorQ8_0},
      {.n_layers = 1, .n_ff = 44, .type = gguf::kTensorQ8_0, .ffn_down_type = gguf::kTensorBF16}};
  for (const TinyShape& shape : shapes) {
    CAPTURE(shape.n_embd);
    CAPTURE(shape.type);
    const TempFolder folder;
    const auto file =
        ModelFile::open(folder.write("m.gguf", tiny_llama(shape).bytes()), LoadMethod::kMap);
    check_chunks(*file, shape.tied ? KvType::kF32 : KvType::kF16, 9);
  }
}
