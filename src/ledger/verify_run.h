// One run checked: its rows against its leaves, its leaves against its seal. Private to verify.
#pragma once

#include <optional>
#include <string>

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

RunCheck check_run(const Db& db, const LedgerRow& ledger, std::int64_t number);

}  // namespace detrun::ledger
