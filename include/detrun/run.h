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

struct EngineOptions {
  std::uint32_t threads = 0;     ///< 0: one per core this process may run on
  std::string backend = "auto";  ///< auto, cpu, cuda
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

// ---- replay -------------------------------------------------------------------------------------

struct ReplayOptions {
  std::string ledger_path = "detrun.db";
  std::vector<std::string> selectors;  ///< runs; with `all` none
  bool all = false;
  std::string model_path;     ///< empty: where it was recorded
  std::string mode = "auto";  ///< auto, step
  bool force = false;         ///< past a broken seal, a missing model digest; said in the reason
  bool strict = false;        ///< an interrupted run is INCONCLUSIVE
  bool fail_fast = false;
  EngineOptions engine;
};

struct ReplayRun {
  std::string id;           ///< empty: no run answers to the selector
  std::int64_t number = 0;  ///< 0: likewise
  Verdict verdict = Verdict::kInconclusive;
  std::string mode = "step";
  bool complete = false;  ///< false: an interrupted run's committed prefix, or not known
  std::uint64_t steps_checked = 0;
  std::optional<std::uint64_t> first_logits_difference, first_token_difference;
  std::optional<std::int32_t> recorded_token, replayed_token;
  std::string recorded_piece, replayed_piece;
  std::optional<std::uint64_t> position;  ///< token position of the first difference
  std::string reason;                     ///< one sentence; what to do next where it helps
};

struct ReplayReport {
  Verdict verdict = Verdict::kInconclusive;
  std::vector<ReplayRun> runs;
  std::string reason;  ///< why there are no runs; otherwise empty
};

/// Executes recorded runs again. Error kUsage: options, no ledger at the path; kTampered: its
/// database is damaged; kInternal: no backend can be started. What goes wrong in one run is that
/// run's verdict.
ReplayReport replay(const ReplayOptions& options, const std::atomic<bool>& cancel,
                    Observer& observer);
Json replay_to_json(const ReplayReport& report);  ///< detrun.replay/1

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
