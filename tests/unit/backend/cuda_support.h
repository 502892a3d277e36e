// Running a model file on the emulated CUDA backend and on the scalar CPU: what their tests share.
#pragma once

#include <doctest/doctest.h>

#include "detrun/backend.h"
#include "detrun/model.h"
#include "tests/unit/model/run_tiny.h"

namespace detrun::test {

inline constexpr std::uint32_t kCudaContext = 70;  // crosses a border of 64 positions

inline Outcome run_on(Backend& backend, const ModelFile& file, std::uint32_t chunk, KvType kv) {
  const auto model = Model::load(file, backend);
  const auto context = Context::create(*model, backend, kCudaContext, kv, chunk);
  return feed(*context, model->spec(), random_tokens(kCudaContext, model->spec().n_vocab), chunk);
}

/// Logits of every row and the KV cache, in every chunk.
inline void check_chunks(const ModelFile& file, KvType kv, std::size_t alive_tenths) {
  const auto cpu = make_cpu_backend({1, "scalar"});
  const auto device = make_cuda_backend({});
  const Outcome expected = run_on(*cpu, file, kCudaContext, kv);
  check_alive(expected, alive_tenths);
  for (const std::uint32_t chunk : {1U, 3U, 64U}) {
    CAPTURE(chunk);
    const Outcome found = run_on(*device, file, chunk, kv);
    CHECK(found.logits == expected.logits);
    CHECK(found.kv == expected.kv);
  }
}

}  // namespace detrun::test
