// How a ledger file is opened: modes, limits, guards against hostile files, transactions.
// Knows tables only by their schema; runs are the store's business.
#pragma once

#include <functional>
#include <string>

#include "ledger/lock_file.h"
#include "ledger/sqlite.h"

namespace detrun::ledger {

/// Largest value of a field or a piece. A longer one is refused when written.
inline constexpr std::size_t kValueBytesMax = std::size_t{256} << 20;

class Connection {
 public:
  /// Opens or creates for recording.
  static Connection for_recording(const std::string& path);
  /// Opens for reading; see Ledger::open_for_reading.
  static Connection for_reading(const std::string& path);

  Connection(Connection&&) = default;
  ~Connection();

  const Db& db() const { return db_; }
  LockFile& locks() { return *locks_; }
  const LockFile& locks() const { return *locks_; }
  const std::string& path() const { return db_.path(); }
  bool recording() const { return recording_; }

  /// Runs `work` in one IMMEDIATE transaction; all of it again when another process came first.
  /// When it throws nothing of it is in the file.
  void write(const std::function<void()>& work) const;

 private:
  Connection(Db db, std::unique_ptr<LockFile> locks, bool recording);
  /// Error kInternal when the file no longer has the name it was opened by.
  void require_in_place() const;

  Db db_;
  std::unique_ptr<LockFile> locks_;
  bool recording_;
};

}  // namespace detrun::ledger
