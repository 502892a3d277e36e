// What the report says of a ledger as a whole.
#include "ledger/verify.h"

#include "helpers.h"

using namespace detrun;
using namespace detrun::test;

namespace {

/// Overwrites the beginning of a table's first page.
void damage_root(const std::string& path, const std::string& table) {
  std::int64_t page = 0, page_size = 0;
  {
    const ledger::Db db = raw_db(path);
    page = db.integer("SELECT rootpage FROM sqlite_schema WHERE name = '" + table + "'");
    page_size = db.integer("PRAGMA page_size");
  }
  std::string bytes = read_bytes(path);
  for (std::int64_t i = 0; i < 100; ++i)
    bytes[static_cast<std::size_t>((page - 1) * page_size + i)] = '\x5a';
  write_bytes(path, bytes);
}

}  // namespace

TEST_CASE("an honest ledger is ok, and what is not checked is said") {
  const TempDir dir;
  record_three(dir.file("l"));
  const VerifyReport report = verify_file(dir.file("l"));
  CHECK(report.ok);
  CHECK(report.broken.empty());
  CHECK(report.runs_checked == 3);
  CHECK(report.steps_checked == 133);
  CHECK(report.fields_checked == 3 * (17 + 2));  // rows, text, run_secret
  CHECK(report.not_checked == std::vector<std::string>{"completeness: self-attested"});
}

TEST_CASE("a ledger without runs is ok") {
  const TempDir dir;
  Ledger::open_for_recording(dir.file("l"));
  const VerifyReport report = verify_file(dir.file("l"));
  CHECK(report.ok);
  CHECK(report.runs_checked == 0);
}

TEST_CASE("missing guards are said, and recording is refused") {
  const TempDir dir;
  record_three(dir.file("l"));
  const ledger::Db db = raw_db(dir.file("l"));
  db.exec(
      "DROP TRIGGER step_update; DROP TRIGGER log_delete; DROP VIEW runs;"
      "CREATE VIEW runs AS SELECT 1 AS forged; CREATE TABLE extra (a)");
  const VerifyReport report = verify_file(dir.file("l"));
  CHECK(report.ok);
  CHECK(report.not_checked ==
        std::vector<std::string>{"guards missing: log_delete, step_update", "guards altered: runs",
                                 "unknown objects: extra", "completeness: self-attested"});
  std::string message;
  CHECK(exit_code_of([&] { Ledger::open_for_recording(dir.file("l")); }, &message) ==
        ExitCode::kUsage);
  CHECK(message.find("log_delete, step_update") != std::string::npos);
}

TEST_CASE("a stranger's trigger is never run: recording is refused, reading goes on") {
  const TempDir dir;
  record_three(dir.file("l"));
  raw_db(dir.file("l")).exec("CREATE TRIGGER zz AFTER INSERT ON log BEGIN SELECT 1; END");
  CHECK(exit_code_of([&] { Ledger::open_for_recording(dir.file("l")); }) == ExitCode::kUsage);
  CHECK(contains(verify_file(dir.file("l")).not_checked, "unknown objects: zz"));
}

TEST_CASE("objects are compared by type and name: a trigger may have the name of a table") {
  const TempDir dir;
  const std::vector<std::pair<std::string, std::string>> strangers = {
      {"CREATE TRIGGER step AFTER INSERT ON log BEGIN SELECT 1; END", "unknown objects: step"},
      {"CREATE TRIGGER runs AFTER INSERT ON log BEGIN SELECT 1; END", "unknown objects: runs"},
      {"CREATE INDEX zc ON field (run, name, value)", "unknown objects: zc"},
      {"DROP VIEW runs; CREATE TABLE runs (a UNIQUE)", "unknown objects: runs"},
  };
  for (const auto& stranger : strangers) {
    CAPTURE(stranger.first);
    const std::string path = dir.file("l");
    std::filesystem::remove(path);
    record_three(path);
    raw_db(path).exec(stranger.first);
    const VerifyReport report = verify_file(path);
    CHECK(report.ok);
    CHECK(contains(report.not_checked, stranger.second));
    CHECK(exit_code_of([&] { Ledger::open_for_recording(path); }) == ExitCode::kUsage);
  }
}

