// The front door: recording, reading back, selecting, interrupted and live runs.
#include "detrun/ledger.h"

#include "helpers.h"

using namespace detrun;
using namespace detrun::test;

TEST_CASE("a recorded run reads back as it was given") {
  const TempDir dir;
  const std::string path = dir.file("l");
  std::string id;
  std::optional<Sha256Digest> seal;
  {
    const auto ledger = Ledger::open_for_recording(path);
    const auto writer = ledger->begin_run(start_fields());
    CHECK(writer->number() == 1);
    id = writer->id();
    writer->add_steps(make_steps(0, 3));
    writer->add_steps({});
    writer->add_steps(make_steps(3, 2));
    writer->add_fields({{std::string(field::model_sha256), Blob{std::string(32, '\x07')}}});
    seal = writer->finish(end_fields());
  }
  const auto ledger = Ledger::open_for_reading(path);
  CHECK(ledger->path() == path);
  const RunRecord run = ledger->read(1, true);
  CHECK(run.sealed);
  CHECK(!run.live);
  for (const auto& given : start_fields()) {
    CAPTURE(given.first);
    REQUIRE(run.fields.contains(given.first));
    CHECK((run.fields.at(given.first) == given.second));
  }
  CHECK(field_text(run.fields, field::id) == id);
  CHECK(field_i64(run.fields, field::number) == 1);
  CHECK(field_i64(run.fields, field::step_count) == 5);
  CHECK(field_i64(run.fields, field::log_index) == 0);
  CHECK(field_i64(run.fields, field::seal_version) == 1);
  CHECK(field_text(run.fields, field::status) == "finished");
  CHECK(field_text(run.fields, field::ledger_id)->size() == 36);
  CHECK(field_blob(run.fields, field::text) == "p0p1p2p3p4");
  CHECK(run.steps.size() == 5);
  CHECK(ledger->read(1, false).steps.empty());
  CHECK(ledger->seal(1) == seal);
  CHECK(!ledger->seal(2));
  CHECK(exit_code_of([&] { ledger->read(2, true); }) == ExitCode::kUsage);
  CHECK(exit_code_of([&] { ledger->read(-1, true); }) == ExitCode::kUsage);
}

TEST_CASE("numbers go up by one and ids differ") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  for (int i = 1; i <= 5; ++i) CHECK(record_run(*ledger, 1) == i);
  const std::vector<RunRef> runs = ledger->runs();
  REQUIRE(runs.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(runs[i].number == static_cast<std::int64_t>(i + 1));
    CHECK(runs[i].id.size() == 36);
    if (i > 0) CHECK(runs[i].id != runs[i - 1].id);
  }
}

TEST_CASE("a run is selected by number, id, part of an id, or latest") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  CHECK(!ledger->resolve("latest"));
  record_run(*ledger, 1);
  record_run(*ledger, 1);
  const std::vector<RunRef> runs = ledger->runs();
  const std::string& id = runs[0].id;
  CHECK(ledger->resolve("1")->id == id);
  CHECK(ledger->resolve("#2")->id == runs[1].id);
  CHECK(ledger->resolve("latest")->number == 2);
  CHECK(ledger->resolve(id)->number == 1);
  CHECK(ledger->resolve(id.substr(24))->number == 1);
  std::string upper = id.substr(20);
  for (char& c : upper) c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  CHECK(ledger->resolve(upper)->number == 1);
  CHECK(!ledger->resolve("3"));
  CHECK(!ledger->resolve("0"));
  CHECK(!ledger->resolve("99999999999999999999999"));
  CHECK(!ledger->resolve("4294967297"));
  CHECK(!ledger->resolve("no-such-id"));
  CHECK(!ledger->resolve("%%%%"));
  for (const char* bad : {"", "#", "#x", "abc", "-7-"})
    CHECK_MESSAGE(exit_code_of([&] { ledger->resolve(bad); }) == ExitCode::kUsage, bad);
  // Ids of one moment begin alike: the part is ambiguous and the candidates are named.
  std::string message;
  CHECK(exit_code_of([&] { ledger->resolve(id.substr(0, 5)); }, &message) == ExitCode::kUsage);
  CHECK(message.find(id) != std::string::npos);
  CHECK(message.find(runs[1].id) != std::string::npos);
}

TEST_CASE("a run is live while its writer exists, interrupted afterwards") {
  const TempDir dir;
  const std::string path = dir.file("l");
  const auto recording = Ledger::open_for_recording(path);
  auto writer = recording->begin_run(start_fields());
  writer->add_steps(make_steps(0, 2));
  const auto reading = Ledger::open_for_reading(path);
  for (const Ledger* ledger : {recording.get(), reading.get()}) {
    CHECK(ledger->read(1, false).live);
    CHECK(!ledger->read(1, false).sealed);
    const VerifyReport report = ledger->verify();
    CHECK(report.ok);
    CHECK(report.runs_checked == 0);
    CHECK(contains(report.not_checked, "run 1: live"));
  }
  writer.reset();
  CHECK(!reading->read(1, false).live);
  CHECK(contains(reading->verify().not_checked, "run 1: interrupted, not yet sealed"));
  CHECK(field_blob(reading->read(1, false).fields, field::text) == "p0p1");
}

