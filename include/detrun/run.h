// Use cases: options in, report out. Nothing here prints; what a person watches goes through
// Observer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detrun/compare.h"
#include "detrun/json.h"
#include "detrun/ledger.h"
#include "detrun/trace.h"

namespace detrun {

/// What happens while a command works. All calls come from the command's own thread.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Bytes of generated text. Returning false ends the run (the reader closed its pipe).
  virtual bool on_text(std::string_view) { return true; }
  /// The run was entered in the ledger; text follows.
  virtual void on_run_started(std::int64_t /*number*/, const std::string& /*id*/) {}
  /// Bytes of the prompt as the model saw it, before any text: for --echo.
  virtual void on_prompt(std::string_view) {}
  /// Long work: done of total in `unit` ("tokens", "bytes", "runs"); total 0: unknown.
  virtual void on_progress(std::string_view /*what*/, std::uint64_t /*done*/,
                           std::uint64_t /*total*/, std::string_view /*unit*/) {}
};

/// "auto" (CUDA where a device can be used, otherwise the CPU), "cpu", "cuda"; in test programs
/// also the emulated one.
std::vector<std::string> backend_names();

struct EngineOptions {
  std::uint32_t threads = 0;     ///< 0: one per core this process may run on
  std::string backend = "auto";  ///< one of backend_names()
  std::string device = {};       ///< of CUDA: an index or a UUID; empty: device 0
  bool no_graph = false;         ///< of CUDA: a launch for every kernel, see CudaOptions
  std::uint32_t chunk = 0;       ///< tokens a forward pass takes at once; 0: a default
};

// ---- record -------------------------------------------------------------------------------------

struct RecordOptions {
  std::string model_path;
  std::string prompt_source = "text";               ///< text, file, stdin, tokens
  std::string prompt;                               ///< bytes as given
  std::optional<std::vector<std::int32_t>> tokens;  ///< instead of a prompt: used as they are
  std::optional<std::uint64_t> n;     ///< nullopt: until an end token or a full context
  std::uint32_t ctx = 0;              ///< 0: the model's own, at most kDefaultCtxMax
  std::string kv = "f16";             ///< f16, f32
  std::string numerics = "portable";  ///< portable; others are refused by name
  EngineOptions engine;
  std::string ledger_path = "detrun.db";
  bool no_ledger = false;
  std::vector<std::pair<std::string, std::string>> tags;
};
inline constexpr std::uint32_t kDefaultCtxMax = 4096;

struct RecordReport {
  RunRecord run;  ///< as recorded; number absent with no_ledger
  std::optional<Sha256Digest> seal;
  std::uint64_t prompt_tokens = 0, steps = 0;
  double prefill_s = 0, decode_s = 0, load_s = 0;
  std::string stop_reason;
};

/// Runs a model and records the run. Order of failure: options, ledger (opened before the model is
/// loaded), model, prompt, all of them Error kUsage; kInternal where memory, threads or the disk
/// give out, kTampered for a damaged ledger. A run that fails after it began is sealed as failed
/// and the Error is thrown on.
RecordReport record(const RecordOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer);

/// An option of `record` that belongs to one run. The command line and the lines of a prompts file
/// both take it from here, so that neither knows one more than the other.
struct RunOption {
  const char* name = "";        ///< long name without dashes: the member in a line
  const char* short_name = "";  ///< a letter, or empty
  const char* metavar = "";
  const char* group = "Generation";  ///< of `--help`
  const char* doc = "";
  std::uint64_t low = 0, high = 0;  ///< of a number
  void (*set_number)(RecordOptions&, std::uint64_t) = nullptr;
  std::vector<std::string> choices = {};  ///< of a word
  std::string RecordOptions::*word = nullptr;
};
const std::vector<RunOption>& run_options();
/// Appends "KEY=VALUE", split at the first '='. Error kUsage naming `what` without one. What a name
/// and a value may hold is checked by record().
void add_tag(RecordOptions& options, const std::string& word, const std::string& what);

/// Many runs: a line of `path` (JSON objects, one a line) is a run, RecordOptions are its defaults.
struct PromptsOptions {
  std::string path;     ///< "-": standard input
  bool strict = false;  ///< one bad line, and nothing is recorded
};

