// The locks of live runs.
#include "ledger/lock_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"

using namespace detrun;
using namespace detrun::ledger;
using namespace detrun::test;

TEST_CASE("a run is locked by one description at a time") {
  const TempDir dir;
  LockFile one(dir.file("l"), LockFile::Access::kWrite);
  LockFile two(dir.file("l"), LockFile::Access::kWrite);
  CHECK(one.try_lock(7));
  CHECK(!one.try_lock(7));
  CHECK(!two.try_lock(7));
  CHECK(two.try_lock(8));
  CHECK(one.is_live(7));
  CHECK(two.is_live(7));
  CHECK(one.is_live(8));
  CHECK(!one.is_live(9));
  one.unlock(7);
  CHECK(!two.is_live(7));
  CHECK(two.try_lock(7));
}

TEST_CASE("a reader sees the lock and creates no file") {
  const TempDir dir;
  {
    const LockFile reader(dir.file("l"), LockFile::Access::kRead);
    CHECK(!reader.is_live(1));
  }
  CHECK(!std::filesystem::exists(dir.file("l-lock")));
  LockFile writer(dir.file("l"), LockFile::Access::kWrite);
  CHECK(writer.try_lock(1));
  const LockFile reader(dir.file("l"), LockFile::Access::kRead);
  CHECK(reader.is_live(1));
  CHECK(!reader.is_live(2));
}

TEST_CASE("the lock file is for its owner alone, whatever the umask") {
  const TempDir dir;
  for (const mode_t mask : {mode_t{0}, mode_t{0077}, mode_t{0777}}) {
    const std::string path = dir.file("u" + std::to_string(mask));
    const mode_t before = ::umask(mask);
    { const LockFile lock(path, LockFile::Access::kWrite); }
    ::umask(before);
    struct stat info {};
    REQUIRE(::stat((path + "-lock").c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0600);
  }
}

TEST_CASE("the lock of a process ends with it") {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    LockFile lock(dir.file("l"), LockFile::Access::kWrite);
    ::_exit(lock.try_lock(3) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  LockFile lock(dir.file("l"), LockFile::Access::kWrite);
  CHECK(!lock.is_live(3));
  CHECK(lock.try_lock(3));
}

TEST_CASE("a lock file that cannot be made is a usage error") {
  const TempDir dir;
  CHECK(exit_code_of([&] {
          const LockFile lock(dir.file("no/such/folder/l"), LockFile::Access::kWrite);
        }) == ExitCode::kUsage);
}
