// The way of steps into the ledger: batches in time, order kept, errors surface and lose nothing
// that was committed before them.
#include "run/ledger_sink.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "detrun/error.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using namespace std::chrono_literals;
using test::thrown_by;

/// What a writer was given. Shared, because the sink owns the writer.
struct Written {
  std::mutex mutex;
  std::vector<StepRecord> steps;
  FieldMap late, end;
  std::uint64_t n_batches = 0;
  std::size_t least_room = 1000000;  ///< smallest capacity of a batch
  std::atomic<bool> fail = false;
  bool finished = false;

  std::size_t n_steps() {
    const std::lock_guard lock(mutex);
    return steps.size();
  }
};

class FakeWriter final : public RunWriter {
 public:
  explicit FakeWriter(Written& written) : written_(written) {}
  std::int64_t number() const override { return 1; }
  const std::string& id() const override { return id_; }
  void add_fields(const FieldMap& fields) override {
    const std::lock_guard lock(written_.mutex);
    refuse_if_full();
    written_.late.insert(fields.begin(), fields.end());
  }
  void add_steps(const std::vector<StepRecord>& steps) override {
    const std::lock_guard lock(written_.mutex);
    refuse_if_full();
    written_.steps.insert(written_.steps.end(), steps.begin(), steps.end());
    ++written_.n_batches;
    written_.least_room = std::min(written_.least_room, steps.capacity());
  }
  Sha256Digest finish(const FieldMap& fields) override {
    const std::lock_guard lock(written_.mutex);
    refuse_if_full();
    written_.end = fields;
    written_.finished = true;
    return {};
  }

 private:
  void refuse_if_full() const {
    if (written_.fail) throw Error(ExitCode::kInternal, "disk full");
  }
  Written& written_;
  std::string id_ = "id";
};

/// The sink asks a ledger only for the result; these tests do not.
class NoLedger final : public Ledger {
 public:
  std::unique_ptr<RunWriter> begin_run(const FieldMap&) override { return nullptr; }
  std::unique_ptr<RunWriter> begin_run_if(const FieldMap&, const std::function<bool()>&) override {
    return nullptr;
  }
  std::optional<FieldValue> field(std::int64_t, std::string_view) const override { return {}; }
  RunState state(std::int64_t) const override { return RunState::kInterrupted; }
  LineRuns runs_of_prompts(const Sha256Digest&, std::int64_t) const override { return {}; }
  std::vector<RunRef> runs() const override { return {}; }
  std::optional<RunRef> resolve(std::string_view) const override { return {}; }
  RunRecord read(std::int64_t, bool) const override { return {}; }
  std::optional<Sha256Digest> seal(std::int64_t) const override { return {}; }
  VerifyReport verify() const override { return {}; }
  VerifyReport verify_run(std::int64_t) const override { return {}; }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
};

StepRecord step(std::uint64_t index) {
  StepRecord record{};
  record.index = index;
  record.token = static_cast<std::int32_t>(index);
  return record;
}

template <typename F>
bool within(std::chrono::milliseconds limit, F&& condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return condition();
}

TEST_CASE("all steps arrive in order, in far fewer batches than steps") {
  Written written;
  const NoLedger ledger;
  LedgerSink sink(ledger, std::make_unique<FakeWriter>(written));
  sink.start();
  for (std::uint64_t i = 0; i < 5000; ++i) sink.add_step(step(i));
  FieldMap end;
  end.emplace(field::status, "finished");
  CHECK(sink.finish(end).has_value());
  REQUIRE(written.steps.size() == 5000);
  for (std::uint64_t i = 0; i < 5000; ++i) CHECK(written.steps[i].index == i);
  CHECK(written.n_batches < 100);
  CHECK(written.end.count(field::status) == 1);
}

TEST_CASE("a run is entered beside the caller, and steps queued meanwhile follow its entry") {
  Written written;
  const NoLedger ledger;
  std::atomic<bool> let_in = false;
  LedgerSink sink(ledger, [&] {
    while (!let_in) std::this_thread::sleep_for(1ms);
    return std::make_unique<FakeWriter>(written);
  });
  sink.start();  // returns, though nobody is let in
  for (std::uint64_t i = 0; i < 3; ++i) sink.add_step(step(i));
  CHECK(written.n_steps() == 0);
  let_in = true;
  CHECK(sink.entered());
  REQUIRE(sink.ref().has_value());
  CHECK(sink.ref()->number == 1);
  sink.flush();
  CHECK(written.n_steps() == 3);
}

