// See bench_work.h. What is timed is the code that record and replay run, not a copy of it.
#include "run/bench_work.h"

#include <algorithm>

#include "detrun/compare.h"
#include "detrun/error.h"
#include "detrun/log.h"
#include "run/ledger_sink.h"
#include "run/memory_store.h"
#include "run/profile.h"
#include "run/prompt.h"
#include "run/recording.h"
#include "run/start_fields.h"

namespace detrun {
namespace {

/// Ids between 3 and the end of the vocabulary: spread, always the same. End tokens are prompt
/// tokens like any other; only a chosen one ends a run.
std::int32_t spread_token(std::uint32_t index, std::uint32_t n_vocab) {
  constexpr std::uint64_t kStride = 2654435761U;  // golden ratio of 2^32
  constexpr std::uint32_t kSpecial = 3;
  if (n_vocab <= kSpecial) return static_cast<std::int32_t>(index % n_vocab);
  return static_cast<std::int32_t>(kSpecial + index * kStride % (n_vocab - kSpecial));
}

class KeepSteps final : public StepSink {
 public:
  bool on_step(const StepRecord& step) override {
    steps_.push_back(step);
    return true;
  }
  std::vector<StepRecord> take() { return std::move(steps_); }

 private:
  std::vector<StepRecord> steps_;
};

/// Compares as replay does. Whoever times a replay that differs times something else.
class SameSteps final : public StepSink {
 public:
  explicit SameSteps(std::span<const StepRecord> expected) : expected_(expected) {}

  bool on_step(const StepRecord& step) override {
    if (step.index >= expected_.size() || !comparer_.compare(expected_[step.index], step)) {
      return false;
    }
    ++n_steps_;
    return true;
  }

  void require_all() const {
    if (comparer_.equal() && n_steps_ == expected_.size()) return;
    throw_internal("a replay made by bench differs from its run: " +
                       (comparer_.equal() ? "it ended at step " + std::to_string(n_steps_)
                                          : comparer_.describe()),
                   "this is a fault of the program or the machine; please report it");
  }