struct BadLine {
  std::uint64_t line;  ///< from 1
  std::string message;
};

/// A line that was run.
struct LineReport {
  std::uint64_t line = 0;
  RecordReport report;  ///< report.run is empty when the run could not even begin
  std::string error;    ///< why it failed; empty otherwise
};

class PromptsObserver : public Observer {
 public:
  /// All bad lines, in their order, before anything is recorded; and a line whose context no memory
  /// holds when its turn comes.
  virtual void on_bad_line(const BadLine&) {}
  /// Before the first run: lines of the file that are prompts, and how many were recorded earlier.
  virtual void on_lines(std::uint64_t /*n_lines*/, std::uint64_t /*n_done*/) {}
  /// A run was sealed, or failed. Returning false ends the recording.
  virtual bool on_line(const LineReport&) { return true; }
};

struct PromptsReport {
  std::uint64_t lines = 0;     ///< that are prompts, good or bad
  std::uint64_t done = 0;      ///< recorded earlier, or by another process meanwhile
  std::uint64_t recorded = 0;  ///< finished here
  std::uint64_t failed = 0, bad = 0;
  bool cancelled = false, closed = false;
};

/// Records every line of a prompts file that no finished run of the ledger stems from, each alone
/// in an empty context. Several processes may record one file: no line is recorded twice. Errors
/// as record's, and kUsage for a file that cannot be read or holds no line, and for a bad line with
/// `strict`. A run that fails is sealed and counted; an Error that the ledger or the model is to
/// blame for ends it all.
PromptsReport record_prompts(const RecordOptions& defaults, const PromptsOptions& prompts,
                             const std::atomic<bool>& cancel, PromptsObserver& observer);

// ---- replay -------------------------------------------------------------------------------------

struct ReplayOptions {
  std::string ledger_path = "detrun.db";
  std::vector<std::string> selectors;  ///< runs; with `all` none
  bool all = false;                    ///< also what a filter without selectors means
  // Filters, combined by "and". Empty: not given.
  std::vector<std::string> tags;      ///< "KEY=VALUE", all of them
  std::string since;                  ///< started then or later: UTC date or time, or "2h", "7d"
  std::string sample;                 ///< "12.5%": about that share, each run on its own
  std::optional<std::uint64_t> seed;  ///< of the sample; 0 when absent
  std::string shard;                  ///< "i/n": the i-th of n parts of what the filters leave
  std::uint32_t jobs = 1;             ///< runs at once
  std::string model_path;             ///< empty: where it was recorded
  std::string mode = "auto";          ///< auto, step, parallel
  bool force = false;   ///< past a broken seal, a missing model digest; said in the reason
  bool strict = false;  ///< an interrupted run is INCONCLUSIVE
  bool fail_fast = false;
  EngineOptions engine;
};

struct ReplayRun {
  std::string id;           ///< empty: no run answers to the selector
  std::int64_t number = 0;  ///< 0: likewise
  Verdict verdict = Verdict::kInconclusive;
  std::string mode;       ///< step or parallel; empty when the run was not read
  bool complete = false;  ///< false: an interrupted run's committed prefix, or not known
  std::uint64_t steps_checked = 0;
  std::optional<std::uint64_t> first_logits_difference, first_token_difference;
  std::optional<std::int32_t> recorded_token, replayed_token;
  std::string recorded_piece, replayed_piece;
  std::optional<std::uint64_t> position;  ///< token position of the first difference
  std::string reason;                     ///< one sentence; what to do next where it helps
  double seconds = 0;                     ///< how long it took
};

struct ReplayReport {
  Verdict verdict = Verdict::kInconclusive;
  std::vector<ReplayRun> runs;
  std::string reason;                ///< why there are no runs; otherwise empty
  std::vector<RunRef> not_replayed;  ///< selected, but the replay ended before them
  std::int64_t started_ms = 0;       ///< when, UTC
  double seconds = 0;
};

