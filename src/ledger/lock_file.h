// Who is writing which run: one byte of LEDGER-lock for every live run, locked by its writer.
// Open-file-description locks, because closing a second descriptor on the database file itself
// would drop SQLite's own locks. The kernel lets go of a lock when its writer dies.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace detrun::ledger {

/// The lock file beside a ledger. Readers never create it.
class LockFile {
 public:
  enum class Access { kRead, kWrite };
  /// kWrite creates the file (0600) when absent; Error kUsage when it cannot be opened.
  LockFile(const std::string& ledger_path, Access access);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// Takes the lock of a run; false when another description holds it.
  bool try_lock(std::int64_t number);
  void unlock(std::int64_t number);
  /// True when this or any other process writes the run.
  bool is_live(std::int64_t number) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::set<std::int64_t> own_;  ///< the kernel does not report a description's own locks
};

}  // namespace detrun::ledger
