// A forger's tool for tests and the demo, never installed: copies a ledger and changes a recorded
// token or field, as anybody with sqlite3 can. With --reseal it also recomputes every leaf, block
// root and seal, as only somebody who knows the format can, so that `verify` passes and nothing
// but a replay finds the change.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "detrun/ledger.h"
#include "detrun/text.h"
#include "ledger/connection.h"
#include "ledger/schema.h"
#include "ledger/seal.h"
#include "ledger/store.h"

namespace detrun::ledger {
namespace {

struct Options {
  std::string in, out, field;
  std::int64_t run = 0;
  std::optional<std::int64_t> step;
  std::optional<std::int32_t> token;
  bool reseal = false;
};

/// SQLite's own backup, so that a write-ahead log beside the ledger is copied as well.
Db copy_ledger(const std::string& in, const std::string& out) {
  const Connection reading = Connection::for_reading(in);
  const Db& from = reading.db();
  const int fd = ::open(out.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) throw_usage("'" + out + "' cannot be created, or exists");
  ::close(fd);
  Db to(out, out, SQLITE_OPEN_READWRITE);
  sqlite3_backup* backup = sqlite3_backup_init(to.get(), "main", from.get(), "main");
  if (backup == nullptr) to.fail(SQLITE_ERROR);
  sqlite3_backup_step(backup, -1);
  const int code = sqlite3_backup_finish(backup);
  if (code != SQLITE_OK) to.fail(code);
  return to;
}

void each_trigger(const Db& db, bool create) {
  for (const SchemaObject& object : expected_objects()) {
    if (object.type != "trigger") continue;
    db.exec(create ? object.sql : "DROP TRIGGER IF EXISTS " + object.name);
  }
}

/// One row must have been changed, otherwise the forgery is none.
void require_change(const Db& db, const std::string& what) {
  if (sqlite3_changes(db.get()) != 1) throw_usage("there is no " + what);
}

std::string change_token(const Db& db, const Options& options) {
  const std::string what =
      "step " + std::to_string(*options.step) + " in run " + std::to_string(options.run);
  const std::int64_t key = options.run << 32 | *options.step;
  Stmt old(db, "SELECT token FROM step WHERE key = ?");
  const std::int64_t before = old.bind(key).step() ? old.integer(0).value_or(0) : 0;
  old.reset();
  Stmt(db, "UPDATE step SET token = ? WHERE key = ?")
      .bind(std::int64_t{*options.token})
      .bind(key)
      .run();
  require_change(db, what);
  return "run " + std::to_string(options.run) + " step " + std::to_string(*options.step) +
         ": token " + std::to_string(before) + " -> " + std::to_string(*options.token);
}

/// The new value gets the type of the old one.
FieldValue typed_like(const FieldValue& old, const std::string& text) {
  if (std::holds_alternative<Blob>(old)) return Blob{text};
  if (!std::holds_alternative<std::int64_t>(old)) return text;
  const auto number = parse_i64(text);
  if (!number) throw_usage("'" + text + "' is no integer");
  return *number;
}

std::string change_field(const Db& db, const Options& options) {
  const std::size_t equals = options.field.find('=');
  if (equals == std::string::npos) throw_usage("--field wants NAME=TEXT");
  const std::string name = options.field.substr(0, equals);
  const FieldMap fields = read_fields(db, options.run);
  const auto found = fields.find(name);
  if (found == fields.end())
    throw_usage("run " + std::to_string(options.run) + " has no field row '" + name + "'");
  const FieldValue value = typed_like(found->second, options.field.substr(equals + 1));
  Stmt(db, "UPDATE field SET value = ? WHERE run = ? AND name = ?")
      .bind(value)
      .bind(options.run)
      .bind_text(name)
      .run();
  require_change(db, "field " + name);
  return "run " + std::to_string(options.run) + " field " + name + " -> '" +
         escape_for_terminal(options.field.substr(equals + 1)) + "'";
}

/// What the honest program would have stored, had it recorded the forged values.
void reseal(const Db& db, std::int64_t run) {
  if (!is_sealed(db, run)) throw_usage("run " + std::to_string(run) + " has no seal");
  const SealedRun sealed = seal_content(read_content(db, run));
  for (const auto& [name, hash] : sealed.leaves)
    Stmt(db, "UPDATE leaf SET hash = ? WHERE run = ? AND name = ?")
        .bind_blob(hash)
        .bind(run)
        .bind_text(name)
        .run();
  std::int64_t index = 0;
  for (const Sha256Digest& root : sealed.blocks)
    Stmt(db, "UPDATE block SET root = ? WHERE run = ? AND idx = ?")
        .bind_blob(root)
        .bind(run)
        .bind(index++)
        .run();
  Stmt(db, "UPDATE log SET body = ? WHERE kind = 'seal' AND run = ?")
      .bind_blob(sealed.seal)
      .bind(run)
      .run();
}

std::string forge(const Options& options) {
  if (options.run < 1 || options.run > kRunNumberMax) throw_usage("--run wants a run number");
  if (options.step && (*options.step < 0 || *options.step > 0xffffffff))
    throw_usage("--step wants a step index");
  const Db db = copy_ledger(options.in, options.out);
  db.exec("BEGIN IMMEDIATE");
  each_trigger(db, false);
  std::string done;
  if (options.step) done = change_token(db, options);
  if (!options.field.empty()) done += (done.empty() ? "" : ", ") + change_field(db, options);
  if (options.reseal) reseal(db, options.run);
  each_trigger(db, true);
  db.exec("COMMIT");
  return "forged " + escape_for_terminal(options.out) + ": " + done +
         (options.reseal ? "; every hash and the seal recomputed" : "; seal left as it was");
}

}  // namespace
}  // namespace detrun::ledger

int main(int argc, char** argv) {
  detrun::ledger::Options options;
  CLI::App app("Copies a ledger and forges one value in it.", "forge_ledger");
  app.add_option("IN", options.in, "ledger to copy")->required();
  app.add_option("OUT", options.out, "file to create")->required();
  app.add_option("--run", options.run, "run number")->required();
  auto* step = app.add_option("--step", options.step, "step whose token is changed");
  auto* token = app.add_option("--token", options.token, "token to put there");
  step->needs(token);
  token->needs(step);
  app.add_option("--field", options.field, "NAME=TEXT: field row to change");
  app.add_flag("--reseal", options.reseal, "recompute all hashes and the seal");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!options.step && options.field.empty())
      detrun::throw_usage("nothing to forge", "Give --step and --token, or --field.");
    std::printf("%s\n", detrun::ledger::forge(options).c_str());
  } catch (const detrun::Error& error) {
    std::fprintf(stderr, "forge_ledger: %s %s\n", error.what(), error.hint().c_str());
    return static_cast<int>(error.kind());
  }
  return 0;
}
