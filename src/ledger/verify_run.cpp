// The checks of one run, in the order detrun-ledger(5) gives them; the first that fails is named.
#include "ledger/verify_run.h"

#include <map>
#include <set>

#include "detrun/ledger.h"

namespace detrun::ledger {
namespace {

class RunChecker {
 public:
  RunChecker(const Db& db, const SharedRows& shared, std::int64_t number, RunCheck& result)
      : db_(db), shared_(shared), number_(number), result_(result) {}

  void check() {
    if (!find_run()) return;
    load_rows();
    if (seals_.empty()) {
      if (check_unsealed() && check_secret_row() && check_unsealed_fields()) check_steps({});
      return;
    }
    if (seals_.size() > 1) {
      broken("seal", "the log holds more than one seal of this run");
      return;
    }
    if (!check_secret_row() || !check_leaf(kSecretLeaf, to_blob(*secret_))) return;
    if (!check_fields()) return;
    const auto count = std::get<std::int64_t>(*values_.find(field::step_count)->second);
    if (!check_steps(count) || !check_leaf(field::text, Blob{pieces_})) return;
    check_seal(static_cast<std::uint64_t>(count));
  }

 private:
  using Values = std::map<std::string, std::optional<FieldValue>, std::less<>>;
  using Leaves = std::map<std::string, std::optional<Sha256Digest>, std::less<>>;
  using Blocks = std::map<std::int64_t, std::optional<Sha256Digest>>;

  static constexpr std::int64_t kNoKey = -1;  ///< of a block whose idx is no integer

  const Db& db_;
  const SharedRows& shared_;
  std::int64_t number_;
  RunCheck& result_;
  std::optional<FieldValue> run_id_;
  std::optional<Sha256Digest> secret_;
  std::vector<SealEntry> seals_;
  Values values_;
  Leaves leaves_;
  Blocks blocks_;
  std::string pieces_;

  /// Always false, so that a check can end with it.
  bool broken(std::string_view field, const std::string& why) {
    result_.broken = Finding{field.empty() ? "field" : std::string(field), why};
    return false;
  }

  /// The id is told of any run that has one, also of a number no run can have.
  bool find_run() {
    Stmt run(db_, "SELECT id FROM run NOT INDEXED WHERE number = ?");
    const bool found = run.bind(number_).step();
    if (found) {
      run_id_ = run.value(0);
      result_.id = run.text(0).value_or("");
    }
    if (number_ < 1 || number_ > kRunNumberMax)
      return broken(field::number, "no run has such a number");
    if (!found) return broken(field::number, "rows of this run exist, the run itself does not");
    if (shared_.damage) return broken("database", *shared_.damage);
    if (const auto seals = shared_.seals.find(number_); seals != shared_.seals.end())
      seals_ = seals->second;
    result_.sealed = !seals_.empty();
    return true;
  }

  /// Everything but the steps. The tables themselves are read: an index may be a stranger's.
  void load_rows() {
    Stmt secret(db_, "SELECT secret FROM run_secret NOT INDEXED WHERE run = ?");
    if (secret.bind(number_).step()) secret_ = to_digest(secret.blob(0));
    Stmt field(db_,
               "SELECT name, value FROM field INDEXED BY sqlite_autoindex_field_1 WHERE run = ?");
    field.bind(number_);
    while (field.step()) add(values_, field.text(0).value_or(""), field.value(1));
    Stmt leaf(db_, "SELECT name, hash FROM leaf INDEXED BY sqlite_autoindex_leaf_1 WHERE run = ?");
    leaf.bind(number_);
    while (leaf.step()) add(leaves_, leaf.text(0).value_or(""), to_digest(leaf.blob(1)));
    Stmt block(db_,
               "SELECT idx, root FROM block INDEXED BY sqlite_autoindex_block_1 WHERE run = ?");
    block.bind(number_);
    while (block.step()) add(blocks_, block.integer(0).value_or(kNoKey), to_digest(block.blob(1)));
  }

