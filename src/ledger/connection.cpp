// Opening for recording and for reading. The database file itself is opened by SQLite alone: a
// second descriptor, once closed, would drop the locks SQLite holds. (Two exceptions, both where
// no connection of this process can have it open: creation, and a file SQLite just refused.)
#include "ledger/connection.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "detrun/log.h"
#include "detrun/text.h"
#include "ledger/schema.h"

namespace detrun::ledger {
namespace {

constexpr int kBusyMs = 30'000;      ///< how long a lock of another process is waited for
constexpr int kCloseBusyMs = 2'000;  ///< how long closing waits for readers

std::string quoted(const std::string& path) { return "'" + escape_for_terminal(path) + "'"; }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// The file's own path: names beside it (-wal, -lock) must not depend on a symbolic link.
std::string real_path(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  return ::realpath(path.c_str(), buffer.data()) != nullptr ? buffer.data() : path;
}

/// Size of a file; -1 when there is none. Error kUsage for what is no regular file.
std::int64_t file_size(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return -1;
    throw_usage("ledger " + quoted(path) + " cannot be reached: " + std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) throw_usage("ledger " + quoted(path) + " is a directory");
  if (!S_ISREG(info.st_mode)) throw_usage("ledger " + quoted(path) + " is not a regular file");
  return info.st_size;
}

/// A second name has a second -wal and a second lock file: two writers would not see each other.
void refuse_hard_links(const std::string& real, const std::string& path) {
  struct stat info {};
  if (::stat(real.c_str(), &info) != 0 || info.st_nlink <= 1) return;
  throw_usage("ledger " + quoted(path) + " has " + std::to_string(info.st_nlink) +
                  " names (hard links); recording through two of them would damage it",
              "Remove the other names, or copy the ledger and record into the copy.");
}

/// SQLite creates files with the umask applied; a ledger is nobody else's to read, so it comes
/// first.
void create_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) {
    ::fchmod(fd, 0600);
    ::close(fd);
  } else if (errno != EEXIST) {
    throw_usage("ledger " + quoted(path) + " cannot be created: " + std::strerror(errno),
                "Choose another place with --ledger FILE.");
  }
}

/// A URI in which no byte of a file name means anything.
std::string file_uri(const std::string& path, std::string_view query) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
  std::string uri = "file:";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      uri.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return uri.append(query);
}

