// The use case `stress`: one prompt, many runs, every run in another configuration of threads,
// chunk, instruction set, state of the context and mode; how many distinct outputs, and where the
// others leave the first. One context at a time; weights once per instruction set. Prints nothing.
#include "run/stress.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "detrun/backend.h"
#include "detrun/compare.h"
#include "detrun/engine.h"
#include "detrun/error.h"
#include "run/loaded_model.h"
#include "run/prompt.h"

namespace detrun {
namespace {

constexpr std::uint32_t kThreadsVaried = 8;
constexpr std::uint64_t kDirtySteps = 3;

void check_names(const char* axis, const std::vector<std::string>& names,
                 std::initializer_list<std::string_view> known) {
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string_view one : known) list += (list.empty() ? "" : ", ") + std::string(one);
    throw_usage("unknown " + std::string(axis) + " '" + name + "'", "known are " + list);
  }
}

void check_options(const StressOptions& options) {
  if (options.model_path.empty()) throw_usage("no model is given", "use -m MODEL.gguf");
  if (!kv_type_by_name(options.kv)) {
    throw_usage("unknown type of the KV cache '" + options.kv + "'", "known are f16 and f32");
  }
  if (options.runs == 0) throw_usage("0 runs show nothing", "use --runs 1 or more");
  check_names("state", options.states, {"fresh", "reused"});
  check_names("mode", options.modes, {"step", "parallel"});
  for (const std::uint32_t chunk : options.chunks) {
    if (chunk == 0) throw_usage("a chunk of 0 tokens computes nothing", "use --chunk 1 or more");
  }
}

/// Fills every empty axis with its default. Chunks longer than the context are the whole prompt.
StressOptions with_defaults(StressOptions options, std::uint32_t n_ctx) {
  if (options.threads.empty()) {
    for (std::uint32_t n = 1; n <= kThreadsVaried; ++n) options.threads.push_back(n);
  }
  if (options.chunks.empty()) options.chunks = {1, 2, 3, 7, 8, 63, 64, 65, 512, n_ctx};
  for (std::uint32_t& chunk : options.chunks) chunk = std::min(chunk, n_ctx);
  if (options.isas.empty()) options.isas = available_cpu_isas();
  if (options.states.empty()) options.states = {"fresh", "reused"};
  if (options.modes.empty()) options.modes = {"step", "parallel"};
  return options;
}

/// A backend for every (instruction set, threads) and one set of weights for every instruction
/// set, both made when first used: weights are plain memory that all backends of one set read.
class Machines {
 public:
  Machines(const ModelFile& file, BackendFactory make_backend)
      : file_(file), make_backend_(std::move(make_backend)) {}

  Backend& backend(const StressConfig& config) {
    std::unique_ptr<Backend>& backend = backends_[{config.isa, config.threads}];
    if (!backend) backend = make_backend_({.n_threads = config.threads, .isa = config.isa});
    return *backend;
  }
  const Model& model(const StressConfig& config) {
    std::unique_ptr<Model>& model = models_[config.isa];
    if (!model) model = Model::load(file_, backend(config));
    return *model;
  }

 private:
  const ModelFile& file_;
  BackendFactory make_backend_;
  std::map<std::pair<std::string, std::uint32_t>, std::unique_ptr<Backend>> backends_;
  std::map<std::string, std::unique_ptr<Model>> models_;
};

/// Takes the steps of a run: chains them, and compares them with those of run 0 when there are any.
class StressSteps final : public StepSink {
 public:
  explicit StressSteps(const std::vector<StepRecord>* reference) : reference_(reference) {}

  bool on_step(const StepRecord& step) override {
    chain_.add(step);
    ++n_steps_;
    if (reference_ == nullptr) {
      kept_.push_back(step);
      return true;
    }
    if (step.index >= reference_->size()) {
      comparer_.length_differs(step.index, std::nullopt, step.token);
      return false;
    }
    return comparer_.compare((*reference_)[step.index], step);
  }

  /// After the last step: a run that ended early differs too.
  void finish() {
    if (reference_ == nullptr || n_steps_ >= reference_->size()) return;
    if (comparer_.first_token_difference()) return;
    comparer_.length_differs(n_steps_, (*reference_)[n_steps_].token, std::nullopt);
  }

  Sha256Digest chain() { return chain_.finish(); }
  const StepComparer& comparer() const { return comparer_; }
  std::vector<StepRecord> take_steps() { return std::move(kept_); }

