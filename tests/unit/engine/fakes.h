// A model, a context and a tokenizer without arithmetic: the logits of a position are what the test
// says, so that every way a run can end is reached on purpose.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detrun/engine.h"

namespace detrun::test {

inline constexpr std::uint32_t kFakeVocab = 8;
inline constexpr std::int32_t kFakeEnd = 7;  ///< a control token that ends generation

class FakeModel final : public Model {
 public:
  FakeModel() { spec_.n_vocab = kFakeVocab; }
  const ModelSpec& spec() const override { return spec_; }

 private:
  ModelSpec spec_;
};

/// Chooses (last token + 1) modulo the vocabulary unless `script` says otherwise.
class FakeContext final : public Context {
 public:
  FakeContext(std::uint32_t n_ctx, std::uint32_t max_rows) : n_ctx_(n_ctx), max_rows_(max_rows) {}

  std::uint32_t n_ctx() const override { return n_ctx_; }
  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t position() const override { return static_cast<std::uint32_t>(seen.size()); }
  void reset() override { seen.clear(); }
  void forward(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
               std::span<float> logits) override {
    calls.emplace_back(tokens.size(), logit_rows);
    seen.insert(seen.end(), tokens.begin(), tokens.end());
    if (logit_rows == 0) return;
    for (float& logit : logits) logit = 0.0F;
    logits[static_cast<std::size_t>(seen.back() + 1) % kFakeVocab] = 1.0F;
    if (script) script(position(), logits);
    if (on_forward) on_forward();
  }
  const KvCache& kv_cache() const override { throw std::logic_error("a fake has no cache"); }

  std::vector<std::int32_t> seen;
  std::vector<std::pair<std::size_t, std::uint32_t>> calls;  ///< tokens, logit rows
  std::function<void(std::uint32_t, std::span<float>)> script;
  std::function<void()> on_forward;

 private:
  std::uint32_t n_ctx_, max_rows_;
};

/// Token i is the letter 'a' + i; the last is the end token and has no bytes.
class FakeTokenizer : public Tokenizer {
 public:
  std::string_view kind() const override { return "fake"; }
  std::int32_t n_vocab() const override { return kFakeVocab; }
  std::vector<std::int32_t> encode(std::string_view, bool) const override { return {}; }
  std::string piece(std::int32_t id, bool) const override {
    return id == kFakeEnd ? std::string() : std::string(1, static_cast<char>('a' + id));
  }
  bool strips_leading_space() const override { return false; }
  TokenKind token_kind(std::int32_t id) const override {
    return id == kFakeEnd ? TokenKind::kControl : TokenKind::kNormal;
  }
  std::optional<std::int32_t> bos() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  bool is_end(std::int32_t id) const override { return id == kFakeEnd; }
  Sha256Digest digest() const override { return {}; }
};

class CollectingSink final : public StepSink {
 public:
  bool on_step(const StepRecord& step) override {
    steps.push_back(step);
    if (on_each) on_each();
    return steps.size() < stop_after;
  }
  std::string text() const {
    std::string all;
    for (const StepRecord& step : steps) all += step.piece;
    return all;
  }
  std::vector<std::int32_t> tokens() const {
    std::vector<std::int32_t> all;
    for (const StepRecord& step : steps) all.push_back(step.token);
    return all;
  }

  std::vector<StepRecord> steps;
  std::size_t stop_after = static_cast<std::size_t>(-1);
  std::function<void()> on_each;
};

}  // namespace detrun::test
