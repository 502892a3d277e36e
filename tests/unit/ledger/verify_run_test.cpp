// Every column of every table changed once, every row taken away or added: verify names the run
// and the field or the block.
#include "ledger/verify_run.h"

#include <map>
#include <set>

#include "helpers.h"

using namespace detrun;
using namespace detrun::ledger;
using namespace detrun::test;

namespace {

struct Forgery {
  std::string sql;
  std::optional<std::int64_t> entry;
  std::string field;
};

const std::optional<std::int64_t> kWhole = std::nullopt;
const std::string kBytes32 = "x'" + std::string(64, 'a') + "'";

/// By column. Run 2 has 130 steps; its seal is log entry 1.
const std::map<std::string, std::vector<Forgery>> kColumns = {
    {"ledger.one", {{"UPDATE ledger SET one = 2", kWhole, "ledger.one"}}},
    {"ledger.id",
     {{"UPDATE ledger SET id = 'x'", 1, "ledger.id"},
      {"UPDATE ledger SET id = upper(id)", 1, "ledger.id"}}},
    {"ledger.created_at",
     {{"UPDATE ledger SET created_at = created_at || ' '", 1, "ledger.created_at"}}},
    {"run.number",
     {{"UPDATE run SET number = 9 WHERE number = 2", 2, "number"},
      {"UPDATE run SET number = 0 WHERE number = 2", 0, "number"},
      {"UPDATE run SET number = 1 << 40 WHERE number = 2", 2, "number"}}},
    {"run.id",
     {{"UPDATE run SET id = '01890a5d-ac96-774b-bcce-b302099a8057' WHERE number = 2", 2, "id"}}},
    {"run_secret.run", {{"UPDATE run_secret SET run = 9 WHERE run = 2", 2, "run_secret"}}},
    {"run_secret.secret",
     {{"UPDATE run_secret SET secret = " + kBytes32 + " WHERE run = 2", 2, "run_secret"},
      {"UPDATE run_secret SET secret = x'00' WHERE run = 2", 2, "run_secret"}}},
    {"field.run",
     {{"UPDATE field SET run = 9 WHERE run = 2 AND name = 'prompt'", 2, "prompt"},
      {"UPDATE field SET run = 9 WHERE run = 2", 2, "ended_at"}}},
    {"field.name",
     {{"UPDATE field SET name = 'zzz' WHERE run = 2 AND name = 'status'", 2, "status"},
      {"UPDATE field SET name = 'a' WHERE run = 2 AND name = 'status'", 2, "a"},
      {"UPDATE field SET name = 'text' WHERE run = 2 AND name = 'tag.case'", 2, "tag.case"}}},
    {"field.value",
     {{"UPDATE field SET value = 'cancelled' WHERE run = 2 AND name = 'status'", 2, "status"},
      {"UPDATE field SET value = NULL WHERE run = 2 AND name = 'status'", 2, "status"},
      {"UPDATE field SET value = '' WHERE run = 2 AND name = 'error'", 2, "error"},
      {"UPDATE field SET value = CAST(value AS TEXT) WHERE run = 2 AND name = 'model.size_bytes'",
       2, "model.size_bytes"},
      {"UPDATE field SET value = CAST(value AS BLOB) WHERE run = 2 AND name = 'status'", 2,
       "status"},
      {"UPDATE field SET value = CAST(value AS REAL) WHERE run = 2 AND name = 'model.size_bytes'",
       2, "model.size_bytes"},
      {"UPDATE field SET value = CAST(value || x'00' AS BLOB) WHERE run = 2 AND name = 'prompt'", 2,
       "prompt"},
      {"UPDATE field SET value = 129 WHERE run = 2 AND name = 'step_count'", 2, "step_count"}}},
    {"step.key",
     {{"UPDATE step SET key = (2 << 32) + 200 WHERE key = (2 << 32) + 70", 2, "steps[64..127]"},
      {"UPDATE step SET key = (2 << 32) + 130 WHERE key = (2 << 32) + 129", 2, "steps[128..191]"},
      {"UPDATE step SET key = (1 << 32) + 3 WHERE key = (2 << 32) + 129", 1, "steps[0..63]"},
      {"UPDATE step SET key = (9 << 32) WHERE key = (2 << 32) + 129", 2, "steps[128..191]"},
      {"UPDATE step SET key = -1 WHERE key = (2 << 32) + 129", -1, "number"}}},
    {"step.token",
     {{"UPDATE step SET token = 7 WHERE key = (2 << 32) + 70", 2, "steps[64..127]"},
      {"UPDATE step SET token = token + (1 << 32) WHERE key = (2 << 32) + 70", 2,
       "steps[64..127]"}}},
    {"step.logits",
     {{"UPDATE step SET logits = zeroblob(16) WHERE key = (2 << 32) + 70", 2, "steps[64..127]"},
      {"UPDATE step SET logits = CAST(logits || x'00' AS BLOB) WHERE key = (2 << 32) + 129", 2,
       "steps[128..191]"}}},
    {"step.margin",
     {{"UPDATE step SET margin = margin + 1 WHERE key = 2 << 32", 2, "steps[0..63]"},
      {"UPDATE step SET margin = margin + (1 << 32) WHERE key = 2 << 32", 2, "steps[0..63]"}}},
    {"step.logprob",
     {{"UPDATE step SET logprob = -1 WHERE key = (2 << 32) + 129", 2, "steps[128..191]"},
      {"UPDATE step SET logprob = logprob - (1 << 32) WHERE key = 2 << 32", 2, "steps[0..63]"}}},
    {"step.piece", {{"UPDATE step SET piece = x'58' WHERE key = (2 << 32) + 70", 2, "text"}}},
    {"leaf.run", {{"UPDATE leaf SET run = 9 WHERE run = 2 AND name = 'status'", 2, "status"}}},
    {"leaf.name",
     {{"UPDATE leaf SET name = 'zzz' WHERE run = 2 AND name = 'status'", 2, "status"},
      {"UPDATE leaf SET name = 'zzz' WHERE run = 2 AND name = 'text'", 2, "zzz"}}},
    {"leaf.hash",
     {{"UPDATE leaf SET hash = " + kBytes32 + " WHERE run = 2 AND name = 'status'", 2, "status"},
      {"UPDATE leaf SET hash = x'' WHERE run = 2 AND name = 'status'", 2, "status"},
      {"UPDATE leaf SET hash = " + kBytes32 + " WHERE run = 2 AND name = 'text'", 2, "text"},
      {"UPDATE leaf SET hash = " + kBytes32 + " WHERE run = 2 AND name = 'run_secret'", 2,
       "run_secret"}}},
    {"block.run", {{"UPDATE block SET run = 9 WHERE run = 2 AND idx = 1", 2, "steps[64..127]"}}},
    {"block.idx",
     {{"UPDATE block SET idx = 7 WHERE run = 2 AND idx = 1", 2, "steps[64..127]"},
      {"UPDATE block SET idx = -1 WHERE run = 2 AND idx = 0", 2, "steps[0..63]"}}},
    {"block.root",
     {{"UPDATE block SET root = " + kBytes32 + " WHERE run = 2 AND idx = 1", 2, "steps[64..127]"},
      {"UPDATE block SET root = x'' WHERE run = 2 AND idx = 2", 2, "steps[128..191]"}}},
    {"log.idx",
     {{"UPDATE log SET idx = 7 WHERE idx = 1", 2, "log_index"},
      {"UPDATE log SET idx = -1 WHERE idx = 0", 1, "log_index"}}},
    {"log.kind",
     {{"UPDATE log SET kind = 'verdict' WHERE idx = 1", 2, "seal"},
      {"UPDATE log SET kind = 'other' WHERE idx = 1", 2, "seal"}}},
    {"log.run",
     {{"UPDATE log SET run = NULL WHERE idx = 1", 2, "seal"},
      {"UPDATE log SET run = 9 WHERE idx = 1", 2, "seal"},
      {"DROP INDEX log_seal; UPDATE log SET run = 1 WHERE idx = 1", 1, "seal"}}},
    {"log.version", {{"UPDATE log SET version = 2 WHERE idx = 1", 2, "seal_version"}}},
    {"log.body",
     {{"UPDATE log SET body = " + kBytes32 + " WHERE idx = 1", 2, "seal"},
      {"UPDATE log SET body = x'00' WHERE idx = 1", 2, "seal"}}},
};

/// Rows taken away or added.
const std::vector<Forgery> kRows = {
    {"DELETE FROM ledger", 1, "ledger.created_at"},
    {"INSERT INTO ledger VALUES (2, 'x', 'y')", kWhole, "ledger.one"},
    {"DELETE FROM run WHERE number = 2", 2, "number"},
    {"INSERT INTO run VALUES (4, 'x')", 4, "run_secret"},
    {"DELETE FROM run_secret WHERE run = 2", 2, "run_secret"},
    {"INSERT INTO run_secret VALUES (9, " + kBytes32 + ")", 9, "number"},
    {"DELETE FROM field WHERE run = 2 AND name = 'tag.case'", 2, "tag.case"},
    {"DELETE FROM field WHERE run = 2 AND name = 'tag.case';"
     "DELETE FROM leaf WHERE run = 2 AND name = 'tag.case'",
     2, "seal"},
    {"DELETE FROM field WHERE run = 2 AND name = 'number';"
     "DELETE FROM leaf WHERE run = 2 AND name = 'number'",
     2, "number"},
    {"INSERT INTO field VALUES (2, 'tag.extra', 'x')", 2, "tag.extra"},
    {"INSERT INTO field VALUES (2, 'text', x'00')", 2, "text"},
    {"INSERT INTO field VALUES (2, '', 'x')", 2, "field"},
    {"INSERT INTO leaf VALUES (2, '', " + kBytes32 + ")", 2, "field"},
    {"INSERT INTO field VALUES (2, 'run_secret', x'00')", 2, "run_secret"},
    {"INSERT INTO field VALUES (9, 'tag.extra', 'x')", 9, "number"},
    {"DELETE FROM step WHERE key = (2 << 32) + 129", 2, "steps[128..191]"},
    {"DELETE FROM step WHERE key = 2 << 32", 2, "steps[0..63]"},
    {"DELETE FROM step WHERE key >> 32 = 2", 2, "steps[0..63]"},
    {"INSERT INTO step (key, token, logits, margin, logprob, piece)"
     " VALUES ((2 << 32) + 130, 1, zeroblob(16), 0, 0, x'')",
     2, "steps[128..191]"},
    {"INSERT INTO step (key, token, logits, margin, logprob, piece)"
     " VALUES (3 << 32, 1, zeroblob(16), 0, 0, x'')",
     3, "steps[0..63]"},
    {"INSERT INTO step (key, token, logits, margin, logprob, piece)"
     " VALUES (9 << 32, 1, zeroblob(16), 0, 0, x'')",
     9, "number"},
    {"INSERT INTO step (key, token, logits, margin, logprob, piece)"
     " VALUES (-9223372036854775807 - 1, 1, zeroblob(16), 0, 0, x'')",
     -2147483648, "number"},
    {"INSERT INTO step (key, token, logits, margin, logprob, piece)"
     " VALUES (9223372036854775807, 1, zeroblob(16), 0, 0, x'')",
     2147483647, "number"},
    {"DELETE FROM leaf WHERE run = 2 AND name = 'text'", 2, "text"},
    {"DELETE FROM leaf WHERE run = 2", 2, "run_secret"},
    {"INSERT INTO leaf VALUES (2, 'zzz', " + kBytes32 + ")", 2, "zzz"},
    {"INSERT INTO leaf VALUES (9, 'zzz', " + kBytes32 + ")", 9, "number"},
    {"DELETE FROM block WHERE run = 2 AND idx = 2", 2, "steps[128..191]"},
    {"INSERT INTO block VALUES (2, 3, " + kBytes32 + ")", 2, "steps[192..255]"},
    {"INSERT INTO block VALUES (2, -1, " + kBytes32 + ")", 2, "block"},
    {"INSERT INTO block VALUES (3, 0, " + kBytes32 + ")", 3, "steps[0..63]"},
    {"DELETE FROM log WHERE idx = 1", 2, "seal"},
    {"DELETE FROM log WHERE idx = 2", 3, "seal"},
    {"DELETE FROM log", 1, "seal"},
    {"INSERT INTO log VALUES (3, 'seal', NULL, 1, " + kBytes32 + ")", kWhole, "log[3]"},
    {"INSERT INTO log VALUES (3, 'other', NULL, 1, x'')", kWhole, "log[3]"},
    {"INSERT INTO log VALUES (5, 'key', NULL, 1, x'')", kWhole, "log[3]"},
    {"INSERT INTO log VALUES (3, 'seal', 9, 1, " + kBytes32 + ")", 9, "number"},
    // A whole run but for its secret, or but for its seal, taken away.
    {"DELETE FROM run WHERE number = 2; DELETE FROM field WHERE run = 2;"
     "DELETE FROM step WHERE key >> 32 = 2; DELETE FROM leaf WHERE run = 2;"
     "DELETE FROM block WHERE run = 2; DELETE FROM log WHERE run = 2",
     2, "number"},
    {"DELETE FROM run WHERE number = 2; DELETE FROM field WHERE run = 2;"
     "DELETE FROM step WHERE key >> 32 = 2; DELETE FROM leaf WHERE run = 2;"
     "DELETE FROM block WHERE run = 2; DELETE FROM run_secret WHERE run = 2",
     2, "number"},
    // Two runs exchange what they hold.
    {"UPDATE run SET id = 'x' WHERE number = 1;"
     "UPDATE run SET id = (SELECT value FROM field WHERE run = 1 AND name = 'id') WHERE number = 2",
     1, "id"},
};

class Forger {
 public:
  Forger() { record_three(dir_.file("honest")); }

