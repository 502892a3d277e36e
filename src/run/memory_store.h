// A run that is kept in memory only: the same fields and steps, no number, no seal.
#pragma once

#include "run/run_store.h"

namespace detrun {

class MemoryStore final : public RunStore {
 public:
  /// Adds an id (UUIDv7) to the fields.
  explicit MemoryStore(FieldMap start_fields);

  void start() override {}
  bool entered() override { return true; }
  std::optional<RunRef> ref() const override { return std::nullopt; }
  void add_fields(const FieldMap& fields) override;
  void add_step(const StepRecord& step) override;
  void flush() override {}
  std::optional<Sha256Digest> finish(const FieldMap& end_fields) override;
  RunRecord result() const override { return run_; }

 private:
  RunRecord run_;
};

}  // namespace detrun
