// One run checked: its rows against its leaves, its leaves against its seal. Private to verify.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ledger/sqlite.h"
#include "ledger/store.h"

namespace detrun::ledger {

/// What is wrong first; `field` as in detrun-ledger(5).
struct Finding {
  std::string field, why;
};

struct RunCheck {
  std::string id;       ///< as far as it is text
  bool sealed = false;  ///< an unsealed run has only its form checked
  std::optional<Finding> broken;
  std::uint64_t fields = 0, steps = 0;  ///< compared with a hash and found equal
};

/// A seal entry of the log.
struct SealEntry {
  std::optional<FieldValue> index, version;
  std::optional<Sha256Digest> body;
};

/// What every run is compared with, read once.
struct SharedRows {
  LedgerRow ledger;
  std::map<std::int64_t, std::vector<SealEntry>> seals;  ///< by run, in order of the log
  std::optional<std::string> damage;  ///< why they could not be read: then no run can be checked
};
/// The rows of ledger and log. `damage` is the caller's.
SharedRows read_shared_rows(const Db& db);

/// Fills `result`, as far as it comes when SQLite meets damage and this throws.
void check_run(const Db& db, const SharedRows& shared, std::int64_t number, RunCheck& result);

}  // namespace detrun::ledger
