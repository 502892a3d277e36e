// The use case `record`: options in, a sealed run out. Steps are shown as they come and queued for
// the ledger; the seal waits for the digests of the side threads. Prints nothing.
#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "detrun/engine.h"
#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/log.h"
#include "detrun/run.h"
#include "detrun/text.h"
#include "run/late_facts.h"
#include "run/ledger_sink.h"
#include "run/loaded_model.h"
#include "run/memory_store.h"
#include "run/prompt.h"
#include "run/start_fields.h"

namespace detrun {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_tags(const RecordOptions& options) {
  std::set<std::string_view> seen;
  for (const auto& [key, value] : options.tags) {
    const std::string shown = escape_for_terminal(key);
    if (key.empty()) throw_usage("a tag has no name", "write --tag KEY=VALUE");
    if (key.find('=') != std::string::npos) throw_usage("tag name '" + shown + "' holds a '='");
    if (shown != key) {
      throw_usage("tag name '" + shown + "' is not printable UTF-8 text");
    }
    if (!is_utf8(value) || value.find('\0') != std::string::npos) {
      throw_usage("the value of tag '" + shown + "' is not UTF-8 text without NUL");
    }
    if (!seen.insert(key).second) throw_usage("tag '" + shown + "' is given twice");
  }
}

void check_options(const RecordOptions& options) {
  if (options.model_path.empty()) throw_usage("no model is given", "use -m MODEL.gguf");
  if (!kv_type_by_name(options.kv)) {
    throw_usage("unknown type of the KV cache '" + options.kv + "'", "known are f16 and f32");
  }
  if (options.numerics == "cublas") {
    throw_usage("numerics cublas is not supported yet", "use --numerics portable");
  }
  if (options.numerics != kNumericsProfile) {
    throw_usage("unknown numerics profile '" + options.numerics + "'",
                "known are portable and cublas");
  }
  if (options.n > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    throw_usage("-n " + std::to_string(*options.n) + " is too large",
                "leave -n out to generate until the context is full");
  }
  check_engine_options(options.engine);
  check_tags(options);
}

std::uint32_t choose_context(const RecordOptions& options, const ModelSpec& spec) {
  if (options.ctx == 0) return std::clamp(spec.n_ctx_train, 1U, kDefaultCtxMax);
  if (options.ctx > spec.n_ctx_train) {
    log_warning("a context of " + std::to_string(options.ctx) + " tokens is longer than the " +
                std::to_string(spec.n_ctx_train) + " the model was trained for");
  }
  return options.ctx;
}

void check_prompt_fits(const Prompt& prompt, std::uint32_t n_ctx, std::uint32_t n_ctx_train) {
  if (prompt.tokens.size() <= n_ctx) return;
  throw_usage("the prompt has " + std::to_string(prompt.tokens.size()) +
                  " tokens, the context holds " + std::to_string(n_ctx),
              "shorten the prompt or give a larger --ctx (the model was trained for " +
                  std::to_string(n_ctx_train) + ")");
}

/// Stores and shows each step.
class RecordSteps final : public StepSink {
 public:
  RecordSteps(RunStore& store, LateFacts& late, Observer& observer)
      : store_(store), late_(late), observer_(observer) {}

  bool on_step(const StepRecord& step) override {
    if (n_steps_ == 0) first_step_at_ = Clock::now();
    ++n_steps_;
    store_.add_fields(late_.take_ready());
    store_.add_step(step);
    return step.piece.empty() || observer_.on_text(step.piece);
  }

  std::uint64_t n_steps() const { return n_steps_; }
  /// When the prompt was done: the first step, or now.
  Clock::time_point first_step_at() const { return n_steps_ == 0 ? Clock::now() : first_step_at_; }

 private:
  RunStore& store_;
  LateFacts& late_;
  Observer& observer_;
  std::uint64_t n_steps_ = 0;
  Clock::time_point first_step_at_;
};

/// One run from its first entry to its seal.
class Recording {
 public:
  Recording(RunStore& store, LateFacts& late, Observer& observer)
      : store_(store), late_(late), observer_(observer), steps_(store, late, observer) {}

