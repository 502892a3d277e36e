// Thin owners around the C API; throw_sqlite maps result codes to exit codes.
#include "ledger/sqlite.h"

#include <cerrno>
#include <cstring>

#include "detrun/text.h"

namespace detrun::ledger {
namespace {

std::string quoted(const std::string& path) { return "'" + escape_for_terminal(path) + "'"; }

bool is_full(int code, int system_errno) {
  return (code & 0xff) == SQLITE_FULL || system_errno == ENOSPC || system_errno == EDQUOT ||
         system_errno == EFBIG;
}

[[noreturn]] void throw_io(int code, int system_errno, const std::string& where,
                           const std::string& why) {
  if (is_full(code, system_errno))
    throw SqliteError(code, ExitCode::kInternal, where + ": disk full" + why,
                      "Nothing recorded before is lost. Make room, then record again.");
  if (code == SQLITE_IOERR_SHORT_READ)
    throw SqliteError(code, ExitCode::kTampered, where + " is cut short" + why);
  const std::string cause =
      system_errno != 0 ? ": " + std::string(std::strerror(system_errno)) : std::string();
  throw SqliteError(code, ExitCode::kInternal, where + ": I/O error" + why + cause);
}

}  // namespace

void throw_sqlite(int code, int system_errno, const std::string& path, const std::string& detail) {
  const std::string where = "ledger " + quoted(path);
  const std::string why = " (" + detail + ")";
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      throw SqliteError(code, ExitCode::kUsage, where + " is not an SQLite database",
                        "Give the file that 'detrun record --ledger' wrote.");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      throw SqliteError(code, ExitCode::kUsage, where + " cannot be opened or written" + why,
                        "Check the permissions of the file and of its folder.");
    case SQLITE_TOOBIG:
      throw SqliteError(code, ExitCode::kUsage, where + ": a value is too large" + why);
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT:
    case SQLITE_ERROR:  // Our statements are right: the tables are not what they were.
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
      throw SqliteError(code, ExitCode::kTampered, where + " is damaged" + why,
                        "Compare it with a backup; 'detrun verify' names what is broken.");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw SqliteError(code, ExitCode::kInternal,
                        where + " is held by another process for too long" + why,
                        "Find the process that keeps the file locked, for example with fuser.");
    case SQLITE_NOMEM:
      throw SqliteError(code, ExitCode::kInternal, where + ": out of memory" + why);
    case SQLITE_FULL:
    case SQLITE_IOERR:
      throw_io(code, system_errno, where, why);
    default:
      throw SqliteError(code, ExitCode::kInternal, where + ": refused by SQLite" + why);
  }
}

Db::Db(const std::string& name, const std::string& path, int flags) : path_(path) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  handle_.reset(raw);
  if (code != SQLITE_OK) fail(code);
}

void Db::fail(int code) const {
  // SQLite notes the cause of a failing statement, but not that of a failing COMMIT: there errno,
  // cleared before the call, still tells it.
  const int left_behind = errno;
  int system_errno = handle_ ? sqlite3_system_errno(get()) : 0;
  if (system_errno == 0) system_errno = left_behind;
  const char* text = handle_ ? sqlite3_errmsg(get()) : sqlite3_errstr(code);
  throw_sqlite(code, system_errno, path_, escape_for_terminal(text));
}

void Db::exec(const std::string& sql) const {
  errno = 0;
  const int code = sqlite3_exec(get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::int64_t Db::integer(const std::string& sql) const {
  Stmt stmt(*this, sql);
  return stmt.step() ? stmt.integer(0).value_or(0) : 0;
}

std::string Db::text(const std::string& sql) const {
  Stmt stmt(*this, sql);
  return stmt.step() ? stmt.text(0).value_or("") : "";
}

Stmt::Stmt(const Db& db, std::string_view sql) : db_(&db) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v2(db.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  handle_.reset(raw);
  check(code);
}

void Stmt::check(int code) const {
  if (code != SQLITE_OK) db_->fail(code);
}

Stmt& Stmt::bind(std::int64_t value) {
  check(sqlite3_bind_int64(handle_.get(), ++bound_, value));
  return *this;
}

Stmt& Stmt::bind_text(std::string_view value) {
  check(sqlite3_bind_text64(handle_.get(), ++bound_, value.data() != nullptr ? value.data() : "",
                            value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Stmt& Stmt::bind_blob(std::string_view value) {
  check(sqlite3_bind_blob64(handle_.get(), ++bound_, value.data() != nullptr ? value.data() : "",
                            value.size(), SQLITE_TRANSIENT));
  return *this;
}

Stmt& Stmt::bind(const FieldValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return bind(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return bind_text(*text);
  if (const auto* blob = std::get_if<Blob>(&value)) return bind_blob(blob->bytes);
  check(sqlite3_bind_null(handle_.get(), ++bound_));
  return *this;
}

bool Stmt::step() {
  errno = 0;
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) db_->fail(code);
  return false;
}

void Stmt::run() {
  step();
  reset();
}

void Stmt::reset() {
  sqlite3_reset(handle_.get());
  bound_ = 0;
}

std::optional<FieldValue> Stmt::value(int column) const {
  switch (sqlite3_column_type(handle_.get(), column)) {
    case SQLITE_INTEGER:
      return FieldValue(std::int64_t{sqlite3_column_int64(handle_.get(), column)});
    case SQLITE_TEXT:
      return FieldValue(*text(column));
    case SQLITE_BLOB:
      return FieldValue(Blob{*blob(column)});
    case SQLITE_NULL:
      return FieldValue();
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> Stmt::integer(int column) const {
  if (sqlite3_column_type(handle_.get(), column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(handle_.get(), column);
}

std::optional<std::string> Stmt::text(int column) const {
  if (sqlite3_column_type(handle_.get(), column) != SQLITE_TEXT) return std::nullopt;
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  if (bytes == nullptr) db_->fail(SQLITE_NOMEM);
  return std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column)));
}

std::optional<std::string> Stmt::blob(int column) const {
  if (sqlite3_column_type(handle_.get(), column) != SQLITE_BLOB) return std::nullopt;
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column));
  if (bytes == nullptr && size > 0) db_->fail(SQLITE_NOMEM);
  return bytes != nullptr ? std::string(bytes, size) : std::string();
}

ReadTransaction::ReadTransaction(const Db& db)
    : db_(db), outermost_(sqlite3_get_autocommit(db.get()) != 0) {
  if (outermost_) db_.exec("BEGIN");
}

ReadTransaction::~ReadTransaction() {
  if (outermost_) sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

}  // namespace detrun::ledger
