// The tables of schema.sql: what the guards refuse, and how a difference is told.
#include "ledger/schema.h"

#include <algorithm>

#include "helpers.h"

using namespace detrun;
using namespace detrun::ledger;
using namespace detrun::test;

namespace {

/// True when SQLite refuses the statement because of a constraint or a guard.
bool refused(const Db& db, const std::string& sql) {
  try {
    db.exec(sql);
  } catch (const SqliteError& error) {
    return error.primary_code() == SQLITE_CONSTRAINT;
  }
  return false;
}

std::string manual() { return read_bytes(std::string(DETRUN_SOURCE_DIR) + "/man/detrun-ledger.5"); }

const std::vector<std::string> kTables = {"ledger", "run",  "run_secret", "field",
                                          "step",   "leaf", "block",      "log"};

}  // namespace

TEST_CASE("the manual gives the digest of every definition, and no other") {
  std::size_t lines = 0;
  const std::string text = manual();
  for (const SchemaObject& object : expected_objects()) {
    const std::string line =
        "\n" + object.type + " " + object.name + " " + to_hex(sha256(object.sql)) + "\n";
    CHECK_MESSAGE(text.find(line) != std::string::npos, line);
    ++lines;
  }
  CHECK(lines == 35);
}

TEST_CASE("every table of the schema is known to these tests") {
  std::vector<std::string> tables;
  for (const SchemaObject& object : expected_objects()) {
    if (object.type == "table") tables.push_back(object.name);
  }
  std::vector<std::string> known = kTables;
  std::sort(known.begin(), known.end());
  CHECK(tables == known);
}

TEST_CASE("the file says whose it is and of which version") {
  const TempDir dir;
  record_three(dir.file("l"));
  const Db db = raw_db(dir.file("l"));
  CHECK(db.integer("PRAGMA application_id") == 0x4454524E);
  CHECK(db.integer("PRAGMA user_version") == kLedgerSchemaVersion);
  CHECK(db.text("PRAGMA journal_mode") == "wal");
  CHECK(db.text("PRAGMA integrity_check") == "ok");
  CHECK(db.integer("SELECT count(*) FROM pragma_foreign_key_check") == 0);
  CHECK(db.integer("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
                   " AND strict = 0 AND name NOT LIKE 'sqlite%'") == 0);
}

TEST_CASE("no row of any table is ever updated or deleted") {
  const TempDir dir;
  record_three(dir.file("l"));
  const Db db = raw_db(dir.file("l"));
  for (const bool recursive : {true, false}) {
    db.exec(recursive ? "PRAGMA recursive_triggers = ON" : "PRAGMA recursive_triggers = OFF");
    for (const std::string& table : kTables) {
      const std::string column = db.text("SELECT name FROM pragma_table_info('" + table + "')");
      CHECK_MESSAGE(refused(db, "DELETE FROM " + table), table);
      std::string change = table;
      change.append(" SET ").append(column).append(" = ").append(column);
      CHECK_MESSAGE(refused(db, "UPDATE " + change), table);
      CHECK_MESSAGE(refused(db, "UPDATE OR REPLACE " + change), table);
    }
  }
}

TEST_CASE("a row that exists is never replaced, also without recursive triggers") {
  const TempDir dir;
  record_three(dir.file("l"));
  const Db db = raw_db(dir.file("l"));
  const std::string z16 = "zeroblob(16)", z32 = "zeroblob(32)";
  const std::vector<std::string> rows = {
      "ledger VALUES (1, 'x', 'y')",
      "ledger VALUES (2, 'x', 'y')",
      "run VALUES (2, 'x')",
      "run (number, id) SELECT 4, id FROM run WHERE number = 1",
      "run (id) VALUES ('without a number')",
      "run_secret VALUES (1, " + z32 + ")",
      "field VALUES (1, 'status', 'forged')",
      "field VALUES (1, 'new', 'forged')",
      "step (key, token, logits, margin, logprob, piece) VALUES (1 << 32, 1, " + z16 +
          ", 0, 0, x'')",
      "step (key, token, logits, margin, logprob, piece) VALUES ((1 << 32) + 3, 1, " + z16 +
          ", 0, 0, x'')",
      "leaf VALUES (1, 'status', " + z32 + ")",
      "leaf VALUES (1, 'new', " + z32 + ")",
      "block VALUES (1, 0, " + z32 + ")",
      "block VALUES (1, 1, " + z32 + ")",
      "log VALUES (0, 'seal', 1, 1, " + z32 + ")",
      "log VALUES (3, 'seal', 1, 1, " + z32 + ")",
  };
  for (const char* recursive :
       {"PRAGMA recursive_triggers = ON", "PRAGMA recursive_triggers = OFF"}) {
    db.exec(recursive);
    for (const std::string& row : rows) {
      for (const char* verb : {"INSERT INTO ", "INSERT OR REPLACE INTO ", "INSERT OR IGNORE INTO "})
        CHECK_MESSAGE(refused(db, verb + row), verb, row);
    }
  }
  CHECK(refused(db, "INSERT INTO run VALUES (1, 'x') ON CONFLICT DO UPDATE SET id = 'x'"));
  CHECK(verify_file(dir.file("l")).ok);
}