/// What every connection gets before its first statement: no code from the file is run, no value
/// and no statement beyond what a ledger needs.
void harden(const Db& db, bool recording) {
  struct Limit {
    int id, value;
  };
  constexpr std::array kLimits = {
      Limit{SQLITE_LIMIT_LENGTH, static_cast<int>(kValueBytesMax) + 4096},
      Limit{SQLITE_LIMIT_SQL_LENGTH, 100'000},
      Limit{SQLITE_LIMIT_COLUMN, 64},
      Limit{SQLITE_LIMIT_EXPR_DEPTH, 64},
      Limit{SQLITE_LIMIT_COMPOUND_SELECT, 16},
      Limit{SQLITE_LIMIT_VDBE_OP, 250'000},
      Limit{SQLITE_LIMIT_FUNCTION_ARG, 8},
      Limit{SQLITE_LIMIT_ATTACHED, 0},
      Limit{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256},
      Limit{SQLITE_LIMIT_VARIABLE_NUMBER, 64},
      Limit{SQLITE_LIMIT_TRIGGER_DEPTH, 8},
      Limit{SQLITE_LIMIT_WORKER_THREADS, 0},
  };
  for (const Limit& limit : kLimits) sqlite3_limit(db.get(), limit.id, limit.value);
  struct Config {
    int id, value;
  };
  const std::array configs = {
      Config{SQLITE_DBCONFIG_DEFENSIVE, 1},
      Config{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
      Config{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
      Config{SQLITE_DBCONFIG_DQS_DML, 0},
      Config{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
      Config{SQLITE_DBCONFIG_ENABLE_TRIGGER, recording ? 1 : 0},
  };
  for (const Config& config : configs)
    sqlite3_db_config(db.get(), config.id, config.value, static_cast<int*>(nullptr));
  sqlite3_busy_timeout(db.get(), kBusyMs);
  db.exec("PRAGMA trusted_schema = OFF");
  db.exec("PRAGMA temp_store = MEMORY");
}

/// Whether a file SQLite just refused begins like a ledger: what is damaged is looked at twice.
bool begins_like_a_ledger(const std::string& real) {
  std::array<char, 72> header{};
  const int fd = ::open(real.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd >= 0 ? ::pread(fd, header.data(), header.size(), 0) : 0;
  if (fd >= 0) ::close(fd);
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr std::string_view kOurs = "DTRN";  // application_id, big-endian, at byte 68
  if (got < 16 || std::string_view(header.data(), 16) != kMagic) return false;
  return got < 72 || std::string_view(&header[68], 4) == kOurs;
}

/// check_header, with what is damaged told from what was never ours. No database is shorter than
/// its header.
FileKind examine(const Db& db, const std::string& real) {
  try {
    const std::int64_t size = file_size(real);
    if (size > 0 && size < 100) throw_sqlite(SQLITE_NOTADB, 0, db.path(), "");
    return check_header(db);
  } catch (const SqliteError& error) {
    const bool no_database = error.primary_code() == SQLITE_NOTADB;
    const bool damaged = error.kind() == ExitCode::kTampered;
    if (!no_database && !damaged) throw;
    if (begins_like_a_ledger(real)) {
      if (damaged) throw;
      throw_sqlite(SQLITE_CORRUPT, 0, db.path(), "its header is damaged or cut");
    }
    if (no_database) throw;
    throw_usage("ledger " + quoted(db.path()) + " belongs to another application and is damaged",
                "Give the file that 'detrun record --ledger' wrote.");
  }
}

void use_wal(const Db& db) {
  // Changing the mode does not always call the busy handler, so the patience is here.
  for (int waited_ms = 0;; waited_ms += 10) {
    try {
      const std::string mode = db.text("PRAGMA journal_mode = WAL");
      if (mode == "wal") return;
      throw_usage(
          "ledger " + quoted(db.path()) + " cannot use a write-ahead log (mode '" + mode + "')",
          "Keep ledgers on a local file system.");
    } catch (const SqliteError& error) {
      if (!error.busy() || waited_ms >= kBusyMs) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names)
    all += (all.empty() ? "" : ", ") + escape_for_terminal(name);
  return all;
}

/// Nothing is recorded where the guards do not hold, or where a stranger's trigger would run or an
/// index of theirs be asked.
void require_guards(const Db& db) {
  const SchemaDifference difference = compare_schema(db);
  const std::string where = "ledger " + quoted(db.path());
  const std::string hint =
      "'detrun verify' says whether its runs are intact. Record into a new ledger.";
  if (!difference.table.empty())
    throw Error(ExitCode::kTampered,
                where + ": table " + difference.table + " is not the one detrun creates", hint);
  if (!difference.missing.empty())
    throw_usage(where + ": guards missing: " + joined(difference.missing), hint);
  if (!difference.altered.empty())
    throw_usage(where + ": guards altered: " + joined(difference.altered), hint);
  if (!difference.unsafe.empty())
    throw_usage(where + ": unknown triggers or indexes: " + joined(difference.unsafe), hint);
}

}  // namespace

Connection::Connection(Db db, std::unique_ptr<LockFile> locks, bool recording)
    : db_(std::move(db)), locks_(std::move(locks)), recording_(recording) {}

Connection Connection::for_recording(const std::string& path) {
  if (file_size(path) < 0) create_file(path);
  const std::string real = real_path(path);
  if (::access(real.c_str(), W_OK) != 0)
    throw_usage("ledger " + quoted(path) + " cannot be written: " + std::strerror(errno),
                "Choose another place with --ledger FILE.");
  refuse_hard_links(real, path);
  if (::access(folder_of(real).c_str(), W_OK | X_OK) != 0)
    throw_usage(
        "the folder of ledger " + quoted(path) + " cannot be written: " + std::strerror(errno),
        "SQLite needs to create files beside the ledger. Choose another place.");
  Db db(real, path, SQLITE_OPEN_READWRITE);
  harden(db, true);
  const FileKind kind = examine(db, real);
  if (kind == FileKind::kLedger) require_guards(db);
  use_wal(db);
  db.exec("PRAGMA synchronous = FULL");
  db.exec("PRAGMA foreign_keys = ON");
  db.exec("PRAGMA recursive_triggers = ON");
  db.exec("PRAGMA cell_size_check = ON");
  Connection connection(std::move(db), std::make_unique<LockFile>(real, LockFile::Access::kWrite),
                        true);
  if (kind == FileKind::kEmpty) {
    connection.write([&] {
      if (check_header(connection.db()) == FileKind::kEmpty) create_schema(connection.db());
    });
    // So that a copy of the file alone is a ledger without runs, and not an empty file.
    sqlite3_wal_checkpoint_v2(connection.db().get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                              nullptr);
    require_guards(connection.db());
  }
  return connection;
}

Connection Connection::for_reading(const std::string& path) {
  const std::int64_t size = file_size(path);
  if (size < 0)
    throw_usage("ledger " + quoted(path) + " does not exist",
                "Name it with --ledger FILE, or record a run first.");
  const std::string real = real_path(path);
  if (::access(real.c_str(), R_OK) != 0)
    throw_usage("ledger " + quoted(path) + " cannot be read: " + std::strerror(errno));
  const bool writable =
      ::access(real.c_str(), W_OK) == 0 && ::access(folder_of(real).c_str(), W_OK | X_OK) == 0;
  const bool has_wal = file_size(real + "-wal") > 0;
  // With a log beside it the file is opened read-only and left as it is. Without one a read-only
  // connection would leave an empty log behind, which one that may write takes away again; it
  // still cannot change anything (query_only).
  std::string name = file_uri(real, "");
  int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  if (!has_wal && writable) flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI;
  if (!has_wal && !writable) name = file_uri(real, "?immutable=1");
  Db db(name, path, flags);
  harden(db, false);
  db.exec("PRAGMA query_only = ON");
  db.exec("PRAGMA cell_size_check = ON");
  try {
    if (examine(db, real) == FileKind::kEmpty)
      throw_usage("ledger " + quoted(path) + " is empty: nothing was recorded in it");
  } catch (const SqliteError& error) {
    if (!has_wal || writable || error.primary_code() != SQLITE_CANTOPEN) throw;
    throw_usage("ledger " + quoted(path) + " has entries in its write-ahead log, which cannot be " +
                    "read in a folder without write permission",
                "Copy the file together with its -wal to a folder of your own and read it there.");
  }
  return {std::move(db), std::make_unique<LockFile>(real, LockFile::Access::kRead), false};
}

Connection::~Connection() {
  if (!recording_ || db_.get() == nullptr) return;
  sqlite3_busy_timeout(db_.get(), kCloseBusyMs);
  const int code =
      sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
    log_warning("ledger " + quoted(path()) + ": the newest entries are still in its -wal file (" +
                sqlite3_errstr(code) + "): keep both files together");
}

/// What is written to a file that lost its name is lost when the last descriptor closes.
void Connection::require_in_place() const {
  int moved = 0;
  const int code = sqlite3_file_control(db_.get(), nullptr, SQLITE_FCNTL_HAS_MOVED, &moved);
  if (code != SQLITE_OK || moved == 0) return;
  throw_internal("ledger " + quoted(path()) + " was moved, replaced or deleted while it was in use",
                 "What was recorded is in the file that had this name; find it, or record again.");
}

void Connection::write(const std::function<void()>& work) const {
  require_in_place();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyMs);
  for (;;) {
    try {
      db_.exec("BEGIN IMMEDIATE");
      work();
      db_.exec("COMMIT");
      return;
    } catch (const SqliteError& error) {
      sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
      if (!error.busy() || std::chrono::steady_clock::now() >= give_up) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } catch (...) {
      sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
      throw;
    }
  }
}

}  // namespace detrun::ledger
