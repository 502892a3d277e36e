// The ledger as a whole: schema, every run, the log's order, the file. See detrun-ledger(5).
#include "ledger/verify.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "detrun/text.h"
#include "ledger/schema.h"
#include "ledger/verify_run.h"

namespace detrun::ledger {
namespace {

constexpr std::string_view kCompleteness = "completeness: self-attested";

/// Reports become JSON: every byte that is no part of a UTF-8 character is written \xNN.
std::string printable(const std::string& text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::size_t kCharBytesMax = 4;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 1;
    while (length <= kCharBytesMax && !is_utf8(std::string_view(text).substr(at, length))) ++length;
    if (length <= kCharBytesMax) {
      out += text.substr(at, length);
      at += std::min(length, text.size() - at);
    } else {
      const auto byte = static_cast<unsigned char>(text[at++]);
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

/// What SQLite or a check says of damage met on the way, which is a finding and not the end of the
/// command; nullopt when there was none.
template <typename Work>
std::optional<std::string> damage_of(const Work& work) {
  try {
    work();
  } catch (const SqliteError& error) {
    // While reading, a value too large for any ledger is damage as well.
    const int code = error.primary_code();
    if (error.kind() != ExitCode::kTampered && code != SQLITE_TOOBIG && code != SQLITE_NOTADB)
      throw;
    return error.what();
  } catch (const Error& error) {
    if (error.kind() != ExitCode::kTampered) throw;
    return error.what();
  }
  return std::nullopt;
}

class Verifier {
 public:
  explicit Verifier(const Connection& connection) : connection_(connection), db_(connection.db()) {}

  VerifyReport all() {
    note_damage([this] { check_everything(); });
    if (damage_) add(std::nullopt, "", "database", *damage_);
    return finish();
  }

  VerifyReport one(std::int64_t number) {
    const auto damage = damage_of([&] {
      const ReadTransaction snapshot(db_);
      if (!check_schema()) return;
      if (!run_exists(db_, number)) {
        add(number, "", std::string(field::number), "there is no such run");
      } else {
        check_one(shared_rows(), number);
      }
    });
    if (damage) add(number, "", "database", *damage);
    return finish();
  }

 private:
  const Connection& connection_;
  const Db& db_;
  VerifyReport report_;
  std::vector<std::int64_t> unsealed_;
  std::vector<std::string> unchecked_log_;
  std::optional<std::string> damage_;  ///< of the file as a whole: one finding, the last

  void add(std::optional<std::int64_t> entry, const std::string& id, const std::string& field,
           const std::string& why) {
    report_.ok = false;
    report_.broken.push_back({entry, printable(id), printable(field), printable(why)});
  }

  template <typename Work>
  void note_damage(const Work& work) {
    const auto damage = damage_of(work);
    if (!damage_) damage_ = damage;
  }

  SharedRows shared_rows() const {
    SharedRows shared;
    const auto damage = damage_of([&] { shared = read_shared_rows(db_); });
    shared.damage = damage;
    return shared;
  }

  void check_everything() {
    const ReadTransaction snapshot(db_);
    if (!check_schema()) return;
    const SharedRows shared = shared_rows();
    for (const std::int64_t number : run_numbers()) check_one(shared, number);
    note_damage([&] { check_ledger_row(read_ledger_row(db_)); });
    note_damage([&] { check_log(); });
    note_damage([&] { check_file(); });
  }

  static std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + printable(name);
    return all;
  }

  bool check_schema() {
    const SchemaDifference difference = compare_schema(db_);
    if (!difference.missing.empty())
      report_.not_checked.push_back("guards missing: " + joined(difference.missing));
    if (!difference.altered.empty())
      report_.not_checked.push_back("guards altered: " + joined(difference.altered));
    if (!difference.unknown.empty())
      report_.not_checked.push_back("unknown objects: " + joined(difference.unknown));
    if (difference.table.empty()) return true;
    add(std::nullopt, "", "schema", "table " + difference.table + " is missing or altered");
    return false;
  }

  /// Every number that any table names, so that no row is outside; as far as damage lets them be
  /// read.
  std::set<std::int64_t> run_numbers() {
    constexpr std::array kSources = {
        "SELECT number FROM run NOT INDEXED",
        "SELECT run FROM run_secret NOT INDEXED",
        "SELECT run FROM field INDEXED BY sqlite_autoindex_field_1",
        "SELECT run FROM leaf INDEXED BY sqlite_autoindex_leaf_1",
        "SELECT run FROM block INDEXED BY sqlite_autoindex_block_1",
        "SELECT run FROM log NOT INDEXED WHERE run IS NOT NULL",
    };
    std::set<std::int64_t> numbers;
    for (const char* source : kSources) {
      note_damage([&] {
        bool all_integers = true;
        for (Stmt stmt(db_, source); stmt.step();) {
          const auto number = stmt.integer(0);
          if (number) numbers.insert(*number);
          all_integers = all_integers && number;
        }
        if (!all_integers) throw Error(ExitCode::kTampered, "a run number is no integer");
      });
    }
    note_damage([&] { add_step_numbers(numbers); });
    return numbers;
  }

  /// One look-up a run instead of a scan of all steps.
  void add_step_numbers(std::set<std::int64_t>& numbers) const {
    using Limits = std::numeric_limits<std::int64_t>;
    Stmt next(db_, "SELECT key FROM step NOT INDEXED WHERE key >= ? ORDER BY key LIMIT 1");
    for (std::int64_t from = Limits::min();; ++from) {
      next.reset();
      const auto key = next.bind(from).step() ? next.integer(0) : std::nullopt;
      if (!key) return;
      numbers.insert(*key >> 32);
      from = *key | 0xffffffff;
      if (from == Limits::max()) return;
    }
  }

  void check_one(const SharedRows& shared, std::int64_t number) {
    RunCheck check;
    const auto damage = damage_of([&] { check_run(db_, shared, number, check); });
    if (damage) check.broken = Finding{"database", *damage};
    report_.fields_checked += check.fields;
    report_.steps_checked += check.steps;
    if (check.sealed) ++report_.runs_checked;
    if (check.broken) {
      add(number, check.id, check.broken->field, check.broken->why);
    } else if (!check.sealed) {
      unsealed_.push_back(number);
    }
  }

  void check_ledger_row(const LedgerRow& row) {
    const auto is_text = [](const std::optional<FieldValue>& value) {
      return value && std::holds_alternative<std::string>(*value);
    };
    if (row.rows == 0) {
      add(std::nullopt, "", "ledger.one", "the ledger's own row is missing");
    } else if (row.rows > 1) {
      add(std::nullopt, "", "ledger.one", "the ledger has more than one row of its own");
    } else if (row.one != 1) {
      add(std::nullopt, "", "ledger.one", "the ledger's own row is not numbered 1");
    } else if (!is_text(row.id)) {
      add(std::nullopt, "", "ledger.id", "the value is no text");
    } else if (!is_text(row.created_at)) {
      add(std::nullopt, "", "ledger.created_at", "the value is no text");
    }
  }

  void check_log() {
    const std::set<std::string, std::less<>> later = {"verdict", "redaction", "key", "import"};
    Stmt stmt(db_, "SELECT idx, kind, run FROM log NOT INDEXED ORDER BY idx");
    for (std::int64_t expected = 0; stmt.step(); ++expected) {
      std::string name = "log[" + std::to_string(expected) + "]";
      const std::string kind = stmt.text(1).value_or("");
      if (stmt.integer(0) != expected) return add(std::nullopt, "", name, "the entry is missing");
      if (kind == "seal" && !stmt.integer(2))
        return add(std::nullopt, "", name, "the seal names no run");
      if (later.contains(kind)) {
        unchecked_log_.push_back(name.append(": ").append(kind));
      } else if (kind != "seal") {
        return add(std::nullopt, "", name, "the entry is of an unknown kind");
      }
    }
  }

  /// Without CHECKs, which SQLite knows only where the file can be written: the answer must not
  /// depend on that, and what they say of a value is checked above.
  void check_file() {
    db_.exec("PRAGMA ignore_check_constraints = ON");
    const std::string answer = db_.text("PRAGMA integrity_check(1)");
    if (answer != "ok") throw Error(ExitCode::kTampered, answer);
  }

  /// After the snapshot: a run that was sealed in the meantime had a live writer.
  VerifyReport finish() {
    for (const std::int64_t number : unsealed_) {
      bool live = connection_.locks().is_live(number);
      if (!live) damage_of([&] { live = is_sealed(db_, number); });  // told already when there
      report_.not_checked.push_back("run " + std::to_string(number) +
                                    (live ? ": live" : ": interrupted, not yet sealed"));
    }
    for (const std::string& line : unchecked_log_) report_.not_checked.push_back(line);
    report_.not_checked.emplace_back(kCompleteness);
    return std::move(report_);
  }
};

}  // namespace

VerifyReport verify_all(const Connection& connection) { return Verifier(connection).all(); }

VerifyReport verify_one(const Connection& connection, std::int64_t number) {
  return Verifier(connection).one(number);
}

}  // namespace detrun::ledger