  void check(const Forgery& forgery) const {
    CAPTURE(forgery.sql);
    const std::string path = dir_.file("forged");
    std::filesystem::copy_file(dir_.file("honest"), path,
                               std::filesystem::copy_options::overwrite_existing);
    forge(path, forgery.sql);
    const VerifyReport report = verify_file(path);
    CHECK(!report.ok);
    REQUIRE(!report.broken.empty());
    CHECK(report.broken[0].field == forgery.field);
    CHECK(report.broken[0].entry == forgery.entry);
    CHECK(!report.broken[0].why.empty());
    std::set<std::int64_t> entries;
    for (const BrokenEntry& broken : report.broken) {
      if (broken.entry) CHECK(entries.insert(*broken.entry).second);
    }
  }

  const TempDir& dir() const { return dir_; }

 private:
  TempDir dir_;
};

}  // namespace

TEST_CASE("a changed column of any table is TAMPERED and named") {
  const Forger forger;
  std::set<std::string> columns;
  const Db db = raw_db(forger.dir().file("honest"));
  Stmt stmt(db,
            "SELECT t.name || '.' || c.name, c.hidden FROM sqlite_schema t,"
            " pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'");
  while (stmt.step()) {
    const std::string column = stmt.text(0).value_or("");
    const bool computed = stmt.integer(1) == 2;
    if (computed) {
      CHECK_MESSAGE((column == "step.run" || column == "step.idx"), column);
      continue;
    }
    CHECK_MESSAGE(kColumns.contains(column), "no forgery covers column ", column);
    columns.insert(column);
  }
  CHECK(columns.size() == kColumns.size());
  for (const auto& [column, forgeries] : kColumns) {
    REQUIRE(!forgeries.empty());
    for (const Forgery& forgery : forgeries) forger.check(forgery);
  }
}

