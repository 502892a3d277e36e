// THE forward pass, one for all architectures and all backends, and the state of one request.
// It calls Backend and nothing else; rows are independent, so chunks have no influence on bits.
// Everything is allocated when the Context is created.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/error.h"
#include "detrun/model.h"
#include "model/weights.h"

namespace detrun {
namespace {

/// Sums of products that remember whether they left 64 bits.
class ByteCount {
 public:
  void add(std::initializer_list<std::uint64_t> factors) {
    std::uint64_t product = 1;
    for (const std::uint64_t factor : factors) {
      overflow_ = overflow_ || __builtin_mul_overflow(product, factor, &product);
    }
    overflow_ = overflow_ || __builtin_add_overflow(total_, product, &total_);
  }
  std::optional<std::uint64_t> total() const {
    return overflow_ ? std::nullopt : std::optional(total_);
  }

 private:
  std::uint64_t total_ = 0;
  bool overflow_ = false;
};

std::optional<std::uint64_t> context_bytes(const ModelSpec& spec, std::uint32_t n_ctx,
                                           KvType kv_type, std::uint32_t rows,
                                           std::uint64_t scratch) {
  const std::uint64_t q_dim = std::uint64_t{spec.n_heads} * spec.head_dim;
  const std::uint64_t kv_dim = std::uint64_t{spec.n_kv_heads} * spec.head_dim;
  const std::uint64_t row_floats = 3ULL * spec.n_embd + 2 * q_dim + 2 * kv_dim + 2ULL * spec.n_ff;
  const std::uint64_t head_rows = std::min(rows, kLogitRowsMax);
  ByteCount bytes;
  bytes.add({scratch});
  bytes.add({2, spec.n_layers, n_ctx, kv_dim, kv_type == KvType::kF16 ? 2U : 4U});
  bytes.add({4, n_ctx, spec.rope_dim / 2, sizeof(float)});  // on the host and on the device
  bytes.add({rows, row_floats, sizeof(float)});
  bytes.add({head_rows, std::uint64_t{spec.n_vocab} + 3ULL * spec.n_embd, sizeof(float)});
  return bytes.total();
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes >> 20U) + 1) + " MiB"; }

PassShape pass_shape(const ModelSpec& spec, std::uint32_t n_ctx, std::uint32_t rows) {
  const std::uint64_t q_dim = std::uint64_t{spec.n_heads} * spec.head_dim;
  const std::uint64_t widest = std::max<std::uint64_t>({spec.n_embd, spec.n_ff, q_dim});
  return {rows, n_ctx, widest, spec.n_heads, spec.head_dim};
}

