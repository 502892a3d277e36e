// Which lines of a prompts file are done: what the ledger says, kept up to date run by run. Two
// processes that record one file agree through the ledger's write lock; nothing else is shared.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "detrun/digest.h"
#include "detrun/ledger.h"

namespace detrun {

class LineClaims {
 public:
  /// Reads the ledger. `ledger` outlives the object.
  LineClaims(Ledger& ledger, const Sha256Digest& file);

  /// A finished run stems from the line, as far as was looked.
  bool done(std::uint64_t line) const { return done_.contains(static_cast<std::int64_t>(line)); }

  enum class Claim {
    kBegun,  ///< `writer` is the run's
    kDone,   ///< a finished run stems from it by now
    kTaken,  ///< another process is recording it
  };
  struct Result {
    Claim claim;
    std::unique_ptr<RunWriter> writer;
  };
  /// Enters a run for the line unless there is one. Errors as Ledger::begin_run.
  Result begin(std::uint64_t line, const FieldMap& start_fields);

 private:
  void look();
  Claim state_of(std::int64_t line);

  Ledger& ledger_;
  Sha256Digest file_;
  std::int64_t seen_up_to_ = 0;
  std::set<std::int64_t> done_;
  std::map<std::int64_t, std::vector<std::int64_t>> open_;  ///< line to runs without a seal
};

}  // namespace detrun
