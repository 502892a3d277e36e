// The ledger: an append-only SQLite file of runs, each sealed. Format: detrun-ledger(5).
// Knows nothing of models. SQLite's types stay inside.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/digest.h"
#include "detrun/trace.h"

namespace detrun {

inline constexpr int kLedgerSchemaVersion =
    1;                                  ///< PRAGMA user_version; bump: any change of schema.sql
inline constexpr int kSealVersion = 1;  ///< sealed bytes; bump: any change of what is hashed

/// What `verify` found first, in order of run number.
struct BrokenEntry {
  std::optional<std::int64_t> entry;  ///< run number; nullopt: the ledger as a whole
  std::string id;                     ///< run id as far as it can be read
  std::string field;                  ///< "model.sha256", "steps[64..127]", "ledger.id", "seal"
  std::string why;
};

struct VerifyReport {
  bool ok = true;
  std::uint64_t runs_checked = 0, steps_checked = 0, fields_checked = 0;
  std::vector<std::string> not_checked;  ///< "run 5: live", "completeness: self-attested", ...
  std::vector<BrokenEntry> broken;       ///< first broken field of every broken run; first is first
};

/// One line of `list` without its steps.
struct RunRef {
  std::int64_t number;
  std::string id;
};

/// Where a run stands.
enum class RunState {
  kFinished,     ///< sealed with the status finished
  kEnded,        ///< sealed with another one
  kLive,         ///< not sealed, and its writer still holds its lock
  kInterrupted,  ///< not sealed, and nobody writes it
};

/// A run made of a line of a prompts file (fields prompts.sha256 and prompts.line).
struct LineRun {
  std::int64_t number, line;
};
struct LineRuns {
  std::vector<LineRun> runs;  ///< by number
  std::int64_t highest = 0;   ///< number up to which runs were looked at
};

/// Appends one run. One owner, one thread at a time. Destroyed before `finish`: the run stays
/// unsealed and counts as interrupted from then on. Every call is one IMMEDIATE transaction; when
/// it throws nothing of that call is in the file and everything before it is.
class RunWriter {
 public:
  virtual ~RunWriter() = default;
  virtual std::int64_t number() const = 0;
  virtual const std::string& id() const = 0;
  /// Facts known late. A name may be added once.
  virtual void add_fields(const FieldMap& fields) = 0;
  /// Steps in order, indexes dense from 0 over the run's life.
  virtual void add_steps(const std::vector<StepRecord>& steps) = 0;
  /// End entry: adds `fields` (status, stop_reason, ended_at, ...), step_count and log_index,
  /// stores leaves and block roots, appends the seal to the log. Returns the seal.
  virtual Sha256Digest finish(const FieldMap& fields) = 0;
};

class Ledger {
 public:
  /// Opens or creates for recording (mode 0600, WAL, synchronous=FULL), and seals interrupted runs
  /// of dead writers over their committed prefix. Error kUsage: unwritable, a directory, not
  /// SQLite, another application's, newer schema, guards missing or altered; kTampered: damaged;
  /// kInternal: disk full, I/O.
  static std::unique_ptr<Ledger> open_for_recording(const std::string& path);
  /// Opens read-only, WAL included; immutable only when folder or file is not writable and no
  /// non-empty -wal lies beside it (else Error kUsage with the remedy). Errors as above; kUsage
  /// when the file does not exist.
  static std::unique_ptr<Ledger> open_for_reading(const std::string& path);
  virtual ~Ledger() = default;

  /// Starts a run: assigns number and id (UUIDv7), adds number, id, ledger.* and seal_version to
  /// the fields, takes the writer's lock. Only when opened for recording.
  virtual std::unique_ptr<RunWriter> begin_run(const FieldMap& start_fields) = 0;
  /// The same when `wanted` says so, and nullptr otherwise. It is asked while no other process can
  /// write the ledger, maybe several times, and may read through this object.
  virtual std::unique_ptr<RunWriter> begin_run_if(const FieldMap& start_fields,
                                                  const std::function<bool()>& wanted) = 0;

  /// All runs, by number.
  virtual std::vector<RunRef> runs() const = 0;
  /// `17`, `#17`, an id, a unique part of an id of at least 4 characters, `latest`. nullopt: no
  /// such run. Error kUsage: ambiguous (the candidates are named) or shorter than 4 characters.
  virtual std::optional<RunRef> resolve(std::string_view selector) const = 0;
  /// Fields ("text" joined from the pieces included), steps when asked, state.
  virtual RunRecord read(std::int64_t number, bool with_steps) const = 0;
  /// One field as it is stored, without reading the rest; nullopt when the run has none of this
  /// name, or a value that no ledger holds.
  virtual std::optional<FieldValue> field(std::int64_t number, std::string_view name) const = 0;
  /// Of a run that is in the ledger.
  virtual RunState state(std::int64_t number) const = 0;
  /// Runs with a number above `after` made of lines of the prompts file with this digest.
  virtual LineRuns runs_of_prompts(const Sha256Digest& file, std::int64_t after) const = 0;
  /// The seal; nullopt when the run has none.
  virtual std::optional<Sha256Digest> seal(std::int64_t number) const = 0;

  /// Integrity of everything, or of one run, without any model.
  virtual VerifyReport verify() const = 0;
  virtual VerifyReport verify_run(std::int64_t number) const = 0;

  virtual const std::string& path() const = 0;
};

}  // namespace detrun
