// Running a tiny model in a test: load it, feed tokens in chunks, keep every bit that came out.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "detrun/backend.h"
#include "detrun/model.h"
#include "tests/unit/model/tiny_model.h"

namespace detrun::test {

using Ids = std::vector<std::int32_t>;
inline constexpr std::uint32_t kTokens = 130;  // crosses two borders of 64 positions

inline Ids random_tokens(std::uint32_t n, std::uint32_t n_vocab, unsigned seed = 5) {
  std::mt19937 generator(seed);
  Ids tokens(n);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(generator() % n_vocab);
  return tokens;
}

/// A model written, opened and bound; everything it borrows lives as long as it does.
struct Loaded {
  explicit Loaded(const std::string& bytes, const CpuOptions& options = {1, ""},
                  LoadMethod method = LoadMethod::kMap)
      : file(ModelFile::open(folder.write("m.gguf", bytes), method)),
        backend(make_cpu_backend(options)),
        model(Model::load(*file, *backend)) {}

  TempFolder folder;
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

/// Everything a run computed, as bytes.
struct Outcome {
  std::vector<std::uint32_t> logits;  // (tokens, n_vocab)
  std::vector<std::byte> kv;          // every layer and position
  bool operator==(const Outcome&) const = default;
};

inline std::vector<std::byte> kv_bytes(const Context& context, const ModelSpec& spec) {
  std::vector<std::byte> all;
  for (std::uint32_t layer = 0; layer < spec.n_layers; ++layer) {
    for (std::uint32_t position = 0; position < context.position(); ++position) {
      const auto part = context.kv_cache().snapshot(layer, position);
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  return all;
}

inline Outcome feed(Context& context, const ModelSpec& spec, const Ids& tokens,
                    std::uint32_t chunk) {
  Outcome outcome;
  std::vector<float> logits;
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t n = std::min<std::size_t>(chunk, tokens.size() - done);
    logits.assign(n * spec.n_vocab, 0.0F);
    context.forward(std::span(tokens).subspan(done, n), static_cast<std::uint32_t>(n), logits);
    for (const float x : logits) outcome.logits.push_back(std::bit_cast<std::uint32_t>(x));
    done += n;
  }
  outcome.kv = kv_bytes(context, spec);
  return outcome;
}

inline Outcome run(const Loaded& loaded, const Ids& tokens, std::uint32_t chunk,
                   KvType kv = KvType::kF16) {
  const auto context = Context::create(*loaded.model, *loaded.backend, kTokens, kv, chunk);
  return feed(*context, loaded.model->spec(), tokens, chunk);
}

/// Parity of dead values proves nothing: logits must be finite and not zero, and more than
/// `changes_tenths` of ten must differ from their neighbour.
inline void check_alive(const Outcome& outcome, std::size_t changes_tenths = 9) {
  std::size_t alive = 0, changes = 0;
  for (std::size_t i = 0; i < outcome.logits.size(); ++i) {
    const float x = std::bit_cast<float>(outcome.logits[i]);
    alive += std::isfinite(x) && x != 0.0F ? 1 : 0;
    changes += i > 0 && outcome.logits[i] != outcome.logits[i - 1] ? 1 : 0;
  }
  CHECK(alive == outcome.logits.size());
  CHECK(changes > outcome.logits.size() * changes_tenths / 10);
}

}  // namespace detrun::test