TEST_CASE("the next run of the same ledger seals an interrupted one") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  ledger->begin_run(start_fields())->add_steps(make_steps(0, 70));
  const auto live = ledger->begin_run(start_fields());
  const RunRecord run = ledger->read(1, true);
  CHECK(run.sealed);
  CHECK(field_text(run.fields, field::status) == "interrupted");
  CHECK(field_text(run.fields, field::stop_reason) == "interrupted");
  CHECK(field_text(run.fields, field::ended_at));
  CHECK(field_i64(run.fields, field::step_count) == 70);
  CHECK(field_i64(run.fields, field::log_index) == 0);
  CHECK(!field_i64(run.fields, field::duration_ms));
  CHECK(run.steps.size() == 70);
  const auto third = ledger->begin_run(start_fields());
  CHECK(!ledger->read(2, false).sealed);
  const VerifyReport report = ledger->verify();
  CHECK(report.ok);
  CHECK(report.runs_checked == 1);
  CHECK(report.steps_checked == 70);
}

TEST_CASE("opening for recording seals interrupted runs, also without any step") {
  const TempDir dir;
  const std::string path = dir.file("l");
  Ledger::open_for_recording(path)->begin_run({});
  CHECK(contains(verify_file(path).not_checked, "run 1: interrupted, not yet sealed"));
  Ledger::open_for_recording(path);
  const VerifyReport report = verify_file(path);
  CHECK(report.ok);
  CHECK(report.runs_checked == 1);
  CHECK(field_text(Ledger::open_for_reading(path)->read(1, false).fields, field::status) ==
        "interrupted");
}

TEST_CASE("two writers of one ledger object do not take each other for dead") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  const auto one = ledger->begin_run(start_fields());
  const auto two = ledger->begin_run(start_fields());
  const auto other = Ledger::open_for_recording(dir.file("l"));
  const auto three = other->begin_run(start_fields());
  for (int batch = 0; batch < 3; ++batch) {
    for (RunWriter* writer : {one.get(), two.get(), three.get()})
      writer->add_steps(make_steps(static_cast<std::uint64_t>(batch) * 50, 50));
  }
  for (RunWriter* writer : {three.get(), one.get(), two.get()}) writer->finish(end_fields());
  const VerifyReport report = ledger->verify();
  CHECK(report.ok);
  CHECK(report.runs_checked == 3);
  CHECK(report.steps_checked == 450);
  CHECK(field_i64(ledger->read(3, false).fields, field::log_index) == 0);
}

TEST_CASE("a writer outlives its ledger object") {
  const TempDir dir;
  auto ledger = Ledger::open_for_recording(dir.file("l"));
  const auto writer = ledger->begin_run(start_fields());
  ledger.reset();
  writer->add_steps(make_steps(0, 1));
  writer->finish(end_fields());
  CHECK(verify_file(dir.file("l")).runs_checked == 1);
}

TEST_CASE("a step changed in the file while the run is live does not match the seal") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  const auto writer = ledger->begin_run(start_fields());
  writer->add_steps(make_steps(0, 70));
  forge(dir.file("l"), "UPDATE step SET token = 7 WHERE key = (1 << 32) + 65");
  writer->finish(end_fields());
  const VerifyReport report = ledger->verify();
  CHECK(!report.ok);
  CHECK(report.broken.at(0).field == "steps[64..127]");
}

TEST_CASE("a value that cannot be recorded is refused before anything is written") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  CHECK(exit_code_of([&] { ledger->begin_run({{"tag.a", "\xff"}}); }) == ExitCode::kUsage);
  CHECK(exit_code_of([&] { ledger->begin_run({{"tag.\xff", "a"}}); }) == ExitCode::kUsage);
  CHECK(exit_code_of([&] {
          ledger->begin_run({{"tag.a", std::string("a\0b", 3)}});
        }) == ExitCode::kUsage);
  CHECK(ledger->runs().empty());
  const auto writer = ledger->begin_run(start_fields());
  CHECK(exit_code_of([&] { writer->add_fields({{"tag.b", "\xff"}}); }) == ExitCode::kUsage);
  writer->add_fields({{"tag.b", "fine"}});
  writer->finish(end_fields());
  CHECK(ledger->verify().ok);
}

TEST_CASE("strange field names and values are sealed and verified") {
  const TempDir dir;
  const auto ledger = Ledger::open_for_recording(dir.file("l"));
  const FieldMap strange = {{"tag.", ""},
                            {"tag.\xc3\xa9", "\xf0\x9f\x98\x80"},
                            {"tag.' OR 1=1 --", "\"; DROP TABLE run"},
                            {"tag.esc\x1b[2J", "\x1b]0;x\x07"},
                            {"tag.min", INT64_MIN},
                            {"tag.null", {}},
                            {"tag.empty", Blob{}},
                            {"tag.big", Blob{std::string(1 << 20, '\xff')}}};
  const auto writer = ledger->begin_run(strange);
  writer->finish({});
  CHECK(ledger->verify().ok);
  const FieldMap back = ledger->read(1, false).fields;
  for (const auto& [name, value] : strange) CHECK((back.at(name) == value));
}