TEST_CASE("a table of a stranger is unknown, its automatic index is not told beside it") {
  const TempDir dir;
  record_three(dir.file("l"));
  raw_db(dir.file("l")).exec("CREATE TABLE own (a UNIQUE); CREATE VIEW seen AS SELECT a FROM own");
  CHECK(contains(verify_file(dir.file("l")).not_checked, "unknown objects: own, seen"));
  CHECK(exit_code_of([&] { Ledger::open_for_recording(dir.file("l")); }) == ExitCode::kOk);
}

TEST_CASE("an index that lies hides no row: tables are read, and the lie is told") {
  const TempDir dir;
  for (const char* columns :
       {"field (run, name, value)", "leaf (run, name, hash)", "block (run, idx, root)",
        "run (number, id)", "run_secret (run, secret)", "ledger (one, id, created_at)",
        "log (idx, kind, run, version, body)",
        "step (key, token, logits, margin, logprob, piece)"}) {
    CAPTURE(columns);
    const std::string path = dir.file("l"), index = std::string("CREATE INDEX zc ON ") + columns;
    std::filesystem::remove(path);
    record_three(path);
    raw_db(path).exec(index + " WHERE 0");  // an index of no row
    raw_db(path).exec("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '" + index +
                      "' WHERE name = 'zc'");
    const VerifyReport report = verify_file(path);
    REQUIRE(report.broken.size() == 1);
    CHECK(!report.broken[0].entry);
    CHECK(report.broken[0].field == "database");
    CHECK(report.fields_checked == 3 * (17 + 2));
    CHECK(Ledger::open_for_reading(path)->read(2, true).steps.size() == 130);
    CHECK(Ledger::open_for_reading(path)->read(2, true).fields.size() == 18);
    CHECK(Ledger::open_for_reading(path)->runs().size() == 3);
  }
}

TEST_CASE("the id is told of a run whose number no run can have") {
  const TempDir dir;
  record_three(dir.file("l"));
  forge(dir.file("l"), "INSERT INTO run VALUES (0, 'a'), (-1, 'b'), (2147483648, 'c')");
  const VerifyReport report = verify_file(dir.file("l"));
  REQUIRE(report.broken.size() == 3);
  CHECK(report.broken[0].entry == -1);
  CHECK(report.broken[0].id == "b");
  CHECK(report.broken[1].id == "a");
  CHECK(report.broken[2].id == "c");
}

TEST_CASE("what the CHECKs of the tables say is not asked of SQLite, whose answer would vary") {
  const TempDir dir;
  record_three(dir.file("l"));
  forge(dir.file("l"), "INSERT INTO log VALUES (3, 'seal', 1 << 40, 1, x'00')");
  const VerifyReport report = verify_file(dir.file("l"));
  REQUIRE(report.broken.size() == 1);
  CHECK(report.broken[0].entry == std::int64_t{1} << 40);
}

TEST_CASE("damage in one table keeps no run from being checked, and is told once") {
  const TempDir dir;
  for (const char* table : {"run_secret", "block", "leaf"}) {
    CAPTURE(table);
    const std::string path = dir.file("l");
    std::filesystem::remove(path);
    record_three(path);
    damage_root(path, table);
    const VerifyReport report = verify_file(path);
    REQUIRE(report.broken.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(report.broken[i].field == "database");
      CHECK(report.broken[i].id.size() == (i < 3 ? 36 : 0));
      CHECK(report.broken[i].entry.has_value() == (i < 3));
    }
    CHECK(report.runs_checked == 3);
  }
}