TEST_CASE("a row that is missing, added or moved is TAMPERED and named") {
  const Forger forger;
  for (const Forgery& forgery : kRows) forger.check(forgery);
}

TEST_CASE("every field of every run is covered by its leaf") {
  const Forger forger;
  std::vector<std::pair<std::int64_t, std::string>> fields;
  {
    const Db db = raw_db(forger.dir().file("honest"));
    Stmt stmt(db, "SELECT run, name FROM field");
    while (stmt.step()) fields.emplace_back(*stmt.integer(0), *stmt.text(1));
  }
  CHECK(fields.size() == 3 * 17);
  for (const auto& [run, name] : fields)
    forger.check({"UPDATE field SET value = 'forged' WHERE run = " + std::to_string(run) +
                      " AND name = '" + name + "'",
                  run, name});
}

TEST_CASE("every step is covered by the root of its block") {
  const Forger forger;
  for (std::int64_t step = 0; step < 130; step += 13)
    forger.check(
        {"UPDATE step SET token = token + 1 WHERE key = (2 << 32) + " + std::to_string(step), 2,
         block_name(static_cast<std::uint64_t>(step) / 64)});
}

TEST_CASE("a forger who recomputes every hash but the seal is caught by the seal") {
  const Forger forger;
  const std::string path = forger.dir().file("forged");
  std::filesystem::copy_file(forger.dir().file("honest"), path);
  {
    const Db db = raw_db(path);
    drop_guards(db);
    db.exec("UPDATE step SET token = 7 WHERE key = (2 << 32) + 70");
    const SealedRun sealed = seal_content(read_content(db, 2));
    Stmt(db, "UPDATE block SET root = ? WHERE run = 2 AND idx = 1")
        .bind_blob(sealed.blocks[1])
        .run();
  }
  const VerifyReport report = verify_file(path);
  CHECK(!report.ok);
  CHECK(report.broken.at(0).field == "seal");
  CHECK(report.broken.at(0).entry == 2);
}

