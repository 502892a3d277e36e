// The statements behind store.h. What a command prints is read from a table itself: an index of a
// stranger could be stale. NOT INDEXED says so of a table with a rowid; of one without, only the
// name of its primary key's index does, which is the table.
#include "ledger/store.h"

#include <cstring>
#include <limits>

#include "detrun/ledger.h"
#include "detrun/text.h"

namespace detrun::ledger {
namespace {

[[noreturn]] void throw_tampered(const Db& db, std::int64_t number, const std::string& what) {
  throw Error(ExitCode::kTampered,
              "ledger '" + escape_for_terminal(db.path()) + "', run " + std::to_string(number) +
                  ": " + what,
              "'detrun verify' names every broken entry.");
}

std::optional<std::int32_t> as_i32(const std::optional<std::int64_t>& value) {
  using Limits = std::numeric_limits<std::int32_t>;
  if (!value || *value < Limits::min() || *value > Limits::max()) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

/// Columns token, logits, margin, logprob, piece, from `first` on.
std::optional<StepRecord> decode_step(const Stmt& row, std::uint64_t index) {
  const auto token = as_i32(row.integer(1));
  const auto logits = row.blob(2);
  const auto margin = as_i32(row.integer(3));
  const auto logprob = as_i32(row.integer(4));
  auto piece = row.blob(5);
  if (!token || !margin || !logprob || !piece) return std::nullopt;
  if (!logits || logits->size() != sizeof(Xxh3Digest)) return std::nullopt;
  StepRecord step{index,
                  *token,
                  {},
                  static_cast<std::uint32_t>(*margin),
                  static_cast<std::uint32_t>(*logprob),
                  std::move(*piece)};
  std::memcpy(step.logits_xxh3.data(), logits->data(), logits->size());
  return step;
}

std::int64_t signed_bits(std::uint32_t bits) { return static_cast<std::int32_t>(bits); }

}  // namespace

std::optional<Sha256Digest> to_digest(const std::optional<std::string>& bytes) {
  Sha256Digest digest{};
  if (!bytes || bytes->size() != digest.size()) return std::nullopt;
  std::memcpy(digest.data(), bytes->data(), digest.size());
  return digest;
}

LedgerRow read_ledger_row(const Db& db) {
  LedgerRow row;
  Stmt stmt(db, "SELECT one, id, created_at FROM ledger NOT INDEXED ORDER BY one");
  while (row.rows < 2 && stmt.step()) {
    if (row.rows++ > 0) continue;
    row.one = stmt.integer(0);
    row.id = stmt.value(1);
    row.created_at = stmt.value(2);
  }
  return row;
}

std::int64_t highest_run(const Db& db) {
  return db.integer("SELECT coalesce(max(number), 0) FROM run NOT INDEXED");
}

bool run_exists(const Db& db, std::int64_t number) {
  Stmt stmt(db, "SELECT 1 FROM run NOT INDEXED WHERE number = ?");
  return stmt.bind(number).step();
}

std::vector<std::int64_t> unsealed_runs(const Db& db, std::int64_t after) {
  std::vector<std::int64_t> numbers;
  Stmt stmt(db,
            "SELECT number FROM run NOT INDEXED WHERE number > ? AND NOT EXISTS"
            " (SELECT 1 FROM log WHERE kind = 'seal' AND log.run = number) ORDER BY number");
  stmt.bind(after);
  while (stmt.step()) numbers.push_back(run_number(db, stmt, 0));
  return numbers;
}

std::vector<std::int64_t> runs_after(const Db& db, std::int64_t after) {
  std::vector<std::int64_t> numbers;
  Stmt stmt(db, "SELECT number FROM run NOT INDEXED WHERE number > ? ORDER BY number");
  stmt.bind(after);
  while (stmt.step()) numbers.push_back(run_number(db, stmt, 0));
  return numbers;
}

std::int64_t run_number(const Db& db, const Stmt& row, int column) {
  const std::int64_t number = row.integer(column).value_or(0);
  if (number < 1 || number > kRunNumberMax) throw_tampered(db, number, "no run has such a number");
  return number;
}

bool is_sealed(const Db& db, std::int64_t number) {
  Stmt stmt(db, "SELECT 1 FROM log WHERE kind = 'seal' AND run = ?");
  return stmt.bind(number).step();
}

std::optional<Sha256Digest> read_seal(const Db& db, std::int64_t number) {
  Stmt stmt(db, "SELECT body FROM log WHERE kind = 'seal' AND run = ?");
  return stmt.bind(number).step() ? to_digest(stmt.blob(0)) : std::nullopt;
}

FieldMap read_fields(const Db& db, std::int64_t number) {
  FieldMap fields;
  Stmt stmt(db, "SELECT name, value FROM field INDEXED BY sqlite_autoindex_field_1 WHERE run = ?");
  stmt.bind(number);
  while (stmt.step()) {
    const auto name = stmt.text(0);
    auto value = stmt.value(1);
    if (!name) throw_tampered(db, number, "a field's name is no text");
    if (!value)
      throw_tampered(db, number,
                     "field " + escape_for_terminal(*name) +
                         " is a floating-point "
                         "number, which no ledger holds");
    fields.emplace(*name, std::move(*value));
  }
  return fields;
}

FieldReader::FieldReader(const Db& db)
    : stmt_(db,
            "SELECT value FROM field INDEXED BY sqlite_autoindex_field_1"
            " WHERE run = ? AND name = ?") {}

std::optional<FieldValue> FieldReader::read(std::int64_t number, std::string_view name) {
  stmt_.reset();
  stmt_.bind(number).bind_text(name);
  return stmt_.step() ? stmt_.value(0) : std::nullopt;
}

StepReader::StepReader(const Db& db, std::int64_t number)
    : stmt_(db,
            "SELECT key, token, logits, margin, logprob, piece FROM step NOT INDEXED"
            " WHERE key >= ? AND key <= ? ORDER BY key") {
  DETRUN_CHECK(number >= 1 && number <= kRunNumberMax);
  const std::int64_t first = number << 32;
  stmt_.bind(first).bind(first | 0xffffffff);
}

bool StepReader::next() {
  if (!stmt_.step()) return false;
  index_ = static_cast<std::uint64_t>(stmt_.integer(0).value_or(0)) & 0xffffffff;
  step_ = decode_step(stmt_, index_);
  return true;
}

StepsAndText read_steps(const Db& db, std::int64_t number, bool keep_steps) {
  StepsAndText all;
  std::uint64_t expected = 0;
  for (StepReader reader(db, number); reader.next(); ++expected) {
    if (reader.index() != expected)
      throw_tampered(db, number, "step " + std::to_string(expected) + " is missing");
    if (!reader.step())
      throw_tampered(db, number, "step " + std::to_string(expected) + " is damaged");
    all.text += reader.step()->piece;
    if (keep_steps) all.steps.push_back(*reader.step());
  }
  return all;
}

RunContent read_content(const Db& db, std::int64_t number) {
  RunContent content;
  Stmt stmt(db,
            "SELECT id, secret FROM run NOT INDEXED JOIN run_secret NOT INDEXED ON run = number"
            " WHERE number = ?");
  if (!stmt.bind(number).step()) throw_tampered(db, number, "its secret is missing");
  const auto id = stmt.text(0);
  const auto secret = to_digest(stmt.blob(1));
  if (!id || !secret) throw_tampered(db, number, "its id or its secret is damaged");
  content.id = *id;
  content.secret = *secret;
  content.fields = read_fields(db, number);
  for (const StepRecord& step : read_steps(db, number, true).steps) content.add_step(step);
  return content;
}

void insert_run(const Db& db, std::int64_t number, const std::string& id, const RunSecret& secret) {
  Stmt(db, "INSERT INTO run (number, id) VALUES (?, ?)").bind(number).bind_text(id).run();
  Stmt(db, "INSERT INTO run_secret (run, secret) VALUES (?, ?)")
      .bind(number)
      .bind_blob(secret)
      .run();
}

void insert_fields(const Db& db, std::int64_t number, const FieldMap& fields) {
  Stmt stmt(db, "INSERT INTO field (run, name, value) VALUES (?, ?, ?)");
  for (const auto& [name, value] : fields) stmt.bind(number).bind_text(name).bind(value).run();
}

void insert_steps(const Db& db, std::int64_t number, const std::vector<StepRecord>& steps) {
  Stmt stmt(db,
            "INSERT INTO step (key, token, logits, margin, logprob, piece)"
            " VALUES (?, ?, ?, ?, ?, ?)");
  for (const StepRecord& step : steps) {
    stmt.bind(number << 32 | static_cast<std::int64_t>(step.index)).bind(std::int64_t{step.token});
    stmt.bind_blob(step.logits_xxh3).bind(signed_bits(step.margin_bits));
    stmt.bind(signed_bits(step.logprob_bits)).bind_blob(step.piece).run();
  }
}

std::int64_t next_log_index(const Db& db) {
  return db.integer("SELECT coalesce(max(idx), -1) + 1 FROM log");
}

void insert_seal(const Db& db, std::int64_t number, const SealedRun& sealed,
                 std::int64_t log_index) {
  Stmt leaf(db, "INSERT INTO leaf (run, name, hash) VALUES (?, ?, ?)");
  for (const auto& [name, hash] : sealed.leaves)
    leaf.bind(number).bind_text(name).bind_blob(hash).run();
  Stmt block(db, "INSERT INTO block (run, idx, root) VALUES (?, ?, ?)");
  std::int64_t index = 0;
  for (const Sha256Digest& root : sealed.blocks)
    block.bind(number).bind(index++).bind_blob(root).run();
  Stmt log(db, "INSERT INTO log (idx, kind, run, version, body) VALUES (?, 'seal', ?, ?, ?)");
  log.bind(log_index).bind(number).bind(std::int64_t{kSealVersion}).bind_blob(sealed.seal).run();
}

}  // namespace detrun::ledger