TEST_CASE("flush waits for the entry of a run without steps") {
  Written written;
  const NoLedger ledger;
  std::atomic<bool> in = false;
  LedgerSink sink(ledger, [&] {
    std::this_thread::sleep_for(20ms);
    in = true;
    return std::make_unique<FakeWriter>(written);
  });
  sink.start();
  sink.flush();
  CHECK(in);
}

TEST_CASE("a run that cannot be entered says so at every call, and nothing is sealed") {
  const NoLedger ledger;
  LedgerSink sink(
      ledger, []() -> std::unique_ptr<RunWriter> { throw Error(ExitCode::kInternal, "no room"); });
  sink.start();
  CHECK_FALSE(sink.entered());
  CHECK(thrown_by([&] { sink.add_step(step(0)); }).message == "no room");
  CHECK(thrown_by([&] { sink.add_fields({}); }).message == "no room");
  CHECK(thrown_by([&] { sink.flush(); }).message == "no room");
  CHECK(thrown_by([&] { sink.finish({}); }).message == "no room");
}

TEST_CASE("without a writer thread the run is entered by the caller, once") {
  Written written;
  const NoLedger ledger;
  int entries = 0;
  LedgerSink sink(ledger, [&] {
    ++entries;
    return std::make_unique<FakeWriter>(written);
  });
  sink.add_step(step(0));
  sink.finish({});
  CHECK(entries == 1);
  CHECK(written.n_steps() == 1);
  CHECK(written.finished);
}

TEST_CASE("a lone step is committed soon, without another one or an end") {
  Written written;
  const NoLedger ledger;
  LedgerSink sink(ledger, std::make_unique<FakeWriter>(written));
  sink.start();
  sink.add_step(step(0));
  CHECK(within(2000ms, [&] { return written.n_steps() == 1; }));
}

TEST_CASE("every batch comes in a vector with room, so that queueing does not allocate") {
  Written written;
  const NoLedger ledger;
  LedgerSink sink(ledger, std::make_unique<FakeWriter>(written));
  sink.start();
  for (std::uint64_t i = 0; i < 5; ++i) {
    sink.add_step(step(i));
    sink.flush();
  }
  CHECK(written.n_steps() == 5);
  CHECK(written.least_room >= 64);
}

TEST_CASE("a sink whose thread never started commits everything at the end") {
  Written written;
  const NoLedger ledger;
  LedgerSink sink(ledger, std::make_unique<FakeWriter>(written));
  sink.add_step(step(0));
  FieldMap late;
  late.emplace(field::model_sha256, Blob{"x"});
  sink.add_fields(late);
  sink.finish({});
  CHECK(written.n_steps() == 1);
  CHECK(written.late.count(field::model_sha256) == 1);
  CHECK(written.finished);
}

TEST_CASE("a fact known late is committed at once, after the steps before it") {
  Written written;
  const NoLedger ledger;
  LedgerSink sink(ledger, std::make_unique<FakeWriter>(written));
  sink.start();
  sink.add_step(step(0));
  FieldMap late;
  late.emplace(field::model_sha256, Blob{"x"});
  sink.add_fields(late);
  sink.flush();
  CHECK(written.n_steps() == 1);
  CHECK(written.late.count(field::model_sha256) == 1);
}

TEST_CASE("an error of the writer surfaces at a later step, at flush and at the end") {
  Written written;
  const NoLedger ledger;
  LedgerSink sink(ledger, std::make_unique<FakeWriter>(written));
  sink.start();
  sink.add_step(step(0));
  sink.flush();
  written.fail = true;
  std::uint64_t next = 1;
  sink.add_step(step(next++));
  CHECK(within(2000ms, [&] {
    return thrown_by([&] { sink.add_step(step(next++)); }).message == "disk full";
  }));
  written.fail = false;  // room again: still nothing may follow, a step is missing
  CHECK(thrown_by([&] { sink.flush(); }).kind == ExitCode::kInternal);
  CHECK(thrown_by([&] { sink.finish({}); }).message == "disk full");
  CHECK(written.steps.size() == 1);
  CHECK_FALSE(written.finished);
}

TEST_CASE("a sink that is dropped commits what it has and seals nothing") {
  Written written;
  const NoLedger ledger;
  {
    LedgerSink sink(ledger, std::make_unique<FakeWriter>(written));
    sink.start();
    sink.add_step(step(0));
    sink.add_step(step(1));
  }
  CHECK(written.steps.size() == 2);
  CHECK_FALSE(written.finished);
}

}  // namespace
}  // namespace detrun
