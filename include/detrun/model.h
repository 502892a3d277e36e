// A model: an architecture's shape, its weights bound on a backend, and ONE forward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/backend.h"
#include "detrun/model_file.h"

namespace detrun {

/// The shape of a model as data: read from metadata by one function per architecture.
struct ModelSpec {
  std::string arch;          ///< "llama"
  std::string name;          ///< general.name, may be empty
  std::string quantization;  ///< type that holds most weight bytes: "Q8_0", "F16"
  std::uint32_t n_layers = 0, n_embd = 0, n_ff = 0, n_vocab = 0;
  std::uint32_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::uint32_t n_ctx_train = 0;
  float rms_eps = 0;
  std::uint32_t rope_dim = 0;
  double rope_theta = 10000.0;
  std::vector<float> rope_freq_factors;  ///< (rope_dim / 2) divisors of the frequencies, or empty
  RopePairs rope_pairs = RopePairs::kAdjacent;
  bool tied_head = false;  ///< no output.weight: the embedding is the head
  std::uint64_t n_params = 0;
};

/// Architectures this build knows, for messages and `--version`.
std::vector<std::string> known_architectures();

/// Reads and checks the metadata and the shape of every tensor the architecture needs. Error
/// kUsage: a vocabulary-only file, unknown architecture or tensor type (named), missing or surplus
/// tensor, wrong shape, heads that do not divide, a vocabulary of another size than the embedding,
/// features this version lacks (rope scaling, experts, biases: named).
ModelSpec read_model_spec(const ModelFile& file);

/// Tokens that one forward pass of a prefill takes best on this machine, 64 to 512. No influence on
/// any bit.
std::uint32_t default_chunk_rows(const ModelSpec& spec);
/// The same for a shared cache of this size.
std::uint32_t default_chunk_rows(const ModelSpec& spec, std::uint64_t cache_bytes);

class Model {
 public:
  /// Bytes of weights that are bound, of all.
  using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;
  /// Binds the weights. `file` and `backend` outlive the model; `progress` is called after each
  /// tensor. Error kUsage as read_model_spec and for weights that are not finite (tensor named);
  /// Error kInternal when memory does not suffice.
  static std::unique_ptr<Model> load(
      const ModelFile& file, Backend& backend,
      const Progress& progress = [](std::uint64_t, std::uint64_t) {});
  virtual ~Model() = default;
  virtual const ModelSpec& spec() const = 0;
};

/// Most rows of logits that are handed out at once, however many are wanted: a vocabulary is wide.
inline constexpr std::uint32_t kLogitRowsMax = 64;

/// Takes the logits of many rows in blocks of at most kLogitRowsMax, in order. What `room` or
/// `filled` throws ends the forward pass as an error of its own would.
class LogitSink {
 public:
  virtual ~LogitSink() = default;
  /// Room (n_rows, n_vocab) for the block that comes next.
  virtual std::span<float> room(std::uint32_t n_rows) = 0;
  /// The room given last is filled.
  virtual void filled() = 0;
};

/// State of one request: KV cache, scratch, RoPE tables. Everything is allocated at creation;
/// the step loop allocates nothing.
class Context {
 public:
  /// n_ctx >= 1 positions; at most `max_rows` >= 1 tokens a forward (more than n_ctx counts as
  /// n_ctx). Error kUsage for zero or a context no memory could hold, kInternal when allocation
  /// fails; both say how many bytes were needed.
  static std::unique_ptr<Context> create(const Model& model, Backend& backend, std::uint32_t n_ctx,
                                         KvType kv_type, std::uint32_t max_rows);
  virtual ~Context() = default;

  virtual std::uint32_t n_ctx() const = 0;
  virtual std::uint32_t max_rows() const = 0;  ///< most tokens of one forward
  virtual std::uint32_t position() const = 0;  ///< tokens seen so far
  /// Back to an empty context; later results are those of a fresh one.
  virtual void reset() = 0;
  /// Appends tokens (at most max_rows, ids checked against the vocabulary by DETRUN_CHECK) and
  /// hands the logits of the last `logit_rows` of them to `sink`, which is not called for zero
  /// rows. DETRUN_CHECK when the context would overflow. Error kInternal as in Backend, naming the
  /// layer: the context then is where it was before, although some blocks may have been handed out.
  virtual void forward(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
                       LogitSink& sink) = 0;
  /// The same with all wanted rows in one place: `logits` (logit_rows, n_vocab).
  void forward(std::span<const std::int32_t> tokens, std::uint32_t logit_rows,
               std::span<float> logits);
  virtual const KvCache& kv_cache() const = 0;
};

}  // namespace detrun