TEST_CASE("an unsealed run must have the form of one") {
  const TempDir dir;
  const std::string honest = dir.file("honest");
  {
    const auto ledger = Ledger::open_for_recording(honest);
    record_run(*ledger, 1);
    ledger->begin_run(start_fields())->add_steps(make_steps(0, 70));
  }
  CHECK(verify_file(honest).ok);
  const std::vector<Forgery> forgeries = {
      {"UPDATE run SET id = 'x' WHERE number = 2", 2, "id"},
      {"UPDATE ledger SET id = 'x'", 1, "ledger.id"},
      {"UPDATE field SET value = 7 WHERE run = 2 AND name = 'number'", 2, "number"},
      {"DELETE FROM field WHERE run = 2 AND name = 'seal_version'", 2, "seal_version"},
      {"UPDATE field SET value = 1.5 WHERE run = 2 AND name = 'tag.case'", 2, "tag.case"},
      {"DELETE FROM run_secret WHERE run = 2", 2, "run_secret"},
      {"DELETE FROM step WHERE key = (2 << 32) + 3", 2, "steps[0..63]"},
      {"UPDATE step SET logits = x'00' WHERE key = (2 << 32) + 69", 2, "steps[64..127]"},
      {"INSERT INTO field VALUES (2, 'status', 'finished')", 2, "seal"},
      {"INSERT INTO leaf VALUES (2, 'status', " + kBytes32 + ")", 2, "seal"},
      {"INSERT INTO block VALUES (2, 0, " + kBytes32 + ")", 2, "seal"},
  };
  for (const Forgery& forgery : forgeries) {
    CAPTURE(forgery.sql);
    const std::string path = dir.file("forged");
    std::filesystem::copy_file(honest, path, std::filesystem::copy_options::overwrite_existing);
    forge(path, forgery.sql);
    const VerifyReport report = verify_file(path);
    CHECK(!report.ok);
    REQUIRE(!report.broken.empty());
    CHECK(report.broken[0].field == forgery.field);
    CHECK(report.broken[0].entry == forgery.entry);
  }
}
