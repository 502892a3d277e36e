// Rows to values and back: the only statements that read or insert a run. No hashing, no judgement
// beyond types; what the values must be is verify's business.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ledger/seal.h"
#include "ledger/sqlite.h"

namespace detrun::ledger {

inline constexpr std::int64_t kRunNumberMax = 2147483647;

/// The ledger's own row, the lowest of several; `rows` counts to 2. nullopt values: absent or of
/// another type.
struct LedgerRow {
  std::int64_t rows = 0;
  std::optional<std::int64_t> one;
  std::optional<FieldValue> id, created_at;
};
LedgerRow read_ledger_row(const Db& db);

/// Highest run number; 0 when there is none.
std::int64_t highest_run(const Db& db);
bool run_exists(const Db& db, std::int64_t number);
/// A run's number in a column. Error kTampered: none that a ledger can hold.
std::int64_t run_number(const Db& db, const Stmt& row, int column);
/// Numbers above `after` of runs without a seal, ascending. Error kTampered as above.
std::vector<std::int64_t> unsealed_runs(const Db& db, std::int64_t after = 0);
/// Numbers above `after` of all runs, ascending. Error kTampered as above.
std::vector<std::int64_t> runs_after(const Db& db, std::int64_t after);
bool is_sealed(const Db& db, std::int64_t number);
/// The body of the seal entry, as far as it is 32 bytes.
std::optional<Sha256Digest> read_seal(const Db& db, std::int64_t number);

/// Error kTampered: a value of a type no ledger holds.
FieldMap read_fields(const Db& db, std::int64_t number);

/// Single fields of many runs: one statement, prepared once.
class FieldReader {
 public:
  explicit FieldReader(const Db& db);
  /// nullopt when the run has no field of this name, or a value of a type no ledger holds.
  std::optional<FieldValue> read(std::int64_t number, std::string_view name);

 private:
  Stmt stmt_;
};

/// Steps one after another: rows of one run in order of their index.
class StepReader {
 public:
  StepReader(const Db& db, std::int64_t number);
  /// False at the end.
  bool next();
  std::uint64_t index() const { return index_; }
  /// nullopt when a value is of the wrong type, length or range.
  const std::optional<StepRecord>& step() const { return step_; }

 private:
  Stmt stmt_;
  std::uint64_t index_ = 0;
  std::optional<StepRecord> step_;
};

/// Every step and the joined pieces. Error kTampered: a gap, or a row that is no step.
struct StepsAndText {
  std::vector<StepRecord> steps;
  std::string text;
};
StepsAndText read_steps(const Db& db, std::int64_t number, bool keep_steps);

/// What an unsealed run is sealed from. Error kTampered as above.
RunContent read_content(const Db& db, std::int64_t number);

void insert_run(const Db& db, std::int64_t number, const std::string& id, const RunSecret& secret);
void insert_fields(const Db& db, std::int64_t number, const FieldMap& fields);
void insert_steps(const Db& db, std::int64_t number, const std::vector<StepRecord>& steps);
/// The index the next log entry gets.
std::int64_t next_log_index(const Db& db);
/// Leaves, block roots and the seal entry.
void insert_seal(const Db& db, std::int64_t number, const SealedRun& sealed,
                 std::int64_t log_index);

/// The digest in a blob of its length.
std::optional<Sha256Digest> to_digest(const std::optional<std::string>& bytes);

}  // namespace detrun::ledger