/// Executes recorded runs again. Error kUsage: options, no ledger at the path; kTampered: its
/// database is damaged; kInternal: no backend can be started. What goes wrong in one run is that
/// run's verdict.
ReplayReport replay(const ReplayOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer);
Json replay_to_json(const ReplayReport& report);  ///< detrun.replay/1
/// The report for readers of JUnit files: DIVERGED is a failure; TAMPERED, ERROR and INCONCLUSIVE
/// are errors, so that nothing undecided looks like a success; what was not replayed is skipped.
std::string replay_to_junit(const ReplayReport& report);

// ---- stress -------------------------------------------------------------------------------------

struct StressOptions {
  std::string model_path;
  std::string prompt;                               ///< bytes as given
  std::optional<std::vector<std::int32_t>> tokens;  ///< instead of a prompt
  std::uint64_t n = 16;                             ///< most tokens of a run
  std::uint64_t runs = 100;
  std::uint32_t ctx = 0;   ///< as in RecordOptions
  std::string kv = "f16";  ///< f16, f32
  std::uint64_t seed = 0;  ///< decides the order of the configurations, nothing else
  // What is varied; an empty list stands for its default.
  std::vector<std::uint32_t> threads;  ///< 1 to 8
  std::vector<std::uint32_t> chunks;   ///< 1 2 3 7 8 63 64 65 512 and the whole prompt
  std::vector<std::string> isas;       ///< all that this CPU has, best first
  std::vector<std::string> states;     ///< fresh: a new context; reused: one that held another run
  std::vector<std::string> modes;      ///< step, parallel (as in ReplayOptions)
};

/// How one run is executed. None of it may have an influence on a bit.
struct StressConfig {
  std::string isa;
  std::uint32_t threads = 0, chunk = 0;
  std::string state, mode;
  bool operator==(const StressConfig&) const = default;
};
/// "avx2, 2 threads, chunk 64, fresh context, step".
std::string describe(const StressConfig& config);

/// One of the distinct outputs.
struct StressOutput {
  Sha256Digest chain;           ///< of the steps up to the first token that is not run 0's
  std::uint64_t runs = 0;       ///< how many runs gave it
  std::uint64_t first_run = 0;  ///< the first of them
  StressConfig config;          ///< of that run
  std::optional<std::uint64_t> first_logits_difference, first_token_difference;  ///< from run 0
  std::string difference;  ///< one sentence; empty for the output of run 0
};

struct StressReport {
  std::uint64_t runs = 0;             ///< executed; fewer than asked for after Ctrl-C
  std::uint64_t configurations = 0;   ///< distinct ones among them
  std::uint64_t steps = 0;            ///< of run 0
  std::vector<StressOutput> outputs;  ///< in order of first appearance; [0] is run 0's
};

/// Runs one prompt many times under different configurations. Run 0 is step by step in a fresh
/// context with the first of each axis. Errors as record's; an Error out of a run names the run
/// and its configuration. Writes no ledger.
StressReport stress(const StressOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer);
Json stress_to_json(const StressReport& report);  ///< detrun.stress/1

// ---- bench --------------------------------------------------------------------------------------

struct BenchOptions {
  std::string model_path;   ///< a model file, or empty with a shape
  std::string shape, type;  ///< of a synthetic model, made in memory; case is ignored
  EngineOptions engine;
  std::uint32_t ctx = 0;              ///< 0: as many positions as the measurements need
  std::uint32_t repeat = 5;           ///< measurements of each kind, interleaved
  std::uint32_t n = 64;               ///< steps of decode, record and replay_step
  std::string numerics = "portable";  ///< or "cublas", under which nothing is replayed in parallel
  std::vector<std::string> only;      ///< names of results; empty: all but "ceilings"
};
/// Names of the results, in the order of the report.
const std::vector<std::string>& bench_names();

/// One kind of work, measured several times. Lists have one entry a measurement.
struct BenchResult {
  std::string name;
  std::uint64_t rows = 0;  ///< of one measurement; all of them count
  std::vector<double> tokens_per_s;
  /// What it is compared with: "matmul", or the memory's work, "read" or "copy".
  std::string ceiling;
  std::vector<double> ceiling_tokens_per_s;    ///< measured beside each
  std::uint64_t macs = 0;                      ///< of its matrix products
  std::vector<double> no_ledger_tokens_per_s;  ///< record only: the same without a ledger
  /// Processor time over threads times time: below 0.9 others had the cores, or a GPU computed.
  std::vector<double> cpu_share;
};

