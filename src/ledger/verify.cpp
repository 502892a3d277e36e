// The ledger as a whole: schema, every run, the log's order, the file. See detrun-ledger(5).
#include "ledger/verify.h"

#include <limits>
#include <set>

#include "detrun/text.h"
#include "ledger/schema.h"
#include "ledger/verify_run.h"

namespace detrun::ledger {
namespace {

constexpr std::string_view kCompleteness = "completeness: self-attested";

/// Reports are printed and become JSON: what is no UTF-8 is escaped visibly.
std::string printable(const std::string& text) {
  return is_utf8(text) ? text : escape_for_terminal(text);
}

class Verifier {
 public:
  explicit Verifier(const Connection& connection) : connection_(connection), db_(connection.db()) {}

  VerifyReport all() {
    guarded(std::nullopt, [this] { check_everything(); });
    return finish();
  }

  VerifyReport one(std::int64_t number) {
    guarded(number, [&] {
      const ReadTransaction snapshot(db_);
      if (!check_schema()) return;
      const LedgerRow row = read_ledger_row(db_);
      if (!run_exists(db_, number)) {
        add(number, "", std::string(field::number), "there is no such run");
      } else {
        check_one(row, number);
      }
    });
    return finish();
  }

 private:
  const Connection& connection_;
  const Db& db_;
  VerifyReport report_;
  std::vector<std::int64_t> unsealed_;
  std::vector<std::string> unchecked_log_;

  void add(std::optional<std::int64_t> entry, const std::string& id, const std::string& field,
           const std::string& why) {
    report_.ok = false;
    report_.broken.push_back({entry, printable(id), printable(field), printable(why)});
  }

  /// Damage met on the way is a finding, not the end of the command.
  template <typename Work>
  void guarded(std::optional<std::int64_t> entry, const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.kind() != ExitCode::kTampered) throw;
      add(entry, "", "database", error.what());
    }
  }

  void check_everything() {
    const ReadTransaction snapshot(db_);
    if (!check_schema()) return;
    LedgerRow row;
    guarded(std::nullopt, [&] { row = read_ledger_row(db_); });
    std::set<std::int64_t> numbers;
    guarded(std::nullopt, [&] { numbers = run_numbers(); });
    for (const std::int64_t number : numbers) guarded(number, [&] { check_one(row, number); });
    check_ledger_row(row);
    guarded(std::nullopt, [&] { check_log(); });
    guarded(std::nullopt, [&] { check_file(); });
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

  /// Every number that any table names, so that no row is outside.
  std::set<std::int64_t> run_numbers() const {
    std::set<std::int64_t> numbers;
    Stmt stmt(db_,
              "SELECT number FROM run UNION SELECT run FROM run_secret UNION SELECT run FROM field"
              " UNION SELECT run FROM leaf UNION SELECT run FROM block"
              " UNION SELECT run FROM log WHERE run IS NOT NULL");
    while (stmt.step()) {
      const auto number = stmt.integer(0);
      if (!number) throw Error(ExitCode::kTampered, "a run number is not an integer");
      numbers.insert(*number);
    }
    // One look-up a run instead of a scan of all steps.
    Stmt next(db_, "SELECT min(key) FROM step WHERE key >= ?");
    for (std::int64_t from = std::numeric_limits<std::int64_t>::min();; ++from) {
      next.reset();
      const auto key = next.bind(from).step() ? next.integer(0) : std::nullopt;
      if (!key) return numbers;
      numbers.insert(*key >> 32);
      from = *key | 0xffffffff;
      if (from == std::numeric_limits<std::int64_t>::max()) return numbers;
    }
  }

  void check_one(const LedgerRow& row, std::int64_t number) {
    const RunCheck check = check_run(db_, row, number);
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
    Stmt stmt(db_, "SELECT idx, kind, run FROM log ORDER BY idx");
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

  void check_file() {
    const std::string answer = db_.text("PRAGMA integrity_check(1)");
    if (answer != "ok") add(std::nullopt, "", "database", answer);
  }

  /// After the snapshot: a run that was sealed in the meantime had a live writer.
  VerifyReport finish() {
    for (const std::int64_t number : unsealed_) {
      guarded(number, [&] {
        const bool live = connection_.locks().is_live(number) || is_sealed(db_, number);
        report_.not_checked.push_back("run " + std::to_string(number) +
                                      (live ? ": live" : ": interrupted, not yet sealed"));
      });
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
