// What the ledger tests share: a folder of their own, made-up runs, and raw SQL as a forger has it.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "detrun/error.h"
#include "detrun/ledger.h"
#include "ledger/seal.h"
#include "ledger/sqlite.h"

namespace detrun::test {

/// A fresh folder, removed at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "detrun-ledger-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline StepRecord make_step(std::uint64_t index, const std::string& piece) {
  StepRecord step{index,
                  static_cast<std::int32_t>(1000 + index),
                  {},
                  std::bit_cast<std::uint32_t>(1.0F),
                  std::bit_cast<std::uint32_t>(-0.5F),
                  piece};
  step.logits_xxh3.fill(static_cast<std::uint8_t>(index));
  return step;
}

/// Steps [first, first + count); step i has the piece "p<i>".
inline std::vector<StepRecord> make_steps(std::uint64_t first, std::uint64_t count) {
  std::vector<StepRecord> steps;
  for (std::uint64_t i = first; i < first + count; ++i)
    steps.push_back(make_step(i, "p" + std::to_string(i)));
  return steps;
}

inline FieldMap start_fields() {
  return {{std::string(field::started_at), "2026-11-29T21:12:30.123Z"},
          {std::string(field::model_size_bytes), std::int64_t{4096}},
          {std::string(field::model_arch), "llama"},
          {std::string(field::prompt), Blob{std::string("Hi\xff\0!", 5)}},
          {std::string(field::error), {}},
          {"tag.case", "A-1"}};
}

inline FieldMap end_fields() {
  return {{std::string(field::status), "finished"},
          {std::string(field::stop_reason), "length"},
          {std::string(field::ended_at), "2026-11-29T21:12:31.000Z"}};
}

/// Records one finished run and returns its number.
inline std::int64_t record_run(Ledger& ledger, std::uint64_t steps) {
  const std::unique_ptr<RunWriter> writer = ledger.begin_run(start_fields());
  writer->add_steps(make_steps(0, steps));
  writer->add_fields({{std::string(field::model_sha256), Blob{std::string(32, '\x07')}}});
  writer->finish(end_fields());
  return writer->number();
}

/// A closed ledger of three finished runs of 3, 130 and 0 steps.
inline void record_three(const std::string& path) {
  const std::unique_ptr<Ledger> ledger = Ledger::open_for_recording(path);
  record_run(*ledger, 3);
  record_run(*ledger, 130);
  record_run(*ledger, 0);
}

/// A connection without any of the program's guards, as anybody with sqlite3 has it.
inline ledger::Db raw_db(const std::string& path) {
  ledger::Db db(path, path, SQLITE_OPEN_READWRITE);
  db.exec("PRAGMA ignore_check_constraints = ON");
  db.exec("PRAGMA synchronous = OFF");  // forgeries need not survive a power cut
  return db;
}

inline void drop_guards(const ledger::Db& db) {
  std::vector<std::string> names;
  {
    ledger::Stmt stmt(db, "SELECT name FROM sqlite_schema WHERE type = 'trigger'");
    while (stmt.step()) names.push_back(stmt.text(0).value_or(""));
  }
  for (const std::string& name : names) db.exec("DROP TRIGGER " + name);
}

/// Runs SQL on a ledger whose triggers were dropped.
inline void forge(const std::string& path, const std::string& sql) {
  const ledger::Db db = raw_db(path);
  drop_guards(db);
  db.exec(sql);
}

inline VerifyReport verify_file(const std::string& path) {
  return Ledger::open_for_reading(path)->verify();
}

/// The exit code `work` ends with; kOk when it does not throw. The message goes to `message`.
template <typename Work>
ExitCode exit_code_of(const Work& work, std::string* message = nullptr) {
  try {
    work();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.kind();
  }
  return ExitCode::kOk;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline bool contains(const std::vector<std::string>& lines, const std::string& line) {
  for (const std::string& each : lines) {
    if (each == line) return true;
  }
  return false;
}

}  // namespace detrun::test
