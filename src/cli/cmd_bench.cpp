// `detrun bench`: speed in tokens a second, each figure beside what the machine could do at most.
#include <algorithm>
#include <limits>
#include <memory>

#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "detrun/run.h"

namespace detrun::cli {
namespace {

constexpr double kCoresShared = 0.9;  // a smaller share of processor time is worth a remark

struct BenchArguments {
  BenchOptions options;
  std::optional<std::string> only;
  bool json = false;
};

class BenchObserver : public Observer {
 public:
  explicit BenchObserver(Session& session) : progress_(session.console, !session.common.quiet) {}
  void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) override {
    progress_.update(what, done, total, unit);
  }

 private:
  Progress progress_;
};

std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

std::string giga(double value) { return fixed(value / 1e9, 1); }

std::string model_line(const BenchReport& report) {
  std::string out = "model     " + shown(report.model_name.empty() ? "?" : report.model_name);
  out += ", " + shown(report.arch) + ", " + report.quantization + ", " +
         fixed(static_cast<double>(report.n_params) / 1e6, 1) + " million parameters\n";
  out += "          " + fixed(static_cast<double>(report.file_bytes) / 1e6, 1) + " MB, " +
         fixed(static_cast<double>(report.bytes_per_token) / 1e6, 1) +
         " MB read per token of decode\n";
  return out;
}

std::string load_line(const BenchReport& report) {
  std::string out = "load      " + fixed(report.load_s, 3) + " s, ";
  if (report.made_on_device) {
    out += "weights made on the device";
  } else {
    out += "SHA-256 of the file " + fixed(report.sha256_s, 3) + " s";
  }
  if (report.sha256_s > 0) out += ": ratio " + fixed(report.load_s / report.sha256_s, 2);
  if (report.peak_rss_bytes > report.kv_bytes && report.file_bytes > 0) {
    const auto peak = static_cast<double>(report.peak_rss_bytes - report.kv_bytes);
    out += "; peak memory without the cache " + fixed(peak / 1e6, 1) + " MB: ratio " +
           fixed(peak / static_cast<double>(report.file_bytes), 2);
  }
  return out + "\n";
}

std::string head_text(const BenchReport& report) {
  const bool has_model = report.file_bytes > 0;
  std::string out = has_model ? model_line(report) : "";
  const bool on_device = !report.device.empty();
  out += "engine    " + (on_device ? report.backend + ", " + shown(report.device)
                                   : counted(report.threads, "thread"));
  if (has_model) {
    out += ", context " + std::to_string(report.ctx) + ", chunk " + std::to_string(report.chunk);
    out += ", numerics " + report.numerics;
  }
  out += "\n";
  if (has_model) out += load_line(report);
  out += "ceilings  " + report.memory_work + " " + giga(median(report.memory_bytes_per_s)) +
         " GB/s, fp32 FMA " + giga(median(report.fma_flops_per_s)) + " GFLOP/s, int8 " +
         giga(median(report.int8_ops_per_s)) + " GOP/s (" + report.ceilings_loops + " loops)\n";
  return out;
}

std::string results_table(const BenchReport& report) {
  Table table({{"result", false},
               {"rows", true},
               {"tokens/s", true},
               {"slowest", true},
               {"fastest", true},
               {"ceiling", true},
               {"of", false},
               {"ratio", true},
               {"GOP/s", true}});
  for (const BenchResult& result : report.results) {
    if (result.tokens_per_s.empty()) continue;
    const auto [low, high] =
        std::minmax_element(result.tokens_per_s.begin(), result.tokens_per_s.end());
    const double rate = median(result.tokens_per_s);
    const double ops = 2.0 * static_cast<double>(result.macs) / static_cast<double>(result.rows);
    table.add({result.name, std::to_string(result.rows), fixed(rate, 1), fixed(*low, 1),
               fixed(*high, 1), fixed(median(result.ceiling_tokens_per_s), 1),
               result.ceiling == "read"   ? "reading"
               : result.ceiling == "copy" ? "copying"
                                          : "matmul kernel",
               fixed(ceiling_ratio(result), 2), giga(ops * rate)});
  }
  return table.text();
}

std::string notes_text(const BenchReport& report) {
  std::string out;
  for (const BenchResult& result : report.results) {
    if (const auto overhead = ledger_overhead(result)) {
      out += "record: the ledger costs " + fixed(100 * *overhead, 1) + " % (" +
             fixed(median(result.no_ledger_tokens_per_s), 1) + " tokens/s without it)\n";
    }
  }
  for (const BenchResult& result : report.results) {
    const double share = median(result.cpu_share);
    if (result.tokens_per_s.empty() || share >= kCoresShared || !report.device.empty()) continue;
    out += result.name + ": the cores were this process's for " + fixed(100 * share, 0) +
           " % of the time; other work slows it down\n";
  }
  if (report.cancelled) out += "cancelled: figures of what was measured until then\n";
  return out;
}

std::string text_of(const BenchReport& report) {
  std::string out = head_text(report);
  if (report.file_bytes > 0) out += "\n" + results_table(report);
  return out + notes_text(report);
}

ExitCode run_bench(const BenchArguments& arguments, Session& session) {
  BenchOptions options = arguments.options;
  const bool takes_model = arguments.only != "ceilings";
  if (takes_model && options.model_path.empty() && options.shape.empty() && options.type.empty()) {
    options.model_path = environment("DETRUN_MODEL");
  }
  if (arguments.only) options.only = split_names(*arguments.only);
  const Interrupt interrupt;
  BenchReport report;
  {
    BenchObserver observer(session);
    report = bench(options, interrupt.flag(), observer);
  }
  session.console.write(arguments.json ? bench_to_json(report).dump() + "\n" : text_of(report));
  return report.cancelled ? ExitCode::kCancelled : ExitCode::kOk;
}

}  // namespace

