// A model, a context and a tokenizer without arithmetic: the logits of a position are what the test
// says, so that every way a run can end is reached on purpose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detrun/engine.h"
#include "detrun/error.h"

namespace detrun::test {

inline constexpr std::uint32_t kFakeVocab = 8;
inline constexpr std::int32_t kFakeEnd = 7;  ///< a control token that ends generation

class FakeModel final : public Model {
 public:
  explicit FakeModel(std::uint32_t n_vocab = kFakeVocab) { spec_.n_vocab = n_vocab; }
  const ModelSpec& spec() const override { return spec_; }

 private:
  ModelSpec spec_;
};

/// Chooses (last token + 1) modulo the vocabulary unless `script` says otherwise.
class FakeContext final : public Context {
 public:
  FakeContext(std::uint32_t n_ctx, std::uint32_t max_rows, std::uint32_t n_vocab = kFakeVocab)
      : n_ctx_(n_ctx), max_rows_(max_rows), n_vocab_(n_vocab) {}

  std::uint32_t n_ctx() const override { return n_ctx_; }
  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t position() const override { return static_cast<std::uint32_t>(seen.size()); }
  void reset() override { seen.clear(); }
  void forward(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
               LogitSink& sink) override {
    calls.emplace_back(tokens.size(), logit_rows);
    for (const std::int32_t token : tokens) {
      if (token < 0 || static_cast<std::uint32_t>(token) >= n_vocab_) {
        throw std::logic_error("a token outside the vocabulary was fed");
      }
    }
    const std::size_t before = seen.size();
    try {
      seen.insert(seen.end(), tokens.begin(), tokens.end());
      if (fails_at && *fails_at >= before && *fails_at < seen.size()) {
        throw Error(ExitCode::kInternal,
                    "layer 1: row " + std::to_string(*fails_at - before) + " of " +
                        std::to_string(tokens.size()) + " is bad",
                    "do that");
      }
      if (on_forward && (logit_rows > 0 || on_every_forward)) on_forward();
      hand_over(logit_rows, sink);
    } catch (...) {
      seen.resize(before);
      throw;
    }
  }
  const KvCache& kv_cache() const override { throw std::logic_error("a fake has no cache"); }

  std::vector<std::int32_t> seen;
  std::size_t block_rows = kLogitRowsMax;    ///< rows handed over at once
  bool on_every_forward = false;             ///< on_forward hears of forwards without logits too
  std::optional<std::size_t> fails_at;       ///< position that no layer can compute
  std::optional<std::size_t> head_fails_at;  ///< position whose block of logits cannot be computed
  std::vector<std::pair<std::size_t, std::uint32_t>> calls;     ///< tokens, logit rows
  std::function<void(std::uint32_t, std::span<float>)> script;  ///< tokens seen, row to change
  std::function<void()> on_forward;

 private:
  void hand_over(std::size_t n_rows, LogitSink& sink) const {
    for (std::size_t row = seen.size() - n_rows; row < seen.size();) {
      const std::size_t n = std::min(block_rows, seen.size() - row);
      if (head_fails_at && *head_fails_at >= row && *head_fails_at < row + n) {
        throw Error(ExitCode::kInternal, "output head: bad");
      }
      const std::span<float> room = sink.room(static_cast<std::uint32_t>(n));
      for (std::size_t i = 0; i < n; ++i, ++row) {
        const std::span<float> logits = room.subspan(i * n_vocab_, n_vocab_);
        std::fill(logits.begin(), logits.end(), 0.0F);
        logits[static_cast<std::size_t>(seen[row] + 1) % n_vocab_] = 1.0F;
        if (script) script(static_cast<std::uint32_t>(row + 1), logits);
      }
      sink.filled();
    }
  }

  std::uint32_t n_ctx_, max_rows_, n_vocab_;
};

/// Token i is the letter 'a' + i, from 'a' again after 'z'; token 7 is the end and has no bytes.
class FakeTokenizer : public Tokenizer {
 public:
  explicit FakeTokenizer(std::uint32_t n_vocab = kFakeVocab)
      : n_vocab_(static_cast<std::int32_t>(n_vocab)) {}
  std::string_view kind() const override { return "fake"; }
  std::int32_t n_vocab() const override { return n_vocab_; }
  std::vector<std::int32_t> encode(std::string_view, bool) const override { return {}; }
  std::string piece(std::int32_t id, bool) const override {
    return id == kFakeEnd ? std::string() : std::string(1, static_cast<char>('a' + id % 26));
  }
  bool strips_leading_space() const override { return false; }
  TokenKind token_kind(std::int32_t id) const override {
    return id == kFakeEnd ? TokenKind::kControl : TokenKind::kNormal;
  }
  std::optional<std::int32_t> bos() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  bool is_end(std::int32_t id) const override { return id == kFakeEnd; }
  Sha256Digest digest() const override { return {}; }

 private:
  std::int32_t n_vocab_;
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
