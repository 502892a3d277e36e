// The use case `record --prompts`: one model, a run for each line that has none yet. What can be
// checked without running is checked for all lines first. Prints nothing.
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/run.h"
#include "run/ledger_sink.h"
#include "run/line_claims.h"
#include "run/memory_store.h"
#include "run/profile.h"
#include "run/prompts_file.h"
#include "run/recording.h"
#include "run/start_fields.h"

namespace detrun {
namespace {

/// How often a line that another process records is asked for.
constexpr std::chrono::milliseconds kPatience{100};

/// Shows the progress of all lines in the place of that of one.
class LineObserver final : public Observer {
 public:
  explicit LineObserver(Observer& outer) : outer_(outer) {}

  void set(std::uint64_t done, std::uint64_t total) {
    done_ = done;
    total_ = total;
    outer_.on_progress("recording", done_, total_, "lines");
  }
  void on_run_started(std::int64_t number, const std::string& id) override {
    outer_.on_run_started(number, id);
  }
  void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) override {
    if (unit == "bytes") {  // of the model: its digest, its weights
      outer_.on_progress(what, done, total, unit);
    } else {
      outer_.on_progress("recording", done_, total_, "lines");
    }
  }
  bool on_text(std::string_view) override {
    outer_.on_progress("recording", done_, total_, "lines");
    return true;
  }

 private:
  Observer& outer_;
  std::uint64_t done_ = 0, total_ = 0;
};

class PromptsRecorder {
 public:
  PromptsRecorder(const RecordOptions& defaults, const PromptsOptions& prompts,
                  const std::atomic<bool>& cancel, PromptsObserver& observer)
      : defaults_(defaults),
        prompts_(prompts),
        cancel_(cancel),
        observer_(observer),
        progress_(observer) {}

  PromptsReport run() {
    file_ = read_prompts_file(prompts_.path);
    report_.lines = file_.lines.size();
    std::vector<PromptsFile::Line> todo = well_formed(file_.lines);
    if (!defaults_.no_ledger) {
      ledger_ = Ledger::open_for_recording(defaults_.ledger_path);
      claims_ = std::make_unique<LineClaims>(*ledger_, file_.sha256);
      std::erase_if(todo, [&](const auto& line) { return claims_->done(line.number); });
    }
    report_.done = report_.lines - bad_.size() - todo.size();
    if (!todo.empty() && !cancel_) {
      engine_ = std::make_unique<RecordEngine>(defaults_, observer_);
      todo = runnable(todo);
    }
    for (const auto& [line, message] : bad_) observer_.on_bad_line({line, message});
    report_.bad = bad_.size();
    observer_.on_lines(report_.lines, report_.done);
    record_all(std::move(todo));
    return report_;
  }

 private:
  void mark_bad(std::uint64_t line, const Error& error) {
    if (prompts_.strict) {
      throw_usage("line " + std::to_string(line) + " of the prompts file: " + error.what(),
                  "nothing was recorded; without --strict the other lines are");
    }
    bad_.emplace(line, error.with_hint());
  }

  /// Lines that say what to run.
  std::vector<PromptsFile::Line> well_formed(const std::vector<PromptsFile::Line>& lines) {
    std::vector<PromptsFile::Line> good;
    for (const PromptsFile::Line& line : lines) {
      try {
        parse_prompts_line(file_.text(line), defaults_);
        good.push_back(line);
      } catch (const Error& error) {
        if (error.kind() != ExitCode::kUsage) throw;
        mark_bad(line.number, error);
      }
    }
    return good;
  }

  /// Those among them whose prompt this model can take.
  std::vector<PromptsFile::Line> runnable(const std::vector<PromptsFile::Line>& lines) {
    std::vector<PromptsFile::Line> good;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      observer_.on_progress("checking", i, lines.size(), "lines");
      try {
        const RecordOptions options = parse_prompts_line(file_.text(lines[i]), defaults_);
        check_fits(prepare_prompt(options, *engine_->model.tokenizer), options);
        require_profile(*engine_->backend, options.numerics);
        check_products(options);
        good.push_back(lines[i]);
      } catch (const Error& error) {
        if (error.kind() != ExitCode::kUsage) throw;
        mark_bad(lines[i].number, error);
      }
    }
    return good;
  }

  /// Under cublas, what no run with this model could be computed with. Each number of rows once.
  void check_products(const RecordOptions& options) {
    if (options.numerics != kCublas) return;
    const std::uint32_t rows = rows_of(options, context_length(options.ctx));
    if (pinned_rows_.contains(rows)) return;
    engine_->backend->pin_products(rows);
    pinned_rows_.insert(rows);
  }

  std::uint32_t rows_of(const RecordOptions& options, std::uint32_t n_ctx) const {
    return chunk_rows(options.engine.chunk, engine_->model.model->spec(), n_ctx,
                      engine_->backend->info());
  }

  void check_fits(const Prompt& prompt, const RecordOptions& options) {
    const ModelSpec& spec = engine_->model.model->spec();
    check_prompt_fits(prompt.tokens.size(), context_length(options.ctx), spec.n_ctx_train);
  }

  /// A warning about an odd length is given once.
  std::uint32_t context_length(std::uint32_t asked) {
    const auto found = lengths_.find(asked);
    if (found != lengths_.end()) return found->second;
    return lengths_[asked] = choose_context(asked, engine_->model.model->spec());
  }