 private:
  std::span<const StepRecord> expected_;
  StepComparer comparer_;
  std::uint64_t n_steps_ = 0;
};

std::uint32_t context_needed(const BenchOptions& options) {
  const std::uint64_t positions =
      std::max<std::uint64_t>(kBenchRows, std::uint64_t{kBenchPromptTokens} + options.n);
  if (options.ctx != 0 && options.ctx < positions) {
    throw_usage("--ctx " + std::to_string(options.ctx) + " is too short: the measurements need " +
                    std::to_string(positions) + " positions",
                "leave --ctx out, or give fewer steps with -n");
  }
  return options.ctx != 0 ? options.ctx : static_cast<std::uint32_t>(positions);
}

std::span<const std::byte> bytes_before_tensors(const ModelFile& file) {
  const std::byte* first = file.tensors()[0].data.data();
  return file.bytes().first(static_cast<std::size_t>(first - file.bytes().data()));
}

}  // namespace

BenchWork::BenchWork(const BenchOptions& options, const std::atomic<bool>& cancel,
                     Observer& observer, BenchReport& report)
    : options_(options), cancel_(cancel) {
  report.ctx = context_needed(options);
  std::unique_ptr<Backend> backend = open_backend(options.engine);
  const BackendInfo& info = backend->info();
  report.threads = info.n_threads;
  report.backend = info.name;
  if (info.device) report.device = info.device->name;
  require_profile(*backend, options.numerics);
  backend_ = std::make_unique<TracingBackend>(std::move(backend));
  const std::string path =
      options.shape.empty() ? options.model_path : make_synthetic(options, observer, report);
  if (cancel) return;
  load(path, options, observer, report);
}

/// A device that can makes the matrices, where they will lie; otherwise the host does, with all of
/// it where a device computes. Their values are the same.
std::string BenchWork::make_synthetic(const BenchOptions& options, Observer& observer,
                                      BenchReport& report) {
  const BackendInfo& info = backend_->info();
  const std::vector<SyntheticTensor> tensors = synthetic_tensors(options.shape, options.type);
  report.synthetic = true;
  report.made_on_device =
      std::all_of(tensors.begin(), tensors.end(), [&](const SyntheticTensor& tensor) {
        return tensor.n_rows == 1 || backend_->makes_up(tensor.type);
      });
  if (report.made_on_device) backend_->make_weights_up();
  const auto makers =
      info.device ? static_cast<std::uint32_t>(allowed_cpus().size()) : info.n_threads;
  synthetic_ = std::make_unique<SyntheticModel>(
      options.shape, options.type, makers, cancel_, observer,
      report.made_on_device ? SyntheticBytes::kNoMatrices : SyntheticBytes::kAll);
  return synthetic_->path();
}

void BenchWork::load(const std::string& path, const BenchOptions& options, Observer& observer,
                     BenchReport& report) {
  if (!report.made_on_device) {
    const std::unique_ptr<ModelFile> file = ModelFile::open(path);
    if (!report.synthetic) sha256(file->bytes());  // brings the file into memory
    const Stopwatch watch;
    sha256(file->bytes());
    report.sha256_s = watch.seconds();
  }
  reset_peak_rss();
  const Stopwatch watch;
  model_.file = ModelFile::open(path);
  report.file_bytes = model_.file->bytes().size();
  // Bytes that nobody made are not hashed: those before them stand for the model.
  late_ = report.made_on_device ? std::make_unique<LateFacts>(
                                      *model_.file, sha256(bytes_before_tensors(*model_.file)))
                                : std::make_unique<LateFacts>(*model_.file);
  model_.bind(*backend_, observer);
  late_->model(observer);
  report.load_s = watch.seconds();
  late_->host();

  const ModelSpec& spec = model_.model->spec();
  TestedProducts tested;
  plan_ =
      start_profile(*backend_, options.numerics,
                    chunk_rows(options.engine.chunk, spec, report.ctx, backend_->info()), tested);
  context_ = open_context(*model_.model, *backend_, report.ctx, KvType::kF16, options.engine.chunk);
  logits_.resize(spec.n_vocab);
  report.chunk = context_->max_rows();
  report.model_name = spec.name;
  report.arch = spec.arch;
  report.quantization = spec.quantization;
  report.n_params = spec.n_params;
  constexpr std::uint64_t kHalf = 2;
  report.kv_bytes =
      kHalf * 2 * spec.n_layers * report.ctx * std::uint64_t{spec.n_kv_heads} * spec.head_dim;
}

std::vector<std::int32_t> BenchWork::tokens(std::uint32_t count) const {
  std::vector<std::int32_t> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    out.push_back(spread_token(i, model_.model->spec().n_vocab));
  }
  return out;
}

Timed BenchWork::decode() {
  context_->reset();
  const std::vector<std::int32_t> ids = tokens(kBenchPromptTokens + options_.n);
  const std::span<const std::int32_t> all(ids);
  for (std::uint32_t i = 0; i < kBenchPromptTokens; ++i) {
    context_->forward(all.subspan(i, 1), 1, logits_);
  }
  const Stopwatch watch;
  for (std::uint32_t i = kBenchPromptTokens; i < ids.size(); ++i) {
    context_->forward(all.subspan(i, 1), 1, logits_);
  }
  return {options_.n, watch.seconds(), watch.cpu_share(n_threads())};
}

Timed BenchWork::prefill(std::uint32_t rows) {
  context_->reset();
  const std::vector<std::int32_t> ids = tokens(rows);
  const std::span<const std::int32_t> all(ids);
  const Stopwatch watch;
  for (std::uint32_t at = 0; at < rows;) {
    const std::uint32_t n = std::min(context_->max_rows(), rows - at);
    const std::uint32_t wanted = at + n == rows ? 1 : 0;
    context_->forward(all.subspan(at, n), wanted,
                      std::span(logits_).first(wanted * logits_.size()));
    at += n;
  }
  return {rows, watch.seconds(), watch.cpu_share(n_threads())};
}