  /// What is twice there (the file is damaged) counts as a row without a proper key.
  template <typename Value>
  static void add(std::map<std::string, Value, std::less<>>& rows, const std::string& name,
                  Value value) {
    if (!rows.emplace(name, value).second) rows.emplace("", value);
  }
  static void add(Blocks& blocks, std::int64_t index, const std::optional<Sha256Digest>& root) {
    if (!blocks.emplace(index, root).second) blocks.emplace(kNoKey, root);
  }

  bool check_secret_row() {
    return secret_ ? true : broken(kSecretLeaf, "the run's secret is missing or not 32 bytes");
  }

  /// Everything of the end comes in with the seal, in one transaction.
  bool check_unsealed() {
    bool ended = !leaves_.empty() || !blocks_.empty();
    for (const std::string_view name : {field::status, field::step_count, field::log_index})
      ended = ended || values_.contains(name);
    return ended ? broken("seal", "the run has ended, its seal is missing") : true;
  }

  bool check_unsealed_fields() {
    std::set<std::string, std::less<>> names = {
        std::string(field::id), std::string(field::ledger_created_at),
        std::string(field::ledger_id), std::string(field::number),
        std::string(field::seal_version)};
    for (const auto& [name, value] : values_) names.insert(name);
    for (const std::string& name : names) {
      if (!check_value(name) || !check_twin(name)) return false;
    }
    return true;
  }

  /// Every field but text: its row, its leaf, and the table its value also lies in.
  bool check_fields() {
    std::set<std::string, std::less<>> names = {
        std::string(field::id),        std::string(field::ledger_created_at),
        std::string(field::ledger_id), std::string(field::log_index),
        std::string(field::number),    std::string(field::seal_version),
        std::string(field::step_count)};
    for (const auto& [name, value] : values_) names.insert(name);
    for (const auto& [name, leaf] : leaves_) {
      if (name != field::text && name != kSecretLeaf) names.insert(name);
    }
    for (const std::string& name : names) {
      if (!check_value(name)) return false;
      if (!check_leaf(name, *values_.find(name)->second) || !check_twin(name)) return false;
    }
    return true;
  }

  bool check_value(const std::string& name) {
    if (name.empty()) return broken(name, "a name that is empty, no text or twice there");
    if (name == field::text || name == kSecretLeaf)
      return broken(name, "a row of this name is none of the run's fields");
    const auto found = values_.find(name);
    if (found == values_.end()) return broken(name, "the field is missing");
    if (!found->second) return broken(name, "the value is a floating-point number");
    return true;
  }

  bool check_leaf(std::string_view name, const FieldValue& value) {
    const auto leaf = leaves_.find(name);
    if (leaf == leaves_.end())
      return broken(name, "the field has no leaf: it was added after the run was sealed");
    if (leaf->second != field_leaf(*secret_, name, value))
      return broken(name, "the value is not the one that was sealed");
    ++result_.fields;
    return true;
  }

  /// Values that lie in a table of their own as well are the same there.
  bool check_twin(std::string_view name) {
    const FieldValue& value = *values_.find(name)->second;
    std::optional<FieldValue> twin = value;
    std::string where;
    if (name == field::id) {
      if (!run_id_ || !std::holds_alternative<std::string>(*run_id_))
        return broken(name, "the value in run.id is no text");
      twin = run_id_, where = "run.id";
    } else if (name == field::number) {
      twin = FieldValue(number_), where = "run.number";
    } else if (name == field::ledger_id) {
      twin = shared_.ledger.id, where = "ledger.id";
    } else if (name == field::ledger_created_at) {
      twin = shared_.ledger.created_at, where = "ledger.created_at";
    } else if (name == field::log_index && !seals_.empty()) {
      twin = seals_.front().index, where = "log.idx";
    } else if (name == field::seal_version) {
      if (value != FieldValue(std::int64_t{kSealVersion}))
        return broken(name, "this schema has no such version of the seal");
      if (!seals_.empty()) twin = seals_.front().version, where = "log.version";
    } else if (name == field::step_count) {
      const auto* count = std::get_if<std::int64_t>(&value);
      if (count == nullptr || *count < 0 || *count > std::int64_t{1} << 32)
        return broken(name, "no run has such a number of steps");
    }
    if (twin == value) return true;
    return broken(name, "the value in " + where + " is not the one in the run's fields");
  }

