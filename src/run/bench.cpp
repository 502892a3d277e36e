// The use case `bench`: which measurements, in which order, beside which ceilings. Work and ceiling
// alternate, so that what slows the machine down for a while slows both.
#include <algorithm>
#include <functional>
#include <string>

#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/log.h"
#include "run/bench_work.h"
#include "run/product_test.h"
#include "run/profile.h"

namespace detrun {
namespace {

constexpr const char* kCeilings = "ceilings";

/// ASCII letters only: names of shapes and types.
std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

void require_known(const std::string& what, const std::string& value,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  throw_usage(what + " '" + value + "' is unknown", "known are " + names);
}

/// Nothing but the ceilings is asked for, which takes no model.
bool is_of_ceilings(const BenchOptions& options) {
  return options.only == std::vector<std::string>{kCeilings};
}

BenchOptions checked(BenchOptions options) {
  options.shape = lower_case(options.shape);
  options.type = lower_case(options.type);
  if (options.repeat == 0) throw_usage("at least one measurement is needed");
  check_profile(options.numerics, options.engine);
  if (is_of_ceilings(options)) {
    if (options.model_path.empty() && options.shape.empty()) return options;
    throw_usage("the ceilings alone are measured without a model", "leave out -m and --shape");
  }
  if (options.model_path.empty() && options.shape.empty()) {
    throw_usage("neither a model nor a shape is given",
                "use -m MODEL.gguf, or --shape 1.1b --type q8_0");
  }
  if (!options.model_path.empty() && !options.shape.empty()) {
    throw_usage("a model and a shape are given together", "give one of them");
  }
  if (options.shape.empty() != options.type.empty()) {
    throw_usage("--shape and --type belong together", "for example --shape 1.1b --type q8_0");
  }
  if (!options.shape.empty()) {
    require_known("shape", options.shape, synthetic_shapes());
    require_known("type of weights", options.type, synthetic_types());
  }
  for (const std::string& name : options.only) {
    if (name != kCeilings) require_known("result", name, bench_names());
  }
  const bool parallel =
      std::find(options.only.begin(), options.only.end(), "replay_parallel") != options.only.end();
  if (parallel && options.numerics == kCublas) {
    throw_usage("under the profile cublas nothing is replayed in parallel",
                "leave replay_parallel out, or use --numerics portable");
  }
  if (options.n < 2) throw_usage("at least 2 steps are needed");
  return options;
}

Json machine_of(const BackendInfo& info) {
  Json machine = Json::object();
  const Json stack = collect_fingerprint(info);
  const Json* facts = stack.find("informational");
  DETRUN_CHECK(facts != nullptr);
  for (const std::string_view name : {"cpu", "backend", "build", "system"}) {
    if (const Json* part = facts->find(name)) machine.set(name, *part);
  }
  return machine;
}

class Bench {
 public:
  Bench(BenchOptions options, const std::atomic<bool>& cancel, Observer& observer)
      : options_(checked(std::move(options))), cancel_(cancel), observer_(observer) {}

  BenchReport run() {
    report_.numerics = options_.numerics;
    if (is_of_ceilings(options_)) return run_ceilings();
    BenchWork work(options_, cancel_, observer_, report_);
    work_ = &work;
    report_.machine = machine_of(work.backend_info());
    if (!cancel_) prepare();
    for (std::uint32_t i = 0; i < options_.repeat && !cancel_; ++i) {
      measure_peaks();
      for (Row& row : rows_) {
        if (cancel_) break;
        const BenchResult before = row.result;
        row.measure(row.result);
        if (cancel_) row.result = before;  // what was cut short is no measurement
        observer_.on_progress("measuring", ++n_done_, options_.repeat * rows_.size(), "results");
      }
    }
    report_.cancelled = cancel_;
    for (Row& row : rows_) report_.results.push_back(std::move(row.result));
    return std::move(report_);
  }

 private:
  struct Row {
    BenchResult result;
    std::function<void(BenchResult&)> measure;
  };

  bool wanted(std::string_view name) const {
    return options_.only.empty() ||
           std::find(options_.only.begin(), options_.only.end(), name) != options_.only.end();
  }

  /// The machine alone, no model.
  BenchReport run_ceilings() {
    const std::unique_ptr<Backend> backend = open_backend(options_.engine);
    const BackendInfo& info = backend->info();
    report_.machine = machine_of(info);
    report_.threads = info.n_threads;
    report_.backend = info.name;
    if (info.device) report_.device = info.device->name;
    set_ceilings(backend->make_ceilings());
    for (std::uint32_t i = 0; i < options_.repeat && !cancel_; ++i) {
      measure_peaks();
      memory_rate();
      if (i == 0) log_info(kLoadIsReady);
      observer_.on_progress("measuring", i + 1, options_.repeat, "ceilings");
    }
    report_.cancelled = cancel_;
    return std::move(report_);
  }

  void set_ceilings(std::unique_ptr<Ceilings> ceilings) {
    ceilings_ = std::move(ceilings);
    report_.ceilings_loops = ceilings_->loops();
    report_.memory_work = ceilings_->memory_work();
  }

