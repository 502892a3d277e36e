// The front door: a ledger and the writer of one run, over connection, store, seal and verify.
#include "detrun/ledger.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "detrun/text.h"
#include "ledger/connection.h"
#include "ledger/store.h"
#include "ledger/verify.h"

namespace detrun {
namespace {

using ledger::Connection;
using ledger::RunContent;
using ledger::SealedRun;

constexpr std::size_t kSelectorMin = 4;    ///< shortest part of an id that selects
constexpr std::size_t kCandidatesMax = 8;  ///< named when a part is ambiguous

/// A value is refused before anything is written, so that a transaction fails for the file's
/// reasons alone. Names are chosen by the program: a wrong one is its error.
void check_new_fields(const FieldMap& present, const FieldMap& added) {
  for (const auto& [name, value] : added) {
    DETRUN_CHECK(!name.empty() && name != field::text && name != ledger::kSecretLeaf);
    DETRUN_CHECK(!present.contains(name));
    const std::string shown = escape_for_terminal(name);
    const auto* text = std::get_if<std::string>(&value);
    const auto* blob = std::get_if<Blob>(&value);
    if (!is_utf8(name) || (text != nullptr && !is_utf8(*text)))
      throw_usage("field " + shown + " is not valid UTF-8");
    if (name.find('\0') != name.npos || (text != nullptr && text->find('\0') != text->npos))
      throw_usage("field " + shown + " holds a NUL character");
    const std::size_t size = text != nullptr   ? text->size()
                             : blob != nullptr ? blob->bytes.size()
                                               : 0;
    if (size > ledger::kValueBytesMax)
      throw_usage("field " + shown + " is " + std::to_string(size) + " bytes long, at most " +
                  std::to_string(ledger::kValueBytesMax) + " can be recorded");
  }
}

/// Adds the last fields and seals what `content` holds by then, in the caller's transaction.
Sha256Digest seal_into(const Connection& connection, std::int64_t number, RunContent content,
                       FieldMap end_fields) {
  const std::int64_t log_index = ledger::next_log_index(connection.db());
  end_fields.emplace(field::step_count, static_cast<std::int64_t>(content.steps.size()));
  end_fields.emplace(field::log_index, log_index);
  ledger::insert_fields(connection.db(), number, end_fields);
  content.fields.merge(end_fields);
  const SealedRun sealed = ledger::seal_content(content);
  ledger::insert_seal(connection.db(), number, sealed, log_index);
  return sealed.seal;
}

/// The lock of a live run, let go with the object.
class RunLock {
 public:
  RunLock(std::shared_ptr<Connection> connection, std::int64_t number)
      : connection_(std::move(connection)), number_(number) {
    held_ = connection_->locks().try_lock(number_);
  }
  ~RunLock() {
    if (held_) connection_->locks().unlock(number_);
  }
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  bool held() const { return held_; }

 private:
  std::shared_ptr<Connection> connection_;
  std::int64_t number_;
  bool held_ = false;
};

/// Runs without seal whose writer is gone end here, over what they had committed. Up to
/// `sealed_up_to` every run is known to be sealed, which it then stays.
void seal_interrupted(const std::shared_ptr<Connection>& connection, std::int64_t& sealed_up_to) {
  const auto dead = [&] {
    const std::int64_t highest = ledger::highest_run(connection->db());
    std::vector<std::int64_t> numbers = ledger::unsealed_runs(connection->db(), sealed_up_to);
    sealed_up_to = numbers.empty() ? highest : numbers.front() - 1;
    std::erase_if(numbers, [&](std::int64_t n) { return connection->locks().is_live(n); });
    return numbers;
  };
  if (dead().empty()) return;
  connection->write([&] {
    for (const std::int64_t number : dead()) {
      // Under the write lock nobody else can seal it; the run's own lock shows that its writer is
      // gone and did not come back.
      const RunLock lock(connection, number);
      if (!lock.held()) continue;
      FieldMap end_fields;
      end_fields.emplace(field::status, "interrupted");
      end_fields.emplace(field::stop_reason, "interrupted");
      end_fields.emplace(field::ended_at, utc_timestamp(unix_time_ms()));
      seal_into(*connection, number, ledger::read_content(connection->db(), number), end_fields);
    }
  });
}

class RunWriterImpl final : public RunWriter {
 public:
  RunWriterImpl(std::shared_ptr<Connection> connection, std::unique_ptr<RunLock> lock,
                std::int64_t number, RunContent content)
      : connection_(std::move(connection)),
        lock_(std::move(lock)),
        number_(number),
        content_(std::move(content)) {}

  std::int64_t number() const override { return number_; }
  const std::string& id() const override { return content_.id; }

  void add_fields(const FieldMap& fields) override {
    DETRUN_CHECK(lock_ != nullptr);
    if (fields.empty()) return;
    check_new_fields(content_.fields, fields);
    connection_->write([&] { ledger::insert_fields(connection_->db(), number_, fields); });
    content_.fields.insert(fields.begin(), fields.end());
  }