TEST_CASE("every broken run is named once, in order of number") {
  const TempDir dir;
  record_three(dir.file("l"));
  forge(dir.file("l"),
        "UPDATE field SET value = 'x' WHERE name IN ('status', 'stop_reason') AND run <> 2;"
        "UPDATE ledger SET one = 2");
  const VerifyReport report = verify_file(dir.file("l"));
  CHECK(!report.ok);
  REQUIRE(report.broken.size() == 3);
  CHECK(report.broken[0].entry == 1);
  CHECK(report.broken[0].field == "status");
  CHECK(report.broken[0].id.size() == 36);
  CHECK(report.broken[1].entry == 3);
  CHECK(!report.broken[2].entry);
  CHECK(report.broken[2].field == "ledger.one");
  CHECK(report.runs_checked == 3);
}

TEST_CASE("a cut ledger is not healed by recording more") {
  const TempDir dir;
  record_three(dir.file("l"));
  {
    const ledger::Db db = raw_db(dir.file("l"));
    drop_guards(db);
    db.exec("DELETE FROM log WHERE run = 3");
  }
  CHECK(verify_file(dir.file("l")).broken.at(0).entry == 3);
}

TEST_CASE("one run is verified alone") {
  const TempDir dir;
  record_three(dir.file("l"));
  forge(dir.file("l"), "UPDATE field SET value = 'x' WHERE name = 'status' AND run = 2");
  const auto ledger = Ledger::open_for_reading(dir.file("l"));
  CHECK(ledger->verify_run(1).ok);
  CHECK(ledger->verify_run(1).runs_checked == 1);
  const VerifyReport report = ledger->verify_run(2);
  CHECK(!report.ok);
  REQUIRE(report.broken.size() == 1);
  CHECK(report.broken[0].entry == 2);
  CHECK(report.broken[0].field == "status");
  CHECK(!ledger->verify_run(4).ok);
  CHECK(ledger->verify_run(4).broken.at(0).field == "number");
  CHECK(!ledger->verify_run(-1).ok);
}

TEST_CASE("log entries of later kinds are named as not checked") {
  const TempDir dir;
  record_three(dir.file("l"));
  raw_db(dir.file("l")).exec("INSERT INTO log VALUES (3, 'verdict', 1, 1, x'00')");
  const VerifyReport report = verify_file(dir.file("l"));
  CHECK(report.ok);
  CHECK(contains(report.not_checked, "log[3]: verdict"));
}

TEST_CASE("names from a hostile ledger cannot drive the terminal or break the report") {
  const TempDir dir;
  record_three(dir.file("l"));
  forge(dir.file("l"),
        "UPDATE run SET id = CAST(x'ff1b5b324a' AS TEXT) WHERE number = 1;"
        "INSERT INTO field VALUES (2, CAST(x'ff' AS TEXT), 1)");
  const VerifyReport report = verify_file(dir.file("l"));
  CHECK(!report.ok);
  REQUIRE(report.broken.size() == 2);
  CHECK(report.broken[0].field == "id");
  CHECK(report.broken[0].id.find('\xff') == std::string::npos);
  CHECK(report.broken[1].field == "\\xff");
}

TEST_CASE("a damaged page is a finding, and the other checks go on") {
  const TempDir dir;
  record_three(dir.file("l"));
  damage_root(dir.file("l"), "step");
  const VerifyReport report = verify_file(dir.file("l"));
  CHECK(!report.ok);
  REQUIRE(!report.broken.empty());
  for (const BrokenEntry& broken : report.broken) CHECK(broken.field == "database");
}

TEST_CASE("a row hidden from an index is found") {
  const TempDir dir;
  record_three(dir.file("l"));
  {
    const ledger::Db db = raw_db(dir.file("l"));
    db.exec("PRAGMA writable_schema = ON");
    db.exec(
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema"
        " WHERE name = 'sqlite_autoindex_run_1') WHERE name = 'log_seal'");
  }
  const auto verify = [&] { return verify_file(dir.file("l")).ok; };
  bool ok = true;
  const ExitCode code = exit_code_of([&] { ok = verify(); });
  CHECK((!ok || code == ExitCode::kTampered));
}
