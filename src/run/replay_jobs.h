// The runs of one replay command, one after the other or several at once. Which run is replayed by
// which job has no influence on its verdict. Knows nothing of selectors and of the worst verdict.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "detrun/ledger.h"
#include "detrun/run.h"

namespace detrun {

/// A result for each run of `runs`, in its order; nullopt where the replay ended before the run:
/// after a cancellation, or with fail_fast after a run that is not REPRODUCED. What goes wrong in
/// one run is that run's verdict. Error kInternal when a backend or a thread cannot be started.
/// The observer is called from this thread only.
std::vector<std::optional<ReplayRun>> replay_runs(const ReplayOptions& options,
                                                  const std::vector<RunRef>& runs,
                                                  const Ledger& ledger,
                                                  const std::atomic<bool>& cancel,
                                                  Observer& observer);

}  // namespace detrun
