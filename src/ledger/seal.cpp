// Leaves, trees and the seal of a run; see seal.h for the drawing.
#include "ledger/seal.h"

#include <bit>
#include <span>

namespace detrun::ledger {
namespace {

enum ValueType : char { kNull = 0, kInteger = 1, kText = 2, kBlob = 3 };

void append_le(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

std::span<const std::byte> bytes_of(const Sha256Digest& digest) {
  return std::as_bytes(std::span(digest));
}

Sha256Digest leaf_hash(std::string_view domain, std::string_view name, const Sha256Digest& salt,
                       std::string_view value) {
  return Sha256()
      .update(std::string_view("\0", 1))
      .update_part(domain)
      .update_part(name)
      .update_part(bytes_of(salt))
      .update_part(value)
      .finish();
}

Sha256Digest salt_of(const RunSecret& secret, const std::string& message) {
  return hmac_sha256(bytes_of(secret), as_bytes(message));
}

Sha256Digest subtree(std::span<const Sha256Digest> leaves) {
  if (leaves.size() == 1) return leaves.front();
  const std::size_t left = std::bit_ceil(leaves.size()) / 2;
  return Sha256()
      .update(std::string_view("\1", 1))
      .update(bytes_of(subtree(leaves.first(left))))
      .update(bytes_of(subtree(leaves.subspan(left))))
      .finish();
}

}  // namespace

std::string encode_value(const FieldValue& value) {
  std::string out;
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    out.push_back(kInteger);
    append_le(out, static_cast<std::uint64_t>(*number), 8);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    out.push_back(kText);
    out += *text;
  } else if (const auto* blob = std::get_if<Blob>(&value)) {
    out.push_back(kBlob);
    out += blob->bytes;
  } else {
    out.push_back(kNull);
  }
  return out;
}

std::string encode_step(const StepRecord& step) {
  std::string out(1, kBlob);
  append_le(out, static_cast<std::uint32_t>(step.token), 4);
  out.append(reinterpret_cast<const char*>(step.logits_xxh3.data()), step.logits_xxh3.size());
  append_le(out, step.margin_bits, 4);
  append_le(out, step.logprob_bits, 4);
  return out;
}

Sha256Digest field_leaf(const RunSecret& secret, std::string_view name, const FieldValue& value) {
  std::string message = "field:";
  message += name;
  return leaf_hash(kFieldDomain, name, salt_of(secret, message), encode_value(value));
}

Sha256Digest step_leaf(const RunSecret& secret, const StepRecord& step) {
  std::string name = "step:";
  append_le(name, step.index, 8);
  return leaf_hash(kStepDomain, name, salt_of(secret, name), encode_step(step));
}

Sha256Digest merkle_root(const std::vector<Sha256Digest>& leaves) {
  return leaves.empty() ? sha256(std::string_view()) : subtree(leaves);
}

void StepTree::add(const Sha256Digest& leaf) {
  open_.push_back(leaf);
  ++size_;
  if (open_.size() == kBlockSteps) {
    roots_.push_back(merkle_root(open_));
    open_.clear();
  }
}

std::vector<Sha256Digest> StepTree::blocks() const {
  std::vector<Sha256Digest> all = roots_;
  if (!open_.empty()) all.push_back(merkle_root(open_));
  return all;
}

void append_piece(std::string& pieces, std::string_view piece) {
  append_le(pieces, piece.size(), 4);
  pieces += piece;
}

void RunContent::add_step(const StepRecord& step) {
  steps.add(step_leaf(secret, step));
  append_piece(pieces, step.piece);
}

Sha256Digest make_seal(std::string_view run_id, std::uint64_t step_count,
                       const std::vector<Sha256Digest>& leaves,
                       const std::vector<Sha256Digest>& blocks) {
  return Sha256()
      .update_part(kSealDomain)
      .update_part(run_id)
      .update_u64(step_count)
      .update(bytes_of(merkle_root(leaves)))
      .update(bytes_of(merkle_root(blocks)))
      .finish();
}

SealedRun seal_content(const RunContent& content) {
  FieldMap all = content.fields;
  all.emplace(field::text, Blob{content.pieces});
  all.emplace(kSecretLeaf, to_blob(content.secret));
  SealedRun sealed;
  std::vector<Sha256Digest> hashes;
  for (const auto& [name, value] : all) {
    sealed.leaves.emplace_back(name, field_leaf(content.secret, name, value));
    hashes.push_back(sealed.leaves.back().second);
  }
  sealed.blocks = content.steps.blocks();
  sealed.seal = make_seal(content.id, content.steps.size(), hashes, sealed.blocks);
  return sealed;
}

std::string block_name(std::uint64_t block) {
  const std::uint64_t first = block * kBlockSteps;
  return "steps[" + std::to_string(first) + ".." + std::to_string(first + kBlockSteps - 1) + "]";
}

}  // namespace detrun::ledger
