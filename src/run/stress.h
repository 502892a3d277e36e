// The plan of a stress test: which configuration each run gets. A pure function of the axes and
// the seed, so that a finding is repeated by repeating the command.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "detrun/backend.h"
#include "detrun/run.h"

namespace detrun {

/// Every combination of the axes once, in an order that only `seed` decides. The axes are not
/// empty. Modes other than "step" and "parallel", states other than "fresh" and "reused" are the
/// caller's business.
std::vector<StressConfig> stress_plan(const StressOptions& options);

using BackendFactory = std::function<std::unique_ptr<Backend>(const CpuOptions&)>;

/// `stress` on backends of the caller's making: for tests that plant a fault in one of them.
StressReport stress_on(const StressOptions& options, BackendFactory make_backend,
                       const std::atomic<bool>& cancel, Observer& observer);

/// SHA-256 over "detrun-stress-chain/1" and every step: token, logits hash, margin and log
/// probability as in a step's leaf (detrun-ledger(5)). Two runs with one chain have the same bits.
class StepChain {
 public:
  void add(const StepRecord& step);
  Sha256Digest finish() { return hash_.finish(); }

 private:
  Sha256 hash_ = std::move(Sha256().update_part("detrun-stress-chain/1"));
};

}  // namespace detrun