  void add_steps(const std::vector<StepRecord>& steps) override {
    DETRUN_CHECK(lock_ != nullptr);
    if (steps.empty()) return;
    std::uint64_t next = content_.steps.size();
    for (const StepRecord& step : steps) DETRUN_CHECK(step.index == next++);
    connection_->write([&] { ledger::insert_steps(connection_->db(), number_, steps); });
    for (const StepRecord& step : steps) content_.add_step(step);
  }

  /// Seals what this writer recorded, not what the file holds by now: a row changed while the run
  /// was live does not match its seal.
  Sha256Digest finish(const FieldMap& fields) override {
    DETRUN_CHECK(lock_ != nullptr);
    check_new_fields(content_.fields, fields);
    Sha256Digest seal{};
    connection_->write([&] { seal = seal_into(*connection_, number_, content_, fields); });
    lock_.reset();
    return seal;
  }

 private:
  std::shared_ptr<Connection> connection_;
  std::unique_ptr<RunLock> lock_;  ///< null once sealed
  std::int64_t number_;
  RunContent content_;
};

class LedgerImpl final : public Ledger {
 public:
  LedgerImpl(Connection connection, std::string path)
      : connection_(std::make_shared<Connection>(std::move(connection))), path_(std::move(path)) {
    if (connection_->recording()) seal_interrupted(connection_, sealed_up_to_);
  }

  std::unique_ptr<RunWriter> begin_run(const FieldMap& start_fields) override {
    return begin_run_if(start_fields, [] { return true; });
  }

  std::unique_ptr<RunWriter> begin_run_if(const FieldMap& start_fields,
                                          const std::function<bool()>& wanted) override {
    DETRUN_CHECK(connection_->recording());
    check_new_fields({}, start_fields);
    seal_interrupted(connection_, sealed_up_to_);
    std::unique_ptr<RunLock> lock;
    std::int64_t number = 0;
    RunContent content;
    content.id = uuid_v7(unix_time_ms());
    random_bytes(std::as_writable_bytes(std::span(content.secret)));
    connection_->write([&] {
      lock.reset();
      if (!wanted()) return;
      number = ledger::highest_run(db()) + 1;
      if (number > ledger::kRunNumberMax) throw_usage("the ledger is full: start another one");
      lock = std::make_unique<RunLock>(connection_, number);
      if (!lock->held())
        throw_usage("run " + std::to_string(number) + " of ledger '" + escape_for_terminal(path_) +
                        "' is being written by a process that opened another file of this name",
                    "The ledger was replaced while in use. Wait for that process to end.");
      content.fields = start_fields;
      add_own_fields(number, content);
      ledger::insert_run(db(), number, content.id, content.secret);
      ledger::insert_fields(db(), number, content.fields);
    });
    if (lock == nullptr) return nullptr;
    return std::make_unique<RunWriterImpl>(connection_, std::move(lock), number,
                                           std::move(content));
  }

  std::vector<RunRef> runs() const override {
    std::vector<RunRef> all;
    ledger::Stmt stmt(db(), "SELECT number, id FROM run NOT INDEXED ORDER BY number");
    while (stmt.step())
      all.push_back({ledger::run_number(db(), stmt, 0), stmt.text(1).value_or("")});
    return all;
  }

  std::optional<RunRef> resolve(std::string_view selector) const override;
  RunRecord read(std::int64_t number, bool with_steps) const override;

  std::optional<FieldValue> field(std::int64_t number, std::string_view name) const override {
    return ledger::FieldReader(db()).read(number, name);
  }
  RunState state(std::int64_t number) const override;
  LineRuns runs_of_prompts(const Sha256Digest& file, std::int64_t after) const override;

  std::optional<Sha256Digest> seal(std::int64_t number) const override {
    return ledger::read_seal(db(), number);
  }
  VerifyReport verify() const override { return ledger::verify_all(*connection_); }
  VerifyReport verify_run(std::int64_t number) const override {
    return ledger::verify_one(*connection_, number);
  }
  const std::string& path() const override { return path_; }

 private:
  std::shared_ptr<Connection> connection_;
  std::string path_;
  // The first look covers numbers that no ledger can hold, which are damage.
  std::int64_t sealed_up_to_ = std::numeric_limits<std::int64_t>::min();

  const ledger::Db& db() const { return connection_->db(); }