  /// Everything that can go wrong in a run that was entered goes wrong in here.
  RecordReport run(Context& context, const LoadedModel& model, const GenerateRequest& request,
                   const std::atomic<bool>& cancel) {
    RecordReport report;
    report.prompt_tokens = request.prompt_tokens.size();
    try {
      store_.start(observer_);
      observer_.on_prompt(model.tokenizer->decode(request.prompt_tokens));
      run_to_end(context, model, request, cancel, report);
    } catch (const Error& error) {
      seal_failed(error.what());
      throw;
    } catch (const std::exception& error) {
      seal_failed(error.what());
      throw_internal(error.what());
    }
    report.steps = steps_.n_steps();
    report.run = store_.result();
    return report;
  }

 private:
  void run_to_end(Context& context, const LoadedModel& model, const GenerateRequest& request,
                  const std::atomic<bool>& cancel, RecordReport& report) {
    const StopReason reason = generate(context, *model.model, *model.tokenizer, request, cancel,
                                       steps_, [&](std::uint64_t done, std::uint64_t total) {
                                         store_.add_fields(late_.take_ready());
                                         observer_.on_progress("prefill", done, total, "tokens");
                                       });
    report.prefill_s = std::chrono::duration<double>(steps_.first_step_at() - started_).count();
    report.decode_s = seconds_since(steps_.first_step_at());
    report.stop_reason = stop_reason_name(reason);
    const bool whole = reason == StopReason::kEnd || reason == StopReason::kLength ||
                       reason == StopReason::kContext;
    store_.flush();  // what the disk refuses is known before anything else is waited for
    store_.add_fields(late_.wait_rest(observer_));
    model.file->check_unchanged();  // after the last use of the bytes
    report.seal = seal(whole ? "finished" : "cancelled", report.stop_reason, {});
  }

  std::optional<Sha256Digest> seal(const std::string& status, const std::string& stop_reason,
                                   const std::string& error) {
    store_.add_fields(late_.wait_rest(observer_));
    const auto elapsed = Clock::now() - started_;
    FieldMap end;
    end.emplace(field::status, status);
    end.emplace(field::stop_reason, stop_reason);
    end.emplace(field::ended_at, utc_timestamp(unix_time_ms()));
    end.emplace(
        field::duration_ms,
        std::int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count()});
    if (!error.empty()) end.emplace(field::error, text_or_blob(error));
    return store_.finish(end);
  }

  /// Where even that is impossible (disk full) the run stays open and counts as interrupted.
  void seal_failed(const std::string& message) {
    try {
      seal("failed", "error", message);
    } catch (const std::exception& error) {
      log_warning(std::string("the run could not be sealed and counts as interrupted: ") +
                  error.what());
    }
  }

  RunStore& store_;
  LateFacts& late_;
  Observer& observer_;
  RecordSteps steps_;
  Clock::time_point started_ = Clock::now();
};

std::unique_ptr<RunStore> open_store(Ledger* ledger, FieldMap fields) {
  if (ledger == nullptr) return std::make_unique<MemoryStore>(std::move(fields));
  return std::make_unique<LedgerSink>(*ledger, ledger->begin_run(fields));
}

}  // namespace

RecordReport record(const RecordOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer) {
  check_options(options);
  std::unique_ptr<Ledger> ledger;
  if (!options.no_ledger) ledger = Ledger::open_for_recording(options.ledger_path);

  const Clock::time_point load_started = Clock::now();
  LoadedModel model;
  model.file = ModelFile::open(options.model_path);
  LateFacts late(*model.file);
  const std::unique_ptr<Backend> backend = open_backend(options.engine);
  model.bind(*backend);
  const double load_s = seconds_since(load_started);

  const ModelSpec& spec = model.model->spec();
  const Prompt prompt = prepare_prompt(options, *model.tokenizer);
  const std::uint32_t n_ctx = choose_context(options, spec);
  check_prompt_fits(prompt, n_ctx, spec.n_ctx_train);
  const std::unique_ptr<Context> context =
      open_context(*model.model, *backend, n_ctx, *kv_type_by_name(options.kv));

  const std::unique_ptr<RunStore> store =
      open_store(ledger.get(), start_fields(options, model, backend->info(), prompt, n_ctx));
  Recording recording(*store, late, observer);
  RecordReport report = recording.run(*context, model, {prompt.tokens, options.n}, cancel);
  report.load_s = load_s;
  return report;
}

}  // namespace detrun
