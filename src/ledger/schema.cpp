// Creation and comparison of the tables. The text of schema.sql is compiled in.
#include "ledger/schema.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "detrun/ledger.h"
#include "detrun/text.h"
#include "ledger/schema_sql.h"

namespace detrun::ledger {
namespace {

constexpr std::string_view kAutoIndex = "sqlite_autoindex_";

using Key = std::pair<std::string, std::string>;          ///< name, type
using Objects = std::map<Key, std::vector<std::string>>;  ///< definitions, usually one

/// A row of sqlite_schema. What is no text counts as empty.
struct SchemaRow {
  std::string type, name, table, sql;
};

bool is_table_of_ours(const std::string& name) {
  constexpr std::array<std::string_view, 8> kTables = {"ledger", "run",  "run_secret", "field",
                                                       "step",   "leaf", "block",      "log"};
  // SQLite compares names without regard to the case of ASCII letters.
  std::string lower = name;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(kTables.begin(), kTables.end(), lower) != kTables.end();
}

/// What SQLite makes for itself (the index of UNIQUE, statistics) is no part of the comparison,
/// nor are the automatic indexes of a table that is unknown itself.
bool is_compared(const SchemaRow& row) {
  if (row.type == "table") return row.name != "sqlite_stat1" && row.name != "sqlite_stat4";
  if (row.type != "index" || !row.sql.empty()) return true;
  if (row.name == "sqlite_autoindex_run_1") return false;
  const bool automatic = row.name.starts_with(std::string(kAutoIndex) + row.table + "_");
  return !automatic || is_table_of_ours(row.table);
}

Objects objects_of(const Db& db) {
  Objects objects;
  Stmt stmt(db, "SELECT type, name, tbl_name, sql FROM sqlite_schema");
  while (stmt.step()) {
    const SchemaRow row{stmt.text(0).value_or(""), stmt.text(1).value_or(""),
                        stmt.text(2).value_or(""), stmt.text(3).value_or("")};
    if (is_compared(row)) objects[{row.name, row.type}].push_back(row.sql);
  }
  return objects;
}

/// By the definition, not by what the row calls itself: whatever is no plain table and no view is
/// not let near a recording.
bool is_harmless(const std::string& sql) {
  return sql.starts_with("CREATE TABLE ") || sql.starts_with("CREATE VIEW ");
}

std::string application_name(std::int64_t id) {
  std::string name = id == 0 ? "none" : std::to_string(id);
  std::string letters;
  for (int shift = 24; shift >= 0; shift -= 8)
    letters.push_back(static_cast<char>(id >> shift & 0xff));
  const bool readable =
      std::all_of(letters.begin(), letters.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  return readable ? name + ", '" + letters + "'" : name;
}

}  // namespace

FileKind check_header(const Db& db) {
  // One view for all of it: another process may be creating the ledger right now.
  const ReadTransaction snapshot(db);
  const std::int64_t application = db.integer("PRAGMA application_id");
  const std::int64_t version = db.integer("PRAGMA user_version");
  const std::string where = "ledger '" + escape_for_terminal(db.path()) + "'";
  if (application == 0 && version == 0 && db.integer("SELECT count(*) FROM sqlite_schema") == 0)
    return FileKind::kEmpty;
  if (application != kApplicationId)
    throw_usage(where + " belongs to another application (application_id " +
                    application_name(application) + ", expected " +
                    application_name(kApplicationId) + ")",
                "Give the file that 'detrun record --ledger' wrote.");
  if (version > kLedgerSchemaVersion)
    throw_usage(where + " has schema version " + std::to_string(version) +
                    ", this program knows versions up to " + std::to_string(kLedgerSchemaVersion),
                "Use a newer detrun.");
  if (version < 1)
    throw Error(ExitCode::kTampered,
                where + " has schema version " + std::to_string(version) + ", which never existed");
  return FileKind::kLedger;
}

void create_schema(const Db& db) {
  db.exec(std::string(kSchemaSql));
  Stmt insert(db, "INSERT INTO ledger (one, id, created_at) VALUES (1, ?, ?)");
  const std::int64_t now = unix_time_ms();
  insert.bind_text(uuid_v7(now)).bind_text(utc_timestamp(now)).run();
}

const std::vector<SchemaObject>& expected_objects() {
  static const std::vector<SchemaObject> kObjects = [] {
    const Db memory(":memory:", ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY);
    memory.exec(std::string(kSchemaSql));
    std::vector<SchemaObject> objects;
    for (const auto& [key, definitions] : objects_of(memory))
      objects.push_back({key.first, key.second, definitions.front()});
    return objects;
  }();
  return kObjects;
}

SchemaDifference compare_schema(const Db& db) {
  Objects found = objects_of(db);
  SchemaDifference difference;
  for (const SchemaObject& expected : expected_objects()) {
    const auto actual = found.extract({expected.name, expected.type});
    if (!actual.empty() && actual.mapped() == std::vector{expected.sql}) continue;
    if (expected.type == "table") {
      if (difference.table.empty()) difference.table = expected.name;
    } else {
      (actual.empty() ? difference.missing : difference.altered).push_back(expected.name);
    }
  }
  const auto add_once = [](std::vector<std::string>& names, const std::string& name) {
    if (names.empty() || names.back() != name) names.push_back(name);
  };
  for (const auto& [key, definitions] : found) {
    add_once(difference.unknown, key.first);
    if (!std::all_of(definitions.begin(), definitions.end(), is_harmless))
      add_once(difference.unsafe, key.first);
  }
  return difference;
}

}  // namespace detrun::ledger
