// The use case `record`: options in, a sealed run out. Prints nothing.
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "detrun/error.h"
#include "detrun/run.h"
#include "run/ledger_sink.h"
#include "run/memory_store.h"
#include "run/profile.h"
#include "run/recording.h"
#include "run/start_fields.h"
#include "run/start_thread.h"

namespace detrun {
namespace {

/// The ledger of a run, opened beside the model: both wait for the disk.
class OpeningLedger {
 public:
  explicit OpeningLedger(const RecordOptions& options) {
    if (options.no_ledger) return;
    opening_ = start_thread([path = options.ledger_path] {
      return std::async(std::launch::async, [path] { return Ledger::open_for_recording(path); });
    });
  }
  /// Waits; Error as Ledger::open_for_recording. nullptr: the run is kept in memory only.
  Ledger* get() {
    if (opening_.valid()) ledger_ = opening_.get();
    return ledger_.get();
  }

 private:
  std::future<std::unique_ptr<Ledger>> opening_;
  std::unique_ptr<Ledger> ledger_;
};

}  // namespace

RecordReport record(const RecordOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer) {
  check_record_options(options);
  OpeningLedger opening(options);
  RecordEngine engine(options, observer, [&] { opening.get(); });
  const LoadedModel& model = engine.model;
  const ModelSpec& spec = model.model->spec();
  const Prompt prompt = prepare_prompt(options, *model.tokenizer);
  const std::uint32_t n_ctx = choose_context(options.ctx, spec);
  check_prompt_fits(prompt.tokens.size(), n_ctx, spec.n_ctx_train);
  TestedProducts tested;
  const std::optional<ProductPlan> plan =
      start_profile(*engine.backend, options.numerics,
                    chunk_rows(options.engine.chunk, spec, n_ctx, engine.backend->info()), tested);
  const std::unique_ptr<Context> context = open_context(
      *model.model, *engine.backend, n_ctx, *kv_type_by_name(options.kv), options.engine.chunk);

  const auto fields = [&] {
    return start_fields(options, model, engine.backend->info(), plan, prompt, n_ctx);
  };
  std::unique_ptr<RunStore> store;
  if (Ledger* ledger = opening.get()) {
    store =
        std::make_unique<LedgerSink>(*ledger, [&, ledger] { return ledger->begin_run(fields()); });
  } else {
    store = std::make_unique<MemoryStore>(fields());
  }
  Recording recording(*store, *engine.late, observer);
  RecordReport report = recording.run(*context, model, {prompt.tokens, options.n}, cancel);
  report.load_s = engine.load_s;
  return report;
}

}  // namespace detrun
