// A run on its way into the ledger: a writer thread enters it beside the prompt's prefill, then
// commits the steps that the recording thread queues, in batches at most 100 ms apart, so that no
// step waits for the disk. What the writer thread could not store (disk full) is thrown at the
// recording thread's next call.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "detrun/ledger.h"
#include "run/run_store.h"

namespace detrun {

class LedgerSink final : public RunStore {
 public:
  /// Enters the run, on the writer thread. Not null.
  using Enter = std::function<std::unique_ptr<RunWriter>()>;

  /// `ledger` is used by `result`; it and what `enter` uses outlive the object. Without `start`
  /// everything is committed by `finish`.
  LedgerSink(const Ledger& ledger, Enter enter);
  /// The run was entered already; the writer is this object's alone.
  LedgerSink(const Ledger& ledger, std::unique_ptr<RunWriter> writer);
  /// Commits what is queued as far as that works. A run that was not finished stays unsealed.
  ~LedgerSink() override;
  LedgerSink(const LedgerSink&) = delete;
  LedgerSink& operator=(const LedgerSink&) = delete;

  void start() override;
  bool entered() override;
  std::optional<RunRef> ref() const override;
  void add_fields(const FieldMap& fields) override;
  void add_step(const StepRecord& step) override;
  void flush() override;
  std::optional<Sha256Digest> finish(const FieldMap& end_fields) override;
  RunRecord result() const override;

 private:
  void enter(std::unique_lock<std::mutex>& lock);
  void write_loop();
  void write_batches(std::unique_lock<std::mutex>& lock);
  void commit(const FieldMap& fields, const std::vector<StepRecord>& steps);
  bool nothing_queued() const { return queued_steps_.empty() && queued_fields_.empty(); }
  void throw_if_failed();

  const Ledger& ledger_;
  Enter enter_;
  std::unique_ptr<RunWriter> writer_;  ///< of the writer thread until that is joined

  std::mutex mutex_;  ///< guards everything down to error_
  std::condition_variable wake_, idle_;
  std::vector<StepRecord> queued_steps_;
  FieldMap queued_fields_;
  bool entering_ = false;  ///< the writer thread is at it
  bool hurry_ = false;     ///< commit now, somebody waits
  bool stopping_ = false;
  bool writing_ = false;  ///< a batch is on its way
  std::exception_ptr error_;

  std::thread thread_;
};

}  // namespace detrun
