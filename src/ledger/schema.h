// The tables of a ledger: created once, compared with schema.sql ever after.
#pragma once

#include <string>
#include <vector>

#include "ledger/sqlite.h"

namespace detrun::ledger {

inline constexpr std::int64_t kApplicationId = 0x4454524E;  ///< "DTRN"

/// What kind of file a connection shows, by its header.
enum class FileKind { kEmpty, kLedger };
/// Error kUsage: another application's, newer schema; kTampered: our id with an impossible version.
FileKind check_header(const Db& db);

/// Runs schema.sql and enters the ledger's own row, in the caller's transaction.
void create_schema(const Db& db);

/// An object of sqlite_schema: what schema.sql makes, or what a file holds.
struct SchemaObject {
  std::string name, type, sql;
};
/// The objects schema.sql makes, by name; made in a database in memory.
const std::vector<SchemaObject>& expected_objects();

/// How a file's objects differ from schema.sql, compared by type and name: a trigger may have the
/// name of a table. Names in bytewise order, each once.
struct SchemaDifference {
  std::string table;                 ///< first table that is missing or differs; empty: none
  std::vector<std::string> missing;  ///< triggers, indexes, views
  std::vector<std::string> altered;
  std::vector<std::string> unknown;  ///< objects that schema.sql does not make
  /// Those of them that act on what is recorded (triggers) or may hide rows from it (indexes).
  std::vector<std::string> unsafe;
};
SchemaDifference compare_schema(const Db& db);

}  // namespace detrun::ledger
