// See recording.h. Steps are shown as they come and queued for the store; the seal waits for the
// digests of the side threads.
#include "run/recording.h"

#include <exception>
#include <limits>
#include <set>
#include <string>

#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/log.h"
#include "detrun/text.h"
#include "run/profile.h"
#include "run/start_fields.h"

namespace detrun {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Bytes of the model times tokens of the prompt. Up to here, some ten milliseconds, the prompt is
/// computed while the disk takes the run's entry; a longer one had better wait for it, so that its
/// number is known and a full disk is not found out at the end.
constexpr std::uint64_t kShortPrefill = std::uint64_t{64} << 20;

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

}  // namespace

void check_record_options(const RecordOptions& options) {
  if (options.model_path.empty()) throw_usage("no model is given", "use -m MODEL.gguf");
  if (!kv_type_by_name(options.kv)) {
    throw_usage("unknown type of the KV cache '" + options.kv + "'", "known are f16 and f32");
  }
  if (options.n > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    throw_usage("-n " + std::to_string(*options.n) + " is too large",
                "leave -n out to generate until the context is full");
  }
  check_engine_options(options.engine);
  check_profile(options.numerics, options.engine);
  check_tags(options);
}

RecordEngine::RecordEngine(const RecordOptions& options, Observer& observer,
                           const std::function<void()>& before_weights) {
  const Clock::time_point started = Clock::now();
  try {
    model.file = ModelFile::open(options.model_path);
    late = std::make_unique<LateFacts>(*model.file);
    backend = open_backend(options.engine);
    require_profile(*backend, options.numerics);
  } catch (const Error&) {
    before_weights();
    throw;
  }
  before_weights();
  model.bind(*backend, observer);
  load_s = seconds_since(started);
}

void RecordSteps::open() {
  if (opened_) return;
  opened_ = true;
  if (!store_.entered()) store_.flush();  // throws why
  if (const std::optional<RunRef> run = store_.ref())
    observer_.on_run_started(run->number, run->id);
  observer_.on_prompt(prompt_);
}

bool RecordSteps::on_step(const StepRecord& step) {
  if (n_steps_ == 0) {
    prompt_done_at_ = Clock::now();
    open();
    opened_at_ = Clock::now();
  }
  ++n_steps_;
  store_.add_fields(late_.take_ready());
  store_.add_step(step);
  const bool go_on = step.piece.empty() || observer_.on_text(step.piece);
  if (n_steps_ == 1) late_.start_rest();
  return go_on;
}

RecordReport Recording::run(Context& context, const LoadedModel& model,
                            const GenerateRequest& request, const std::atomic<bool>& cancel) {
  RecordReport report;
  report.prompt_tokens = request.prompt_tokens.size();
  try {
    store_.start();
    run_to_end(context, model, request, cancel, report);
  } catch (const Error& error) {
    seal_failed(error.what());
    throw;
  } catch (const std::exception& error) {
    seal_failed(error.what());
    throw_internal(error.what());
  }
  report.run = store_.result();
  return report;
}

void Recording::run_to_end(Context& context, const LoadedModel& model,
                           const GenerateRequest& request, const std::atomic<bool>& cancel,
                           RecordReport& report) {
  RecordSteps steps(store_, late_, observer_, model.tokenizer->decode(request.prompt_tokens));
  if (model.file->bytes().size() * request.prompt_tokens.size() > kShortPrefill) steps.open();
  const StopReason reason = generate(context, *model.model, *model.tokenizer, request, cancel,
                                     steps, [&](std::uint64_t done, std::uint64_t total) {
                                       store_.add_fields(late_.take_ready());
                                       observer_.on_progress("prefill", done, total, "tokens");
                                     });
  if (steps.n_steps() == 0) steps.open();
  report.steps = steps.n_steps();
  report.prefill_s = std::chrono::duration<double>(steps.prompt_done_at() - started_).count();
  report.decode_s = seconds_since(steps.opened_at());
  report.stop_reason = stop_reason_name(reason);
  const bool whole =
      reason == StopReason::kEnd || reason == StopReason::kLength || reason == StopReason::kContext;
  store_.flush();  // what the disk refuses is known before anything else is waited for
  store_.add_fields(late_.wait_rest(observer_));
  model.file->check_unchanged();  // after the last use of the bytes
  report.seal = seal(whole ? "finished" : "cancelled", report.stop_reason, {});
}

std::optional<Sha256Digest> Recording::seal(const std::string& status,
                                            const std::string& stop_reason,
                                            const std::string& error) {
  store_.add_fields(late_.wait_rest(observer_));
  const auto elapsed = Clock::now() - started_;
  FieldMap end;
  end.emplace(field::status, status);
  end.emplace(field::stop_reason, stop_reason);
  end.emplace(field::ended_at, utc_timestamp(unix_time_ms()));
  end.emplace(field::duration_ms,
              std::int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count()});
  if (!error.empty()) end.emplace(field::error, text_or_blob(error));
  return store_.finish(end);
}

/// Where even that is impossible (disk full) the run stays open and counts as interrupted. A run
/// that never stood in the store has nothing to seal.
void Recording::seal_failed(const std::string& message) {
  if (!store_.entered()) return;
  try {
    seal("failed", "error", message);
    sealed_ = true;
  } catch (const std::exception& error) {
    log_warning(std::string("the run could not be sealed and counts as interrupted: ") +
                error.what());
  }
}

}  // namespace detrun