 private:
  const std::vector<StepRecord>* reference_;
  std::vector<StepRecord> kept_;
  StepChain chain_;
  StepComparer comparer_;
  std::uint64_t n_steps_ = 0;
};

class IgnoreSteps final : public StepSink {
 public:
  bool on_step(const StepRecord&) override { return true; }
};

class StressTest {
 public:
  StressTest(const StressOptions& options, BackendFactory make_backend,
             const std::atomic<bool>& cancel, Observer& observer)
      : cancel_(cancel), observer_(observer), file_(ModelFile::open(options.model_path)) {
    const ModelSpec spec = read_model_spec(*file_);
    tokenizer_ = Tokenizer::create(*file_);
    RecordOptions record;
    record.prompt = options.prompt;
    record.tokens = options.tokens;
    prompt_ = prepare_prompt(record, *tokenizer_).tokens;
    // No longer than this prompt and its tokens can fill: contexts are made again for every run.
    const std::uint32_t n_ctx = choose_context(options.ctx, spec);
    check_prompt_fits(prompt_.size(), n_ctx, spec.n_ctx_train);
    n_ctx_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(n_ctx, prompt_.size() + std::max<std::uint64_t>(options.n, 1)));
    options_ = with_defaults(options, n_ctx_);
    kv_type_ = *kv_type_by_name(options_.kv);
    machines_ = std::make_unique<Machines>(*file_, std::move(make_backend));
  }

  StressReport run() {
    const std::vector<StressConfig> plan = stress_plan(options_);
    const StressConfig first = {options_.isas[0], options_.threads[0], options_.chunks[0], "fresh",
                                "step"};
    StressReport report;
    for (std::uint64_t i = 0; i < options_.runs && !cancel_; ++i) {
      const StressConfig& config = i == 0 ? first : plan[(i - 1) % plan.size()];
      observer_.on_progress("stress", i, options_.runs, "runs");
      if (run_named(i, config, report)) ++report.runs;
    }
    file_->check_unchanged();
    report.steps = reference_.size();
    // Run 0 is one of the plan's configurations where the axes allow it.
    const std::uint64_t planned =
        std::min<std::uint64_t>(report.runs == 0 ? 0 : report.runs - 1, plan.size());
    const auto end = plan.begin() + static_cast<std::ptrdiff_t>(planned);
    const bool seen = std::find(plan.begin(), end, first) != end;
    report.configurations = std::min<std::uint64_t>(report.runs, planned + (seen ? 0U : 1U));
    return report;
  }

 private:
  bool run_named(std::uint64_t number, const StressConfig& config, StressReport& report) {
    try {
      return run_once(number, config, report);
    } catch (const Error& error) {
      throw Error(error.kind(),
                  "run " + std::to_string(number) + " (" + describe(config) + "): " + error.what(),
                  error.hint());
    }
  }

  /// False when cancelled: a run cut short says nothing.
  bool run_once(std::uint64_t number, const StressConfig& config, StressReport& report) {
    const Model& model = machines_->model(config);
    const std::unique_ptr<Context> context =
        Context::create(model, machines_->backend(config), n_ctx_, kv_type_, config.chunk);
    if (config.state == "reused") make_dirty(model, *context);
    StressSteps steps(number == 0 ? nullptr : &reference_);
    const GenerateRequest request{prompt_, options_.n};
    const StopReason reason = config.mode == "parallel"
                                  ? teacher_force(*context, model, *tokenizer_, request,
                                                  reference_tokens_, cancel_, steps)
                                  : generate(*context, model, *tokenizer_, request, cancel_, steps);
    if (reason == StopReason::kCancelled) return false;
    steps.finish();
    if (number == 0) keep_reference(steps);
    count(number, config, steps, report);
    return true;
  }

  /// Fills the cache with another run's K and V; what is left of them must not be seen.
  void make_dirty(const Model& model, Context& context) {
    std::vector<std::int32_t> other(prompt_.rbegin(), prompt_.rend());
    IgnoreSteps ignore;
    generate(context, model, *tokenizer_, {std::move(other), kDirtySteps}, cancel_, ignore);
    context.reset();
  }

  void keep_reference(StressSteps& steps) {
    reference_ = steps.take_steps();
    for (const StepRecord& step : reference_) reference_tokens_.push_back(step.token);
  }

  static void count(std::uint64_t number, const StressConfig& config, StressSteps& steps,
                    StressReport& report) {
    const Sha256Digest chain = steps.chain();
    for (StressOutput& output : report.outputs) {
      if (output.chain != chain) continue;
      ++output.runs;
      return;
    }
    const StepComparer& comparer = steps.comparer();
    report.outputs.push_back({chain, 1, number, config, comparer.first_logits_difference(),
                              comparer.first_token_difference(), comparer.describe()});
  }

  const std::atomic<bool>& cancel_;
  Observer& observer_;
  std::unique_ptr<ModelFile> file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  StressOptions options_;
  std::vector<std::int32_t> prompt_;
  std::uint32_t n_ctx_ = 0;
  KvType kv_type_ = KvType::kF16;
  std::unique_ptr<Machines> machines_;
  std::vector<StepRecord> reference_;
  std::vector<std::int32_t> reference_tokens_;
};