/// Contract clause 6: computed in binary64, rounded once.
float attention_scale(std::uint32_t head_dim) {
  const FpControlScope fp_control;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

class ModelContext final : public Context {
 public:
  ModelContext(const BoundModel& model, Backend& backend, std::uint32_t n_ctx, KvType kv_type,
               std::uint32_t max_rows);

  std::uint32_t n_ctx() const override { return n_ctx_; }
  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t position() const override { return position_; }
  void reset() override { position_ = 0; }
  void forward(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
               LogitSink& sink) override;
  const KvCache& kv_cache() const override { return *kv_; }

 private:
  void pass(std::span<const std::int32_t> tokens, std::uint32_t logit_rows, LogitSink& sink);
  [[noreturn]] void place_error(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
                                const Error& unplaced);
  void attention_block(const LayerWeights& layer, std::uint32_t index, std::uint32_t rows);
  void ffn_block(const LayerWeights& layer, std::uint32_t rows);
  void head(const Buffer& x, std::uint32_t rows);
  void hand_over(std::uint32_t rows, LogitSink& sink);
  void last_rows(std::uint32_t rows, std::uint32_t logit_rows, LogitSink& sink);

  const BoundModel& model_;
  const ModelSpec& spec_;
  Backend& backend_;
  std::uint32_t n_ctx_, max_rows_, head_rows_;
  std::uint32_t position_ = 0;
  AttentionParams attention_params_;
  std::unique_ptr<KvCache> kv_;
  std::unique_ptr<Buffer> rope_cos_, rope_sin_;  // (n_ctx, rope_dim / 2)
  std::unique_ptr<Buffer> x_;                    // (max_rows, n_embd): the residual stream
  std::unique_ptr<Buffer> normed_;               // (max_rows, n_embd)
  std::unique_ptr<Buffer> projected_;            // (max_rows, n_embd): what a block adds to x
  std::unique_ptr<Buffer> q_, attended_;         // (max_rows, n_heads * head_dim)
  std::unique_ptr<Buffer> k_, v_;                // (max_rows, n_kv_heads * head_dim)
  std::unique_ptr<Buffer> gate_, up_;            // (max_rows, n_ff)
  std::unique_ptr<Buffer> head_x_;               // (head_rows, n_embd): rows whose logits we want
  std::unique_ptr<Buffer> head_normed_;          // (head_rows, n_embd)
  std::unique_ptr<Buffer> logits_;               // (head_rows, n_vocab)
  std::unique_ptr<PassMemory> pass_memory_;      // may point to all of the above
  std::vector<float> host_rows_;                 // (head_rows, n_embd)
};

ModelContext::ModelContext(const BoundModel& model, Backend& backend, std::uint32_t n_ctx,
                           KvType kv_type, std::uint32_t max_rows)
    : model_(model),
      spec_(model.spec()),
      backend_(backend),
      n_ctx_(n_ctx),
      max_rows_(max_rows),
      head_rows_(std::min(max_rows, kLogitRowsMax)),
      attention_params_{spec_.n_heads, spec_.n_kv_heads, spec_.head_dim,
                        attention_scale(spec_.head_dim)} {
  const std::uint64_t q_dim = std::uint64_t{spec_.n_heads} * spec_.head_dim;
  const std::uint64_t kv_dim = std::uint64_t{spec_.n_kv_heads} * spec_.head_dim;
  const auto rows_of = [&](std::uint64_t width) { return backend.new_buffer(max_rows_ * width); };
  kv_ = backend.new_kv_cache({kv_type, spec_.n_layers, n_ctx_, spec_.n_kv_heads, spec_.head_dim});
  x_ = rows_of(spec_.n_embd);
  normed_ = rows_of(spec_.n_embd);
  projected_ = rows_of(spec_.n_embd);
  q_ = rows_of(q_dim);
  attended_ = rows_of(q_dim);
  k_ = rows_of(kv_dim);
  v_ = rows_of(kv_dim);
  gate_ = rows_of(spec_.n_ff);
  up_ = rows_of(spec_.n_ff);
  const std::uint64_t head_floats = std::uint64_t{head_rows_} * spec_.n_embd;
  head_x_ = backend.new_buffer(head_floats);
  head_normed_ = backend.new_buffer(head_floats);
  logits_ = backend.new_buffer(std::uint64_t{head_rows_} * spec_.n_vocab);
  host_rows_.resize(head_floats);

  const std::uint64_t table_floats = std::uint64_t{n_ctx_} * (spec_.rope_dim / 2);
  std::vector<float> cos(table_floats), sin(table_floats);
  make_rope_tables({spec_.rope_dim, spec_.rope_theta, spec_.rope_freq_factors}, n_ctx_, cos, sin);
  rope_cos_ = backend.new_buffer(table_floats);
  rope_sin_ = backend.new_buffer(table_floats);
  backend.upload(*rope_cos_, cos);
  backend.upload(*rope_sin_, sin);
  backend.reserve(pass_shape(spec_, n_ctx_, max_rows_));
  pass_memory_ = backend.new_pass_memory();
}

void ModelContext::attention_block(const LayerWeights& layer, std::uint32_t index,
                                   std::uint32_t rows) {
  const RopeParams rope = {spec_.rope_pairs, spec_.rope_dim, rope_cos_.get(), rope_sin_.get()};
  backend_.rmsnorm(*x_, *layer.attn_norm, spec_.rms_eps, rows, spec_.n_embd, *normed_);
  const std::array qkv = {MatmulTask{layer.attn_q.get(), q_.get()},
                          MatmulTask{layer.attn_k.get(), k_.get()},
                          MatmulTask{layer.attn_v.get(), v_.get()}};
  backend_.matmul(qkv, *normed_, rows);
  backend_.rope(*q_, rope, rows, spec_.n_heads, spec_.head_dim, position_);
  backend_.rope(*k_, rope, rows, spec_.n_kv_heads, spec_.head_dim, position_);
  backend_.kv_write(*kv_, index, *k_, *v_, rows, position_);
  backend_.attention(*q_, *kv_, index, attention_params_, rows, position_, *attended_);
  const std::array output = {MatmulTask{layer.attn_output.get(), projected_.get()}};
  backend_.matmul(output, *attended_, rows);
  backend_.add(*x_, *projected_, std::uint64_t{rows} * spec_.n_embd);
}

void ModelContext::ffn_block(const LayerWeights& layer, std::uint32_t rows) {
  backend_.rmsnorm(*x_, *layer.ffn_norm, spec_.rms_eps, rows, spec_.n_embd, *normed_);
  const std::array gate_up = {MatmulTask{layer.ffn_gate.get(), gate_.get()},
                              MatmulTask{layer.ffn_up.get(), up_.get()}};
  backend_.matmul(gate_up, *normed_, rows);
  backend_.silu_mul(*gate_, *up_, std::uint64_t{rows} * spec_.n_ff);
  const std::array down = {MatmulTask{layer.ffn_down.get(), projected_.get()}};
  backend_.matmul(down, *gate_, rows);
  backend_.add(*x_, *projected_, std::uint64_t{rows} * spec_.n_embd);
}

/// Norm and head of the first rows of x, at most head_rows_.
void ModelContext::head(const Buffer& x, std::uint32_t rows) {
  const std::array task = {MatmulTask{&model_.head(), logits_.get()}};
  backend_.rmsnorm(x, model_.output_norm(), spec_.rms_eps, rows, spec_.n_embd, *head_normed_);
  backend_.matmul(task, *head_normed_, rows);
}

void ModelContext::hand_over(std::uint32_t rows, LogitSink& sink) {
  const std::span<float> room = sink.room(rows);
  DETRUN_CHECK(room.size() == rows * std::uint64_t{spec_.n_vocab});
  backend_.download(*logits_, 0, room);
  sink.filled();
}

/// Logits of the last `logit_rows` of `rows`, which are moved to the front first, because operators
/// start at row 0.
void ModelContext::last_rows(std::uint32_t rows, std::uint32_t logit_rows, LogitSink& sink) {
  const std::uint64_t n_embd = spec_.n_embd;
  for (std::uint32_t done = 0; done < logit_rows;) {
    const std::uint32_t n = std::min(head_rows_, logit_rows - done);
    const std::span<float> moved = std::span(host_rows_).first(n * n_embd);
    backend_.download(*x_, (rows - logit_rows + done) * n_embd, moved);
    backend_.upload(*head_x_, moved);
    head(*head_x_, n);
    hand_over(n, sink);
    done += n;
  }
}

void ModelContext::pass(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
                        LogitSink& sink) {
  const auto rows = static_cast<std::uint32_t>(tokens.size());
  const bool in_place = logit_rows == rows && rows <= head_rows_;
  backend_.embed(model_.token_embd(), tokens, *x_);
  std::string_view part;  // that an operator fails in; a device may do a pass without them
  std::uint32_t layer = 0;
  const auto operators = [&] {
    part = "layer ";
    for (; layer < spec_.n_layers; ++layer) {
      attention_block(model_.layers()[layer], layer, rows);
      ffn_block(model_.layers()[layer], rows);
    }
    part = "output head";
    if (in_place) head(*x_, rows);
  };
  try {
    const PassAt at{kv_.get(), rows, position_, in_place};
    backend_.run_pass(pass_memory_.get(), at, std::ref(operators));  // allocates nothing
    part = "output head";
    if (in_place) {
      hand_over(rows, sink);
    } else {
      last_rows(rows, logit_rows, sink);
    }
    if (logit_rows == 0) backend_.synchronize();  // nothing that fails goes on
  } catch (const Error& error) {
    std::string where(part);
    if (part == "layer ") where += std::to_string(layer);
    throw Error(error.kind(), (where.empty() ? "" : where + ": ") + error.what(), error.hint());
  }
}

/// Logits that nobody wants.
class NoPlace final : public LogitSink {
 public:
  explicit NoPlace(std::uint64_t n_vocab) : n_vocab_(n_vocab) {}
  std::span<float> room(std::uint32_t n_rows) override {
    logits_.resize(n_rows * n_vocab_);
    return logits_;
  }
  void filled() override {}

 private:
  std::uint64_t n_vocab_;
  std::vector<float> logits_;
};

/// The pass has failed: the same again, at a pace at which operators see their own errors. It
/// writes the values that it wrote before.
void ModelContext::place_error(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
                               const Error& unplaced) {
  NoPlace nowhere(spec_.n_vocab);
  backend_.place_errors(true);
  try {
    pass(tokens, logit_rows, nowhere);
  } catch (...) {
    backend_.place_errors(false);
    throw;
  }
  backend_.place_errors(false);
  throw_internal(std::string(unplaced.what()) + ", but not when it was computed again",
                 "the device does not compute reliably");
}

void ModelContext::forward(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
                           LogitSink& sink) {
  DETRUN_CHECK(!tokens.empty() && tokens.size() <= max_rows_);
  DETRUN_CHECK(tokens.size() <= n_ctx_ - position_);
  DETRUN_CHECK(logit_rows <= tokens.size());
  for (const std::int32_t token : tokens) {
    DETRUN_CHECK(token >= 0 && static_cast<std::uint32_t>(token) < spec_.n_vocab);
  }
  try {
    pass(tokens, logit_rows, sink);
  } catch (const Error& error) {
    if (!backend_.has_unplaced_error()) throw;
    place_error(tokens, logit_rows, error);
  }
  position_ += static_cast<std::uint32_t>(tokens.size());
}

/// All wanted rows in one place, block after block.
class OnePlace final : public LogitSink {
 public:
  OnePlace(std::span<float> logits, std::uint64_t n_vocab) : rest_(logits), n_vocab_(n_vocab) {}
  std::span<float> room(std::uint32_t n_rows) override {
    const std::span<float> block = rest_.first(n_rows * n_vocab_);
    rest_ = rest_.subspan(block.size());
    return block;
  }
  void filled() override {}

 private:
  std::span<float> rest_;
  std::uint64_t n_vocab_;
};

}  // namespace

