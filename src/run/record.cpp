// The use case `record`: options in, a sealed run out. Prints nothing.
#include <memory>
#include <string>

#include "detrun/error.h"
#include "detrun/run.h"
#include "run/ledger_sink.h"
#include "run/memory_store.h"
#include "run/recording.h"
#include "run/start_fields.h"

namespace detrun {
namespace {

std::unique_ptr<RunStore> open_store(Ledger* ledger, FieldMap fields) {
  if (ledger == nullptr) return std::make_unique<MemoryStore>(std::move(fields));
  return std::make_unique<LedgerSink>(*ledger, ledger->begin_run(fields));
}

}  // namespace

RecordReport record(const RecordOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer) {
  check_record_options(options);
  std::unique_ptr<Ledger> ledger;
  if (!options.no_ledger) ledger = Ledger::open_for_recording(options.ledger_path);

  RecordEngine engine(options);
  const LoadedModel& model = engine.model;
  const ModelSpec& spec = model.model->spec();
  const Prompt prompt = prepare_prompt(options, *model.tokenizer);
  const std::uint32_t n_ctx = choose_context(options.ctx, spec);
  check_prompt_fits(prompt.tokens.size(), n_ctx, spec.n_ctx_train);
  const std::unique_ptr<Context> context = open_context(
      *model.model, *engine.backend, n_ctx, *kv_type_by_name(options.kv), options.engine.chunk);

  const std::unique_ptr<RunStore> store =
      open_store(ledger.get(), start_fields(options, model, engine.backend->info(), prompt, n_ctx));
  Recording recording(*store, *engine.late, observer);
  RecordReport report = recording.run(*context, model, {prompt.tokens, options.n}, cancel);
  report.load_s = engine.load_s;
  return report;
}

}  // namespace detrun
