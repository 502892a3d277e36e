// libFuzzer target: arbitrary bytes as a GGUF file. Built with the preset `fuzz` only; run
//   build-fuzz/bin/fuzz_gguf -max_len=4096 SCRATCH_DIR tests/fuzz/corpus/gguf
// where the fuzzer keeps what it finds in SCRATCH_DIR, the first folder.
// A file that made it fail belongs into tests/fuzz/corpus/gguf, where every test run replays it.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/gguf_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  detrun::test::exercise_gguf(std::as_bytes(std::span(data, size)));
  return 0;
}
