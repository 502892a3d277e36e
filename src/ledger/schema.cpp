// Creation and comparison of the tables. The text of schema.sql is compiled in.
#include "ledger/schema.h"

#include <algorithm>
#include <map>

#include "detrun/ledger.h"
#include "detrun/text.h"
#include "ledger/schema_sql.h"

namespace detrun::ledger {
namespace {

/// What SQLite makes for itself (indexes of UNIQUE, statistics) is no part of the comparison.
constexpr std::string_view kObjectsSql =
    "SELECT name, type, sql FROM sqlite_schema"
    " WHERE NOT (type = 'index' AND name GLOB 'sqlite_autoindex_*')"
    " AND NOT (type = 'table' AND name GLOB 'sqlite_stat[14]')";

std::map<std::string, SchemaObject> objects_of(const Db& db) {
  std::map<std::string, SchemaObject> objects;
  Stmt stmt(db, kObjectsSql);
  while (stmt.step()) {
    SchemaObject object{stmt.text(0).value_or(""), stmt.text(1).value_or(""),
                        stmt.text(2).value_or("")};
    objects.emplace(object.name, object);
  }
  return objects;
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
    for (const auto& [name, object] : objects_of(memory)) objects.push_back(object);
    return objects;
  }();
  return kObjects;
}

SchemaDifference compare_schema(const Db& db) {
  std::map<std::string, SchemaObject> found = objects_of(db);
  SchemaDifference difference;
  for (const SchemaObject& expected : expected_objects()) {
    const auto actual = found.extract(expected.name);
    const bool equal = !actual.empty() && actual.mapped().type == expected.type &&
                       actual.mapped().sql == expected.sql;
    if (equal) continue;
    if (expected.type == "table") {
      if (difference.table.empty()) difference.table = expected.name;
    } else {
      (actual.empty() ? difference.missing : difference.altered).push_back(expected.name);
    }
  }
  for (const auto& [name, object] : found) {
    difference.unknown.push_back(name);
    if (object.type == "trigger") difference.unknown_triggers.push_back(name);
  }
  return difference;
}

}  // namespace detrun::ledger
