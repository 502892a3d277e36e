// See ledger_sink.h. The writer is touched by the writer thread only, and by `finish` after that
// thread was joined. After an error nothing more is committed: indexes must stay dense.
#include "run/ledger_sink.h"

#include <chrono>
#include <cstddef>
#include <utility>

#include "run/start_thread.h"

namespace detrun {
namespace {

/// How long the first step of a batch may wait for others. With the time of a commit on top,
/// batches stay within the 100 ms of the manual.
constexpr std::chrono::milliseconds kGatherTime{60};

/// Room for the steps of a batch. Faster models grow it once.
constexpr std::size_t kBatchSteps = 256;

}  // namespace

LedgerSink::LedgerSink(const Ledger& ledger, Enter enter)
    : ledger_(ledger), enter_(std::move(enter)) {
  queued_steps_.reserve(kBatchSteps);
}

LedgerSink::LedgerSink(const Ledger& ledger, std::unique_ptr<RunWriter> writer)
    : LedgerSink(ledger, Enter()) {
  writer_ = std::move(writer);
}

void LedgerSink::start() {
  entering_ = writer_ == nullptr;
  try {
    thread_ = start_thread([this] { return std::thread([this] { write_loop(); }); });
  } catch (...) {
    entering_ = false;
    throw;
  }
}

/// Without a writer thread this one enters the run.
bool LedgerSink::entered() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return !entering_; });
  if (writer_ == nullptr && !error_) enter(lock);
  return writer_ != nullptr;
}

std::optional<RunRef> LedgerSink::ref() const { return RunRef{writer_->number(), writer_->id()}; }

LedgerSink::~LedgerSink() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LedgerSink::throw_if_failed() {
  if (error_) std::rethrow_exception(error_);
}

void LedgerSink::add_fields(const FieldMap& fields) {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  if (fields.empty()) return;
  queued_fields_.insert(fields.begin(), fields.end());
  wake_.notify_all();
}

void LedgerSink::add_step(const StepRecord& step) {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  queued_steps_.push_back(step);
  if (queued_steps_.size() == 1) wake_.notify_all();
}

void LedgerSink::flush() {
  std::unique_lock lock(mutex_);
  hurry_ = true;
  wake_.notify_all();
  idle_.wait(lock, [&] { return error_ || (nothing_queued() && !writing_ && !entering_); });
  hurry_ = false;
  throw_if_failed();
}

/// Not under the lock that is given: steps may be queued meanwhile.
void LedgerSink::enter(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::unique_ptr<RunWriter> writer;
  std::exception_ptr failure;
  try {
    writer = enter_();
    DETRUN_CHECK(writer != nullptr);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  writer_ = std::move(writer);
  error_ = failure;
  entering_ = false;
  idle_.notify_all();
}

void LedgerSink::write_loop() {
  std::unique_lock lock(mutex_);
  if (entering_) enter(lock);
  if (error_) return;
  write_batches(lock);
}

void LedgerSink::write_batches(std::unique_lock<std::mutex>& lock) {
  // The two vectors change places with each batch, so that queueing a step allocates nothing but
  // its piece.
  std::vector<StepRecord> steps;
  FieldMap fields;
  steps.reserve(queued_steps_.capacity());
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !nothing_queued(); });
    if (nothing_queued()) return;
    // A fact known late decides whether the run can be replayed after a kill: it does not wait.
    wake_.wait_for(lock, kGatherTime,
                   [&] { return stopping_ || hurry_ || !queued_fields_.empty(); });
    steps.swap(queued_steps_);
    fields.swap(queued_fields_);
    writing_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      commit(fields, steps);
    } catch (...) {
      failure = std::current_exception();
    }
    steps.clear();
    fields.clear();
    lock.lock();
    writing_ = false;
    if (failure) error_ = failure;
    idle_.notify_all();
    if (failure) return;
  }
}

void LedgerSink::commit(const FieldMap& fields, const std::vector<StepRecord>& steps) {
  if (!steps.empty()) writer_->add_steps(steps);
  if (!fields.empty()) writer_->add_fields(fields);
}

std::optional<Sha256Digest> LedgerSink::finish(const FieldMap& end_fields) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  entered();
  throw_if_failed();
  commit(queued_fields_, queued_steps_);  // empty unless the thread could not be started
  return writer_->finish(end_fields);
}

RunRecord LedgerSink::result() const { return ledger_.read(writer_->number(), true); }

}  // namespace detrun
