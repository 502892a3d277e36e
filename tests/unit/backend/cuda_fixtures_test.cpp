// The trained fixture models on the CUDA backend, emulated: logits of every row and the KV cache
// are those of the scalar CPU, bit for bit, whatever the chunk.
#include <doctest/doctest.h>

#include <string>

#include "cuda_support.h"

using namespace detrun;
using namespace detrun::test;

TEST_CASE("the fixture models give the bits of the CPU in any chunk") {
  for (const char* name : {"f16", "q8_0", "q4_k_m"}) {
    CAPTURE(name);
    const auto file = ModelFile::open(
        std::string(DETRUN_SOURCE_DIR) + "/fixtures/models/detrun-decisions-" + name + ".gguf",
        LoadMethod::kMap);
    check_chunks(*file, KvType::kF16, 8);
  }
}