  /// Steps from 0 on without a gap; with `count` (a sealed run) as many, and every block's root.
  bool check_steps(std::optional<std::int64_t> count) {
    std::uint64_t expected = 0;
    std::vector<Sha256Digest> block;
    for (StepReader reader(db_, number_); reader.next(); ++expected) {
      const std::uint64_t index = reader.index();
      const std::string shown = "step " + std::to_string(index);
      if (count && static_cast<std::int64_t>(expected) >= *count)
        return broken(block_of(index), shown + " was added after the run was sealed");
      if (index != expected) return step_missing(expected);
      if (!reader.step()) return broken(block_of(index), shown + " holds a value no step can have");
      if (!count) continue;
      append_piece(pieces_, reader.step()->piece);
      block.push_back(step_leaf(*secret_, *reader.step()));
      const bool last = static_cast<std::int64_t>(index) + 1 == *count;
      if (block.size() < kBlockSteps && !last) continue;
      if (!check_block(static_cast<std::int64_t>(index / kBlockSteps), block)) return false;
      block.clear();
    }
    if (count && static_cast<std::int64_t>(expected) != *count) return step_missing(expected);
    return count ? check_no_more_blocks(expected) : true;
  }

  static std::string block_of(std::uint64_t step) { return block_name(step / kBlockSteps); }

  bool step_missing(std::uint64_t step) {
    return broken(block_of(step), "step " + std::to_string(step) + " is missing");
  }

  bool check_block(std::int64_t index, const std::vector<Sha256Digest>& leaves) {
    const std::string name = block_name(static_cast<std::uint64_t>(index));
    const auto root = blocks_.find(index);
    if (root == blocks_.end()) return broken(name, "the root of this block is missing");
    if (root->second != merkle_root(leaves))
      return broken(name, "a step of this block is not the one that was sealed");
    result_.steps += leaves.size();
    return true;
  }

  bool check_no_more_blocks(std::uint64_t steps) {
    const auto wanted = static_cast<std::int64_t>((steps + kBlockSteps - 1) / kBlockSteps);
    for (const auto& [index, root] : blocks_) {
      if (index >= 0 && index < wanted) continue;
      const bool named = index >= 0 && index < std::int64_t{1} << 32;
      return broken(named ? block_name(static_cast<std::uint64_t>(index)) : "block",
                    "a root of this block was added after the run was sealed");
    }
    return true;
  }

  bool check_seal(std::uint64_t step_count) {
    std::vector<Sha256Digest> leaves, blocks;
    for (const auto& [name, hash] : leaves_) leaves.push_back(*hash);
    for (const auto& [index, root] : blocks_) blocks.push_back(*root);
    if (seals_.front().body != make_seal(result_.id, step_count, leaves, blocks))
      return broken("seal", "the seal is not the one over the run's leaves and blocks");
    return true;
  }
};

}  // namespace

SharedRows read_shared_rows(const Db& db) {
  SharedRows shared;
  shared.ledger = read_ledger_row(db);
  Stmt log(db, "SELECT idx, kind, run, version, body FROM log NOT INDEXED ORDER BY idx");
  while (log.step()) {
    const auto run = log.integer(2);
    if (log.text(1) != "seal" || !run) continue;
    shared.seals[*run].push_back({log.value(0), log.value(3), to_digest(log.blob(4))});
  }
  return shared;
}

void check_run(const Db& db, const SharedRows& shared, std::int64_t number, RunCheck& result) {
  RunChecker(db, shared, number, result).check();
}

}  // namespace detrun::ledger
