// One recorded run, executed again and compared step by step. Knows nothing of selectors.
#pragma once

#include <atomic>
#include <string>

#include "detrun/ledger.h"
#include "detrun/run.h"
#include "run/model_cache.h"
#include "run/product_test.h"

namespace detrun {

/// What all runs of one replay command share.
struct ReplayScope {
  const ReplayOptions& options;
  const Ledger& ledger;
  Backend& backend;
  ModelCache& models;
  TestedProducts& tested;
  const std::atomic<bool>& cancel;
  Observer& observer;
};

/// The mode that is used: "step" or "parallel".
std::string replay_mode(const ReplayOptions& options);

/// Every outcome is a value; Errors of kinds other than kInternal and kTampered do not occur.
ReplayRun replay_one(const ReplayScope& scope, const RunRef& ref);

}  // namespace detrun