void Context::forward(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
                      std::span<float> logits) {
  DETRUN_CHECK(logit_rows == 0 ? logits.empty() : logits.size() % logit_rows == 0);
  OnePlace sink(logits, logit_rows == 0 ? 0 : logits.size() / logit_rows);
  forward(tokens, logit_rows, sink);
}

std::unique_ptr<Context> Context::create(const Model& model, Backend& backend, std::uint32_t n_ctx,
                                         KvType kv_type, std::uint32_t max_rows) {
  const auto* bound = dynamic_cast<const BoundModel*>(&model);
  DETRUN_CHECK(bound != nullptr && max_rows >= 1);
  if (n_ctx == 0) throw_usage("a context of 0 positions holds nothing", "use --ctx 1 or more");
  const std::uint32_t rows = std::min(max_rows, n_ctx);
  const std::string what = "a context of " + std::to_string(n_ctx) + " positions";
  // Asked before allocating: memory that a system promises and cannot give ends the process without
  // a word, and a run that has begun should not end for a lack that was there before.
  const BackendMemory memory = backend.memory();
  const std::uint64_t scratch = backend.scratch_bytes(pass_shape(model.spec(), n_ctx, rows));
  const auto bytes = context_bytes(model.spec(), n_ctx, kv_type, rows, scratch);
  if (!bytes || *bytes > memory.total) {
    throw_usage(what + " needs " + (bytes ? mebibytes(*bytes) : "more than 2^64 bytes") +
                    " of memory, there are " + mebibytes(memory.total) + memory.where,
                "use a smaller --ctx or --chunk");
  }
  const std::string needs = "not enough memory: " + what + " needs " + mebibytes(*bytes);
  if (*bytes > memory.free) {
    throw_internal(
        needs + " beside the weights, " + mebibytes(memory.free) + " are free" + memory.where,
        "use a smaller --ctx or --chunk");
  }
  try {
    return std::make_unique<ModelContext>(*bound, backend, n_ctx, kv_type, rows);
  } catch (const std::bad_alloc&) {
    throw_internal(needs, "use a smaller --ctx or --chunk");
  } catch (const std::length_error&) {
    throw_internal(needs, "use a smaller --ctx or --chunk");
  }
}

}  // namespace detrun
