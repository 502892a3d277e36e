// Result codes to exit codes, and typed columns.
#include "ledger/sqlite.h"

#include <cerrno>

#include "helpers.h"

using namespace detrun;
using namespace detrun::ledger;
using namespace detrun::test;

namespace {

ExitCode kind_of(int code, int system_errno = 0) {
  return exit_code_of([&] { throw_sqlite(code, system_errno, "x.db", "detail"); });
}

Db memory() { return {":memory:", ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY}; }

}  // namespace

TEST_CASE("every SQLite result code has an exit code of the manual") {
  CHECK(kind_of(SQLITE_NOTADB) == ExitCode::kUsage);
  CHECK(kind_of(SQLITE_CANTOPEN_ISDIR) == ExitCode::kUsage);
  CHECK(kind_of(SQLITE_READONLY_DIRECTORY) == ExitCode::kUsage);
  CHECK(kind_of(SQLITE_PERM) == ExitCode::kUsage);
  CHECK(kind_of(SQLITE_CORRUPT) == ExitCode::kTampered);
  CHECK(kind_of(SQLITE_CORRUPT_INDEX) == ExitCode::kTampered);
  CHECK(kind_of(SQLITE_IOERR_SHORT_READ) == ExitCode::kTampered);
  CHECK(kind_of(SQLITE_ERROR) == ExitCode::kTampered);
  CHECK(kind_of(SQLITE_FULL) == ExitCode::kInternal);
  CHECK(kind_of(SQLITE_IOERR_READ, EIO) == ExitCode::kInternal);
  CHECK(kind_of(SQLITE_NOMEM) == ExitCode::kInternal);
  CHECK(kind_of(SQLITE_BUSY_SNAPSHOT) == ExitCode::kInternal);
  CHECK(kind_of(SQLITE_CONSTRAINT_TRIGGER) == ExitCode::kInternal);
}

TEST_CASE("a full disk is told from a faulty one") {
  for (const int error : {ENOSPC, EDQUOT, EFBIG}) {
    std::string message;
    CHECK(exit_code_of([&] { throw_sqlite(SQLITE_IOERR_WRITE, error, "x.db", "d"); }, &message) ==
          ExitCode::kInternal);
    CHECK(message.find("disk full") != std::string::npos);
  }
  std::string message;
  exit_code_of([&] { throw_sqlite(SQLITE_IOERR_FSYNC, EIO, "x.db", "d"); }, &message);
  CHECK(message.find("disk full") == std::string::npos);
}

TEST_CASE("busy in any form can be tried again") {
  for (const int code : {SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_BUSY_RECOVERY, SQLITE_LOCKED}) {
    try {
      throw_sqlite(code, 0, "x.db", "d");
    } catch (const SqliteError& error) {
      CHECK(error.busy());
    }
  }
  try {
    throw_sqlite(SQLITE_FULL, 0, "x.db", "d");
  } catch (const SqliteError& error) {
    CHECK(!error.busy());
  }
}

TEST_CASE("a path in a message cannot drive the terminal") {
  std::string message;
  exit_code_of([&] { throw_sqlite(SQLITE_CORRUPT, 0, "\x1b[2J.db", "d"); }, &message);
  CHECK(message.find('\x1b') == std::string::npos);
}

TEST_CASE("values of every type are bound and read back") {
  const Db db = memory();
  db.exec("CREATE TABLE t (v ANY) STRICT");
  const std::vector<FieldValue> values = {
      FieldValue(),           FieldValue(INT64_MIN), FieldValue(std::string()),
      FieldValue("\xc3\xa9"), FieldValue(Blob{}),    FieldValue(Blob{std::string("\0\xff", 2)})};
  for (const FieldValue& value : values) Stmt(db, "INSERT INTO t VALUES (?)").bind(value).run();
  Stmt stmt(db, "SELECT v FROM t ORDER BY rowid");
  for (const FieldValue& value : values) {
    REQUIRE(stmt.step());
    CHECK(stmt.value(0) == value);
  }
  CHECK(!stmt.step());
}

TEST_CASE("a floating-point number is no value, a value of another type is not converted") {
  const Db db = memory();
  Stmt stmt(db, "SELECT 1.5, '12', 12, x'3132'");
  REQUIRE(stmt.step());
  CHECK(!stmt.value(0));
  CHECK(!stmt.integer(1));
  CHECK(!stmt.text(2));
  CHECK(!stmt.text(3));
  CHECK(stmt.blob(3) == "12");
}
