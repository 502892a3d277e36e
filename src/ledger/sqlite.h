// Owners of SQLite handles, and the one place where its result codes become Errors.
// Knows nothing of runs. SQLite's types go no further than this room.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "detrun/error.h"
#include "detrun/trace.h"

namespace detrun::ledger {

/// What SQLite answered, for the few callers that try again or look closer.
class SqliteError : public Error {
 public:
  SqliteError(int code, ExitCode kind, const std::string& message, const std::string& hint = {})
      : Error(kind, message, hint), code_(code) {}
  int primary_code() const { return code_ & 0xff; }
  bool busy() const { return primary_code() == SQLITE_BUSY || primary_code() == SQLITE_LOCKED; }

 private:
  int code_;
};

/// The verdict on an SQLite result code (extended): 2 not a database or not to be opened, 4
/// damaged, 5 disk full, I/O, memory, busy, refused by a guard. `system_errno` tells a full disk
/// from a fault.
[[noreturn]] void throw_sqlite(int code, int system_errno, const std::string& path,
                               const std::string& detail);

/// A connection. Move-only.
class Db {
 public:
  Db() = default;
  /// `name` as SQLite takes it (path or URI), `path` for messages.
  Db(const std::string& name, const std::string& path, int flags);

  sqlite3* get() const { return handle_.get(); }
  const std::string& path() const { return path_; }
  /// Runs statements that return nothing of interest.
  void exec(const std::string& sql) const;
  /// First column of the first row.
  std::int64_t integer(const std::string& sql) const;
  std::string text(const std::string& sql) const;
  [[noreturn]] void fail(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
};

/// A prepared statement: bind in order, step, read columns. Move-only.
class Stmt {
 public:
  Stmt(const Db& db, std::string_view sql);

  /// The next parameters, from the first on after construction or reset().
  Stmt& bind(std::int64_t value);
  Stmt& bind_text(std::string_view value);
  Stmt& bind_blob(std::string_view value);
  Stmt& bind(const FieldValue& value);
  template <std::size_t N>
  Stmt& bind_blob(const std::array<std::uint8_t, N>& value) {
    return bind_blob(std::string_view(reinterpret_cast<const char*>(value.data()), N));
  }
  /// True when there is a row.
  bool step();
  /// Steps a statement that returns no row, and makes it ready for other values.
  void run();
  void reset();

  /// A column as it is stored; nullopt for a floating-point number, which no ledger holds.
  std::optional<FieldValue> value(int column) const;
  /// Typed reading; nullopt when stored as another type.
  std::optional<std::int64_t> integer(int column) const;
  std::optional<std::string> text(int column) const;
  std::optional<std::string> blob(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const { sqlite3_finalize(stmt); }
  };
  const Db* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int bound_ = 0;

  void check(int code) const;
};

/// One consistent view for several reads. Ends with the object.
class ReadTransaction {
 public:
  explicit ReadTransaction(const Db& db);
  ~ReadTransaction();
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

 private:
  const Db& db_;
  bool outermost_;
};

}  // namespace detrun::ledger