  /// The context of the line before when it is of the same kind: empty again, it is like new.
  Context& context_for(const RecordOptions& options) {
    const std::uint32_t n_ctx = context_length(options.ctx);
    const std::uint32_t rows = rows_of(options, n_ctx);
    const bool same = context_ && context_->n_ctx() == n_ctx && context_->max_rows() == rows &&
                      context_kv_ == options.kv && context_numerics_ == options.numerics;
    if (same) {
      context_->reset();
      return *context_;
    }
    context_.reset();  // two at once may be more than memory holds
    plan_ = start_profile(*engine_->backend, options.numerics, rows, tested_);
    context_ = open_context(*engine_->model.model, *engine_->backend, n_ctx,
                            *kv_type_by_name(options.kv), options.engine.chunk);
    context_kv_ = options.kv;
    context_numerics_ = options.numerics;
    return *context_;
  }

  /// Lines that another process records are waited for: should it die, they are recorded here.
  void record_all(std::vector<PromptsFile::Line> todo) {
    const std::uint64_t total = todo.size();
    std::uint64_t gone = 0;
    while (!todo.empty()) {
      std::vector<PromptsFile::Line> taken;
      for (const PromptsFile::Line& line : todo) {
        if (report_.closed || report_.cancelled) return;
        if (cancel_) {
          report_.cancelled = true;
          return;
        }
        progress_.set(gone, total);
        if (record_line(line)) {
          ++gone;
        } else {
          taken.push_back(line);
        }
      }
      if (taken.size() == todo.size()) std::this_thread::sleep_for(kPatience);
      todo = std::move(taken);
    }
  }

  /// False: another process is at it.
  bool record_line(const PromptsFile::Line& line) {
    LineReport result;
    result.line = line.number;
    const RecordOptions options = parse_prompts_line(file_.text(line), defaults_);
    const Prompt prompt = prepare_prompt(options, *engine_->model.tokenizer);
    Context* context = nullptr;
    try {
      context = &context_for(options);
    } catch (const Error& error) {
      give_up_on_line(line, error);
      return true;
    }
    FieldMap fields = start_fields(options, engine_->model, engine_->backend->info(), plan_, prompt,
                                   context->n_ctx());
    fields.emplace(field::prompts_sha256, to_blob(file_.sha256));
    fields.emplace(field::prompts_line, static_cast<std::int64_t>(line.number));
    LateFields late(*engine_->late);
    fields.merge(late.take_ready());  // all of them, from the second run on
    std::unique_ptr<RunStore> store;
    if (ledger_) {
      LineClaims::Result begun = claims_->begin(line.number, fields);
      if (begun.claim == LineClaims::Claim::kTaken) return false;
      if (begun.claim == LineClaims::Claim::kDone) {
        ++report_.done;
        return true;
      }
      store = std::make_unique<LedgerSink>(*ledger_, std::move(begun.writer));
    } else {
      store = std::make_unique<MemoryStore>(std::move(fields));
    }
    Recording recording(*store, late, progress_);
    record_run(recording, *store, *context, {prompt.tokens, options.n}, result);
    if (!observer_.on_line(result)) report_.closed = true;
    return true;
  }

  /// A context that cannot be had is this line's fault, not the next one's.
  void give_up_on_line(const PromptsFile::Line& line, const Error& error) {
    if (error.kind() == ExitCode::kUsage) {
      ++report_.bad;
      observer_.on_bad_line({line.number, error.with_hint()});
      return;
    }
    ++report_.failed;
    LineReport result;
    result.line = line.number;
    result.error = error.with_hint();
    if (!observer_.on_line(result)) report_.closed = true;
  }

  void record_run(Recording& recording, const RunStore& store, Context& context,
                  const GenerateRequest& request, LineReport& result) {
    try {
      result.report = recording.run(context, engine_->model, request, cancel_);
    } catch (const Error& error) {
      if (!recording.sealed() || error.kind() != ExitCode::kInternal) throw;
      result.report.run = store.result();
      result.error = error.what();
      ++report_.failed;
      return;
    }
    result.report.load_s = engine_->load_s;
    if (result.report.stop_reason == stop_reason_name(StopReason::kCancelled)) {
      report_.cancelled = true;
    } else {
      ++report_.recorded;
    }
  }

  const RecordOptions& defaults_;
  const PromptsOptions& prompts_;
  const std::atomic<bool>& cancel_;
  PromptsObserver& observer_;
  LineObserver progress_;
  PromptsReport report_;
  PromptsFile file_;
  std::map<std::uint64_t, std::string> bad_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<LineClaims> claims_;
  std::unique_ptr<RecordEngine> engine_;
  std::set<std::uint32_t> pinned_rows_;             ///< for which cublas has products
  std::map<std::uint32_t, std::uint32_t> lengths_;  ///< asked for, chosen
  std::unique_ptr<Context> context_;
  std::string context_kv_, context_numerics_;
  TestedProducts tested_;
  std::optional<ProductPlan> plan_;  ///< of the context, under profile cublas
};

}  // namespace

PromptsReport record_prompts(const RecordOptions& defaults, const PromptsOptions& prompts,
                             const std::atomic<bool>& cancel, PromptsObserver& observer) {
  check_record_options(defaults);
  return PromptsRecorder(defaults, prompts, cancel, observer).run();
}

}  // namespace detrun