Runner build_bench(CLI::App& app) {
  auto arguments = std::make_shared<BenchArguments>();
  BenchOptions& options = arguments->options;
  constexpr const char* kModel = "Model";
  constexpr const char* kMeasured = "Measurements";
  constexpr std::uint64_t kMax = std::numeric_limits<std::int32_t>::max();
  add_text(app, {"-m,--model", "MODEL", kModel, "the model file, GGUF [$DETRUN_MODEL]"},
           options.model_path);
  add_text(app,
           {"--shape", "SHAPE", kModel, "instead of a file: weights made up, 135m, 1.1b or 8b"},
           options.shape);
  add_text(app, {"--type", "TYPE", kModel, "with --shape: f16, q8_0, q4_k_m and others"},
           options.type);
  add_text(app,
           {"--only", "LIST", kMeasured,
            "results to measure, separated by commas: decode, prefill, prefill_128, record, "
            "replay_step, replay_parallel [all]; ceilings: those alone, without a model"},
           arguments->only);
  add_number(app, {"--repeat", "R", kMeasured, "measurements of each result [5]"}, 1, 10000,
             [&options](std::uint64_t n) { options.repeat = static_cast<std::uint32_t>(n); });
  add_number(app, {"-n,--n", "N", kMeasured, "steps of decode, record and replay_step [64]"}, 2,
             1U << 20U, [&options](std::uint64_t n) { options.n = static_cast<std::uint32_t>(n); });
  add_number(app, {"--ctx", "N", kMeasured, "context in tokens [as many as are needed]"}, 1, kMax,
             [&options](std::uint64_t n) { options.ctx = static_cast<std::uint32_t>(n); });
  add_text(app, {"--numerics", "PROFILE", kMeasured, "arithmetic profile [portable]"},
           options.numerics);
  add_engine_options(app, options.engine);
  add_chunk_option(app, options.engine);
  add_json_switch(app, arguments->json);
  return [arguments](Session& session) { return run_bench(*arguments, session); };
}

}  // namespace detrun::cli