  /// Values of the ledger and of the run row, so that they are sealed with the run.
  void add_own_fields(std::int64_t number, RunContent& content) const {
    const ledger::LedgerRow row = ledger::read_ledger_row(db());
    if (row.rows != 1 || !row.id || !row.created_at)
      throw Error(ExitCode::kTampered,
                  "ledger '" + escape_for_terminal(path_) + "': its own row is missing or damaged");
    const FieldMap own = {
        {std::string(field::number), number},
        {std::string(field::id), content.id},
        {std::string(field::ledger_id), *row.id},
        {std::string(field::ledger_created_at), *row.created_at},
        {std::string(field::seal_version), std::int64_t{kSealVersion}},
    };
    for (const auto& [name, value] : own) {
      const bool is_new = content.fields.emplace(name, value).second;
      DETRUN_CHECK(is_new);
    }
  }

  std::optional<RunRef> find_number(std::optional<std::uint64_t> number) const {
    if (!number || *number > static_cast<std::uint64_t>(ledger::kRunNumberMax)) return std::nullopt;
    ledger::Stmt stmt(db(), "SELECT number, id FROM run NOT INDEXED WHERE number = ?");
    if (!stmt.bind(static_cast<std::int64_t>(*number)).step()) return std::nullopt;
    return RunRef{stmt.integer(0).value_or(0), stmt.text(1).value_or("")};
  }
};

std::optional<RunRef> LedgerImpl::resolve(std::string_view selector) const {
  const bool hashed = selector.starts_with('#');
  const std::string_view digits = hashed ? selector.substr(1) : selector;
  const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (is_number) return find_number(parse_u64(digits));
  const std::string shown = "'" + escape_for_terminal(selector) + "'";
  if (hashed) throw_usage(shown + " is no run number", "Write '#17' or 17.");
  if (selector == "latest")
    return find_number(static_cast<std::uint64_t>(ledger::highest_run(db())));
  if (selector.size() < kSelectorMin)
    throw_usage("run selector " + shown + " is too short",
                "Give a run number, an id, at least 4 characters of an id, or 'latest'.");
  std::string part(selector);
  for (char& c : part) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::vector<RunRef> found;
  for (const RunRef& run : runs()) {
    if (run.id == part) return run;
    if (run.id.find(part) != std::string::npos) found.push_back(run);
  }
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return found.front();
  std::string names;
  for (std::size_t i = 0; i < std::min(found.size(), kCandidatesMax); ++i)
    names += (i > 0 ? ", " : "") + std::to_string(found[i].number) + " " +
             escape_for_terminal(found[i].id);
  if (found.size() > kCandidatesMax) names += ", ...";
  throw_usage("run selector " + shown + " is ambiguous: " + names, "Give more characters.");
}

RunState LedgerImpl::state(std::int64_t number) const {
  // Its seal after its lock: a run sealed in between is not taken for an interrupted one.
  const bool live = connection_->locks().is_live(number);
  if (!ledger::is_sealed(db(), number)) return live ? RunState::kLive : RunState::kInterrupted;
  const std::optional<FieldValue> status = field(number, field::status);
  return status && *status == FieldValue("finished") ? RunState::kFinished : RunState::kEnded;
}

LineRuns LedgerImpl::runs_of_prompts(const Sha256Digest& file, std::int64_t after) const {
  const ledger::ReadTransaction snapshot(db());
  const FieldValue wanted = to_blob(file);
  ledger::FieldReader fields(db());
  LineRuns found{{}, after};
  for (const std::int64_t number : ledger::runs_after(db(), after)) {
    found.highest = number;
    if (fields.read(number, field::prompts_sha256) != wanted) continue;
    const std::optional<FieldValue> line = fields.read(number, field::prompts_line);
    const auto* value = line ? std::get_if<std::int64_t>(&*line) : nullptr;
    if (value != nullptr) found.runs.push_back({number, *value});
  }
  return found;
}

RunRecord LedgerImpl::read(std::int64_t number, bool with_steps) const {
  for (;;) {
    RunRecord run;
    {
      const ledger::ReadTransaction snapshot(db());
      if (number < 1 || number > ledger::kRunNumberMax || !ledger::run_exists(db(), number))
        throw_usage("ledger '" + escape_for_terminal(path_) + "' has no run " +
                    std::to_string(number));
      run.fields = ledger::read_fields(db(), number);
      ledger::StepsAndText all = ledger::read_steps(db(), number, with_steps);
      run.fields.insert_or_assign(std::string(field::text), Blob{std::move(all.text)});
      run.steps = std::move(all.steps);
      run.sealed = ledger::is_sealed(db(), number);
    }
    run.live = !run.sealed && connection_->locks().is_live(number);
    // Sealed between the snapshot and the look at its lock: neither live nor interrupted.
    if (run.sealed || run.live || !ledger::is_sealed(db(), number)) return run;
  }
}

}  // namespace

std::unique_ptr<Ledger> Ledger::open_for_recording(const std::string& path) {
  return std::make_unique<LedgerImpl>(Connection::for_recording(path), path);
}

std::unique_ptr<Ledger> Ledger::open_for_reading(const std::string& path) {
  return std::make_unique<LedgerImpl>(Connection::for_reading(path), path);
}

}  // namespace detrun
