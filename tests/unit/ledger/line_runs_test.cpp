// What the ledger says of runs made of lines of a prompts file, and runs begun on a condition.
#include <doctest/doctest.h>

#include "tests/unit/ledger/helpers.h"

using namespace detrun;
using test::TempDir;

namespace {

constexpr Sha256Digest kFile{1, 2, 3}, kOther{1, 2, 4};

FieldMap fields_of(const Sha256Digest& file, FieldValue line) {
  FieldMap fields = test::start_fields();
  fields.emplace(field::prompts_sha256, to_blob(file));
  fields.emplace(field::prompts_line, std::move(line));
  return fields;
}

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const LineRuns& found) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const LineRun& run : found.runs) out.emplace_back(run.number, run.line);
  return out;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

}  // namespace

TEST_CASE("runs of a prompts file are found by its digest, with their state") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  const auto finished = ledger->begin_run(fields_of(kFile, std::int64_t{7}));
  finished->finish(test::end_fields());
  ledger->begin_run(fields_of(kOther, std::int64_t{7}))->finish(test::end_fields());
  ledger->begin_run(test::start_fields())->finish(test::end_fields());
  FieldMap cancelled = test::end_fields();
  cancelled.insert_or_assign(std::string(field::status), "cancelled");
  ledger->begin_run(fields_of(kFile, std::int64_t{8}))->finish(cancelled);
  ledger->begin_run(fields_of(kFile, "nine"))->finish(test::end_fields());
  auto live = ledger->begin_run(fields_of(kFile, std::int64_t{9}));

  const LineRuns all = ledger->runs_of_prompts(kFile, 0);
  CHECK(pairs(all) == Pairs{{1, 7}, {4, 8}, {6, 9}});
  CHECK(all.highest == 6);
  CHECK(pairs(ledger->runs_of_prompts(kFile, 4)) == Pairs{{6, 9}});
  CHECK(ledger->runs_of_prompts(kFile, 6).runs.empty());
  CHECK(ledger->runs_of_prompts(kFile, 6).highest == 6);
  CHECK(ledger->state(1) == RunState::kFinished);
  CHECK(ledger->state(4) == RunState::kEnded);
  CHECK(ledger->state(6) == RunState::kLive);
  CHECK(Ledger::open_for_reading(dir.file("l"))->state(6) == RunState::kLive);
  live.reset();
  CHECK(ledger->state(6) == RunState::kInterrupted);
}

TEST_CASE("one field is read as it is stored") {
  const TempDir dir;
  test::record_three(dir.file("l"));
  const auto ledger = Ledger::open_for_reading(dir.file("l"));
  CHECK(ledger->field(1, "tag.case") == FieldValue("A-1"));
  CHECK(ledger->field(1, field::model_size_bytes) == FieldValue(std::int64_t{4096}));
  CHECK(ledger->field(1, field::error) == FieldValue());
  CHECK_FALSE(ledger->field(1, "tag.none").has_value());
  CHECK_FALSE(ledger->field(99, "tag.case").has_value());
}

TEST_CASE("a run that is not wanted leaves no trace, and the next one is numbered as usual") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  CHECK(ledger->begin_run_if(test::start_fields(), [] { return false; }) == nullptr);
  CHECK(ledger->runs().empty());
  int asked = 0;
  const auto writer = ledger->begin_run_if(test::start_fields(), [&] {
    ++asked;
    return ledger->runs().empty();
  });
  REQUIRE(writer != nullptr);
  CHECK(writer->number() == 1);
  CHECK(asked == 1);
  CHECK_THROWS(ledger->begin_run_if(test::start_fields(), []() -> bool { throw 5; }));
  CHECK(ledger->runs().size() == 1);
}

TEST_CASE("interrupted runs are sealed behind runs known to be sealed, whoever left them") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  test::record_run(*ledger, 2);
  auto first = ledger->begin_run(test::start_fields());
  test::record_run(*ledger, 2);
  first.reset();
  {
    const auto other = Ledger::open_for_recording(dir.file("l"));
    other->begin_run(test::start_fields());
  }
  test::record_run(*ledger, 1);
  CHECK(ledger->state(2) == RunState::kEnded);
  CHECK(ledger->state(4) == RunState::kEnded);
  CHECK(test::verify_file(dir.file("l")).ok);
}