  /// Runs everything once, unmeasured, and notes its products. Memory is read off before the
  /// ceilings take theirs.
  void prepare() {
    const std::string name = "warming up";
    observer_.on_progress(name, 0, 1, "");
    const MatmulTrace decode = work_->trace([&] { work_->decode(); });
    const std::uint64_t steps = kBenchPromptTokens + options_.n;
    report_.bytes_per_token = decode.weight_bytes() / steps + work_->cache_bytes_per_step();
    add_decode(decode.macs() / steps);
    add_prefill("prefill", kBenchRows);
    add_prefill("prefill_128", kBenchFewRows);
    add_record();
    add_replays();
    report_.peak_rss_bytes = peak_rss_bytes();
    set_ceilings(work_->make_ceilings());
    for (Row& row : rows_) {
      if (row.result.ceiling.empty()) row.result.ceiling = report_.memory_work;
    }
  }

  /// `ceiling` empty: the work of the memory, whose name is not known yet.
  void add_row(std::string name, std::string ceiling, std::uint64_t macs,
               std::function<void(BenchResult&)> measure) {
    BenchResult result;
    result.name = std::move(name);
    result.ceiling = std::move(ceiling);
    result.macs = macs;
    rows_.push_back({std::move(result), std::move(measure)});
  }

  static double note(BenchResult& result, const Timed& timed) {
    const double rate = static_cast<double>(timed.rows) / timed.seconds;
    result.rows = timed.rows;
    result.tokens_per_s.push_back(rate);
    result.cpu_share.push_back(timed.cpu_share);
    return rate;
  }

  void measure_peaks() {
    report_.fma_flops_per_s.push_back(ceilings_->fma_flops_per_s());
    report_.int8_ops_per_s.push_back(ceilings_->int8_ops_per_s());
  }

  double memory_rate() {
    report_.memory_bytes_per_s.push_back(ceilings_->memory_bytes_per_s());
    return report_.memory_bytes_per_s.back();
  }

  /// Work that is bound by reading the weights: bandwidth is measured before and after it.
  template <class Work>
  void against_memory(BenchResult& result, Work&& work) {
    const double before = memory_rate();
    note(result, work());
    const double bytes_per_s = (before + memory_rate()) / 2;
    result.ceiling_tokens_per_s.push_back(bytes_per_s /
                                          static_cast<double>(report_.bytes_per_token));
  }

  /// Work that is bound by its products, which are done again alone.
  template <class Work>
  void against_products(BenchResult& result, const MatmulTrace& products, Work&& work) {
    const Timed timed = work();
    note(result, timed);
    result.ceiling_tokens_per_s.push_back(static_cast<double>(timed.rows) /
                                          work_->repeat_products(products));
  }

  void add_decode(std::uint64_t macs_per_step) {
    if (!wanted("decode")) return;
    add_row("decode", "", macs_per_step * options_.n, [this](BenchResult& result) {
      against_memory(result, [this] { return work_->decode(); });
    });
  }

  void add_prefill(const std::string& name, std::uint32_t rows) {
    if (!wanted(name)) return;
    const MatmulTrace products = work_->trace([&] { work_->prefill(rows); });
    add_row(name, "matmul", products.macs(), [this, rows, products](BenchResult& result) {
      against_products(result, products, [this, rows] { return work_->prefill(rows); });
    });
  }

  void add_record() {
    if (!wanted("record")) return;
    const MatmulTrace products = work_->trace([&] { work_->record(/*with_ledger=*/true); });
    add_row("record", "", products.macs(), [this](BenchResult& result) {
      const bool ledger_first = result.tokens_per_s.size() % 2 == 0;
      Timed plain;
      if (!ledger_first) plain = work_->record(/*with_ledger=*/false);
      against_memory(result, [this] { return work_->record(/*with_ledger=*/true); });
      if (ledger_first) plain = work_->record(/*with_ledger=*/false);
      result.no_ledger_tokens_per_s.push_back(static_cast<double>(plain.rows) / plain.seconds);
    });
  }

  void add_replays() {
    const bool step = wanted("replay_step");
    // Under cublas a row's bits depend on how many are computed at once.
    const bool parallel = wanted("replay_parallel") && options_.numerics == kPortable;
    if ((!step && !parallel) || cancel_) return;
    observer_.on_progress("recording the run to replay", 0, 1, "");
    const bool has_run = work_->make_recorded(parallel);
    if (cancel_) return;
    if (!has_run) {
      log_warning("the model ends its text at once: no replay is measured");
      return;
    }
    if (step) {
      const MatmulTrace products = work_->trace([&] { work_->replay_step(); });
      add_row("replay_step", "", products.macs(), [this](BenchResult& result) {
        against_memory(result, [this] { return work_->replay_step(); });
      });
    }
    if (!parallel) return;
    const MatmulTrace products = work_->trace([&] { work_->replay_parallel(); });
    add_row("replay_parallel", "matmul", products.macs(), [this, products](BenchResult& result) {
      against_products(result, products, [this] { return work_->replay_parallel(); });
    });
  }

  BenchOptions options_;
  const std::atomic<bool>& cancel_;
  Observer& observer_;
  BenchReport report_;
  BenchWork* work_ = nullptr;
  std::unique_ptr<Ceilings> ceilings_;
  std::vector<Row> rows_;
  std::uint64_t n_done_ = 0;
};

}  // namespace

const std::vector<std::string>& bench_names() {
  static const std::vector<std::string> kNames = {"decode", "prefill",     "prefill_128",
                                                  "record", "replay_step", "replay_parallel"};
  return kNames;
}

BenchReport bench(const BenchOptions& options, const std::atomic<bool>& cancel,
                  Observer& observer) {
  return Bench(options, cancel, observer).run();
}

}  // namespace detrun