struct BenchReport {
  Json machine;
  std::string ceilings_loops, memory_work;  ///< as Ceilings names them
  std::vector<double> memory_bytes_per_s, fma_flops_per_s, int8_ops_per_s;
  std::string model_name, arch, quantization;
  std::string numerics;  ///< profile
  bool synthetic = false;
  bool made_on_device = false;  ///< its matrices: there were no bytes to hash or to read
  std::uint64_t file_bytes = 0, n_params = 0;
  std::uint64_t bytes_per_token = 0;  ///< weights and cache that one step of decode reads
  double load_s = 0;    ///< weights laid out and file hashed, side by side; or weights made
  double sha256_s = 0;  ///< the file hashed alone; 0: it was not
  std::uint64_t peak_rss_bytes = 0;  ///< of loading and running; 0: not known
  std::uint64_t kv_bytes = 0;
  std::string backend, device;  ///< "cpu"; "cuda" and the name of the GPU
  std::uint32_t threads = 0, ctx = 0, chunk = 0;
  std::vector<BenchResult> results;
  bool cancelled = false;  ///< what was not measured is absent
};

double median(std::vector<double> values);  ///< 0 for none
/// Median over the measurements of the ratio to the ceiling beside it.
double ceiling_ratio(const BenchResult& result);
/// Share of speed that the ledger costs: 0.01 is one percent. nullopt: not measured.
std::optional<double> ledger_overhead(const BenchResult& result);

/// Measures speed. Results that need what this model cannot do (it ends at once) have no
/// measurements. Error kUsage: a model or options that cannot be used; kInternal as record's, and
/// when a replay differs.
BenchReport bench(const BenchOptions& options, const std::atomic<bool>& cancel, Observer& observer);
Json bench_to_json(const BenchReport& report);  ///< detrun.bench/1

// ---- readers ------------------------------------------------------------------------------------

/// Checks every seal. A damaged ledger is a finding. Error kUsage: no ledger at the path, a newer
/// schema; kInternal: it cannot be read.
VerifyReport verify(const std::string& ledger_path);
Json verify_to_json(const VerifyReport& report);  ///< detrun.verify/1

/// A run as the ledger holds it.
struct ShowReport {
  RunRecord run;
  std::optional<Sha256Digest> seal;  ///< nullopt: running, interrupted, or not in a ledger
};
/// All runs by number, without their steps. Error kUsage: no ledger at the path, a newer schema;
/// kTampered: its database is damaged.
std::vector<ShowReport> list_runs(const std::string& ledger_path);
/// One run with its steps. Error kInconclusive when no run answers to the selector; others as
/// above.
ShowReport show_run(const std::string& ledger_path, const std::string& selector);
/// detrun.run/1: run_to_json with the seal, null where there is none. No errors.
Json show_to_json(const ShowReport& report, bool with_steps);

/// The stack document of the machine, the process and the backend that would run. Error kUsage: a
/// backend that this build lacks or nobody knows; kInternal: its threads cannot be started.
Json fingerprint(const EngineOptions& engine);

/// What `--version` prints.
struct VersionReport {
  std::string version, build_type, compiler;
  std::vector<std::string> cpu_isas;  ///< built in and usable here, best first
  std::string cuda;                   ///< empty: built without CUDA
  std::string cuda_backend = "cuda";  ///< its name, also where there is none
  bool cuda_usable = false;           ///< it has a device here
  std::string cuda_device;            ///< one line: the device, or why there is none
  std::string numerics_profile;
  int numerics_version = 0, ledger_schema = 0, seal_version = 0;
};
/// Facts of the build. No errors.
VersionReport version_report();

struct TokenizeOptions {
  std::string model_path;
  std::string text;      ///< bytes as given
  bool bos = false;      ///< a begin token comes first
  bool special = false;  ///< control tokens spelled in the text are taken as such
};
/// Token ids of a text by the model's vocabulary. Error kUsage: a model file or vocabulary that
/// cannot be used, a begin token that the vocabulary does not have.
std::vector<std::int32_t> tokenize(const TokenizeOptions& options);

}  // namespace detrun