TEST_CASE("a run, a step and a log entry leave no gap and come last") {
  const TempDir dir;
  const std::string path = dir.file("l");
  {
    const auto ledger = Ledger::open_for_recording(path);
    record_run(*ledger, 1);
    const auto open = ledger->begin_run(start_fields());
    open->add_steps(make_steps(0, 2));
    const Db db = raw_db(path);
    const std::string columns = "step (key, token, logits, margin, logprob, piece) VALUES ";
    const std::string rest = ", 1, zeroblob(16), 0, 0, x'')";
    CHECK(refused(db, "INSERT INTO " + columns + "((2 << 32) + 3" + rest));
    CHECK(refused(db, "INSERT INTO " + columns + "(NULL" + rest));
    CHECK(refused(db, "INSERT INTO " + columns + "(-5" + rest));
    CHECK(!refused(db, "INSERT INTO " + columns + "((2 << 32) + 2" + rest));
    CHECK(refused(db, "INSERT INTO field VALUES (2, 'text', x'00')"));
    CHECK(refused(db, "INSERT INTO field VALUES (2, 'run_secret', x'00')"));
    CHECK(refused(db, "INSERT INTO log VALUES (0, 'key', NULL, 1, x'')"));
    CHECK(refused(db, "INSERT INTO log VALUES (7, 'key', NULL, 1, x'')"));
    CHECK(refused(db, "INSERT INTO log (kind, run, version, body) VALUES ('key', NULL, 1, x'')"));
    CHECK(refused(db, "INSERT INTO run VALUES (0, 'x')"));
    CHECK(refused(db, "INSERT INTO run VALUES (1, 'x')"));
  }
}

TEST_CASE("guards that are missing, altered or strange are told apart") {
  const TempDir dir;
  record_three(dir.file("l"));
  const Db db = raw_db(dir.file("l"));
  CHECK(compare_schema(db).table.empty());
  CHECK(compare_schema(db).missing.empty());
  db.exec("DROP TRIGGER step_update");
  db.exec("DROP INDEX log_seal");
  db.exec("DROP TRIGGER run_delete");
  db.exec("CREATE TRIGGER run_delete BEFORE DELETE ON run WHEN 0 BEGIN SELECT 1; END");
  db.exec("CREATE TABLE extra (a)");
  db.exec("CREATE TRIGGER zz AFTER INSERT ON run BEGIN SELECT 1; END");
  const SchemaDifference difference = compare_schema(db);
  CHECK(difference.missing == std::vector<std::string>{"log_seal", "step_update"});
  CHECK(difference.altered == std::vector<std::string>{"run_delete"});
  CHECK(difference.unknown == std::vector<std::string>{"extra", "zz"});
  CHECK(difference.unsafe == std::vector<std::string>{"zz"});
  CHECK(difference.table.empty());
}

TEST_CASE("a table that is not the one of the schema is told") {
  const TempDir dir;
  const std::vector<std::string> changes = {
      "ALTER TABLE block ADD COLUMN note TEXT",
      "ALTER TABLE block RENAME TO block2",
      "DROP TABLE block",
      "ALTER TABLE block RENAME TO block2; CREATE VIEW block AS SELECT run, idx, root FROM block2",
  };
  int count = 0;
  for (const std::string& change : changes) {
    const std::string path = dir.file("l" + std::to_string(count++));
    record_three(path);
    forge(path, change);
    CHECK_MESSAGE(compare_schema(raw_db(path)).table == "block", change);
    const VerifyReport report = verify_file(path);
    CHECK(!report.ok);
    REQUIRE(report.broken.size() == 1);
    CHECK(report.broken[0].field == "schema");
    CHECK(exit_code_of([&] { Ledger::open_for_recording(path); }) == ExitCode::kTampered);
  }
}
