// Where a run goes while it is recorded: the ledger, or memory alone (--no-ledger).
#pragma once

#include <optional>
#include <vector>

#include "detrun/run.h"
#include "detrun/trace.h"

namespace detrun {

/// Used by one thread, the recording one. Any call may throw what went wrong in an earlier one.
class RunStore {
 public:
  virtual ~RunStore() = default;
  /// To be called first: starts what stores beside this thread. When it throws, `finish` still
  /// works.
  virtual void start() = 0;
  /// Waits until the run stands in the store. False: it could not be entered, so that nothing of
  /// it can be sealed; the next call below throws why.
  virtual bool entered() = 0;
  /// The run's number and id; nothing where runs have no number. After `entered`.
  virtual std::optional<RunRef> ref() const = 0;
  /// Facts known late.
  virtual void add_fields(const FieldMap& fields) = 0;
  virtual void add_step(const StepRecord& step) = 0;
  /// Everything given so far is stored when it returns.
  virtual void flush() = 0;
  /// Ends the run. Returns the seal; nullopt where nothing seals.
  virtual std::optional<Sha256Digest> finish(const FieldMap& end_fields) = 0;
  /// The run as stored; after `finish`.
  virtual RunRecord result() const = 0;
};

}  // namespace detrun