Json config_to_json(const StressConfig& config) {
  Json out = Json::object();
  out.set("isa", config.isa);
  out.set("threads", std::uint64_t{config.threads});
  out.set("chunk", std::uint64_t{config.chunk});
  out.set("state", config.state);
  out.set("mode", config.mode);
  return out;
}

}  // namespace

std::string describe(const StressConfig& config) {
  return config.isa + ", " + std::to_string(config.threads) +
         (config.threads == 1 ? " thread" : " threads") + ", chunk " +
         std::to_string(config.chunk) + ", " + config.state + " context, " + config.mode;
}

std::vector<StressConfig> stress_plan(const StressOptions& options) {
  std::vector<StressConfig> plan;
  for (const std::string& isa : options.isas) {
    for (const std::uint32_t threads : options.threads) {
      for (const std::uint32_t chunk : options.chunks) {
        for (const std::string& state : options.states) {
          for (const std::string& mode : options.modes) {
            StressConfig config{isa, threads, chunk, state, mode};
            if (std::find(plan.begin(), plan.end(), config) == plan.end()) {
              plan.push_back(std::move(config));
            }
          }
        }
      }
    }
  }
  // Fisher and Yates' shuffle; the word of place i belongs to (seed, i) alone.
  for (std::size_t i = plan.size(); i > 1; --i) {
    const Sha256Digest digest = Sha256()
                                    .update_part("detrun-stress-plan/1")
                                    .update_u64(options.seed)
                                    .update_u64(i)
                                    .finish();
    const std::uint32_t word = std::uint32_t{digest[0]} | std::uint32_t{digest[1]} << 8U |
                               std::uint32_t{digest[2]} << 16U | std::uint32_t{digest[3]} << 24U;
    std::swap(plan[i - 1], plan[word % i]);
  }
  return plan;
}

void StepChain::add(const StepRecord& step) {
  const auto token = static_cast<std::uint32_t>(step.token);
  std::array<std::byte, 28> bytes;
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(0, token);
  for (std::size_t i = 0; i < step.logits_xxh3.size(); ++i) {
    bytes[4 + i] = static_cast<std::byte>(step.logits_xxh3[i]);
  }
  put(20, step.margin_bits);
  put(24, step.logprob_bits);
  hash_.update(bytes);
}

StressReport stress(const StressOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer) {
  return stress_on(options, make_cpu_backend, cancel, observer);
}

StressReport stress_on(const StressOptions& options, BackendFactory make_backend,
                       const std::atomic<bool>& cancel, Observer& observer) {
  check_options(options);
  return StressTest(options, std::move(make_backend), cancel, observer).run();
}

Json stress_to_json(const StressReport& report) {
  Json outputs = Json::array();
  for (const StressOutput& output : report.outputs) {
    Json one = Json::object();
    one.set("chain", to_hex(output.chain));
    one.set("runs", output.runs);
    one.set("first_run", output.first_run);
    one.set("config", config_to_json(output.config));
    one.set("first_logits_difference", Json::or_null(output.first_logits_difference));
    one.set("first_token_difference", Json::or_null(output.first_token_difference));
    one.set("difference", output.difference);
    outputs.push_back(std::move(one));
  }
  Json out = Json::object();
  out.set("schema", "detrun.stress/1");
  out.set("runs", report.runs);
  out.set("configurations", report.configurations);
  out.set("steps", report.steps);
  out.set("distinct_outputs", static_cast<std::uint64_t>(report.outputs.size()));
  out.set("outputs", std::move(outputs));
  return out;
}

}  // namespace detrun