Timed BenchWork::record(bool with_ledger) {
  if (with_ledger && !ledger_) {
    ledger_ = Ledger::open_for_recording(folder_.path() + "/bench.db");
  }
  RecordOptions options;
  options.model_path = model_.file->path();
  options.prompt_source = "tokens";
  options.tokens = tokens(kBenchPromptTokens);
  options.n = options_.n;
  options.engine = options_.engine;
  options.numerics = options_.numerics;
  const Prompt prompt = prepare_prompt(options, *model_.tokenizer);
  FieldMap fields =
      start_fields(options, model_, backend_->info(), plan_, prompt, context_->n_ctx());
  std::unique_ptr<RunStore> store;
  if (with_ledger) {
    store = std::make_unique<LedgerSink>(*ledger_, ledger_->begin_run(fields));
  } else {
    store = std::make_unique<MemoryStore>(std::move(fields));
  }
  context_->reset();
  Observer nobody;
  Recording recording(*store, *late_, nobody);
  const Stopwatch watch;
  const RecordReport report = recording.run(*context_, model_, {prompt.tokens, options.n}, cancel_);
  const double share = watch.cpu_share(n_threads());
  return {prompt.tokens.size() + report.steps - 1, report.prefill_s + report.decode_s, share};
}

std::vector<StepRecord> BenchWork::generate_steps(std::uint32_t prompt_tokens,
                                                  std::uint64_t n_steps) {
  recorded_prompt_ = tokens(prompt_tokens);
  context_->reset();
  KeepSteps sink;
  generate(*context_, *model_.model, *model_.tokenizer, {recorded_prompt_, n_steps}, cancel_, sink);
  return sink.take();
}

bool BenchWork::make_recorded(bool whole) {
  const std::uint64_t wanted = whole ? kBenchRows - kBenchPromptTokens + 1 : options_.n;
  recorded_ = generate_steps(kBenchPromptTokens, wanted);
  if (whole && recorded_.size() < wanted && recorded_.size() > 1) {
    // The model ends early: a longer prompt makes up for the rows.
    const auto longer = static_cast<std::uint32_t>(kBenchRows + 1 - recorded_.size());
    const std::vector<std::int32_t> short_prompt = recorded_prompt_;
    std::vector<StepRecord> short_run = recorded_;
    recorded_ = generate_steps(longer, kBenchRows + 1 - longer);
    if (recorded_.size() < 2) {
      recorded_ = std::move(short_run);
      recorded_prompt_ = short_prompt;
    }
  }
  return recorded_.size() > 1;
}

Timed BenchWork::replay_step() {
  const std::size_t n = std::min<std::size_t>(options_.n, recorded_.size());
  SameSteps sink(std::span<const StepRecord>(recorded_).first(n));
  context_->reset();
  const Stopwatch watch;
  generate(*context_, *model_.model, *model_.tokenizer, {recorded_prompt_, n}, cancel_, sink);
  const Timed timed = {recorded_prompt_.size() + n - 1, watch.seconds(),
                       watch.cpu_share(n_threads())};
  if (!cancel_) sink.require_all();
  return timed;
}

Timed BenchWork::replay_parallel() {
  std::vector<std::int32_t> chosen;
  for (const StepRecord& step : recorded_) chosen.push_back(step.token);
  SameSteps sink(recorded_);
  context_->reset();
  const Stopwatch watch;
  teacher_force(*context_, *model_.model, *model_.tokenizer, {recorded_prompt_, chosen.size()},
                chosen, cancel_, sink);
  const Timed timed = {recorded_prompt_.size() + chosen.size() - 1, watch.seconds(),
                       watch.cpu_share(n_threads())};
  if (!cancel_) sink.require_all();
  return timed;
}

double BenchWork::repeat_products(const MatmulTrace& trace) {
  const Stopwatch watch;
  trace.repeat(*backend_);
  return watch.seconds();
}

std::uint64_t BenchWork::cache_bytes_per_step() const {
  const ModelSpec& spec = model_.model->spec();
  constexpr std::uint64_t kKeyAndValue = 2;
  constexpr std::uint64_t kHalf = 2;
  const std::uint64_t positions = kBenchPromptTokens + options_.n / 2;
  return kKeyAndValue * kHalf * spec.n_layers * positions * spec.n_kv_heads * spec.head_dim;
}

}  // namespace detrun
