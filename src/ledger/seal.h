// Seal, version 1: the bytes that are hashed, drawn once. Pure functions, no database.
//
//   leaf  = SHA-256(00 | part(domain) | part(name) | part(salt) | part(value))
//   salt  = HMAC-SHA-256(run secret, "field:" name   or   "step:" u64le(index))
//   value = type byte (0 NULL, 1 i64le, 2 text, 3 blob) | bytes
//   node  = SHA-256(01 | left | right), split by RFC 6962 section 2.1; no leaves: SHA-256("")
//   seal  = SHA-256(part("detrun-seal/1") | part(run id) | u64le(step count) | field root | step
//   root) part(x) = u64le(length of x) | x
//
// Never changed: a ledger sealed once verifies for ever. Another way to hash is another version.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detrun/digest.h"
#include "detrun/trace.h"

namespace detrun::ledger {

using RunSecret = Sha256Digest;  ///< 32 random bytes

inline constexpr std::string_view kFieldDomain = "detrun-field/1";
inline constexpr std::string_view kStepDomain = "detrun-step/1";
inline constexpr std::string_view kSealDomain = "detrun-seal/1";
inline constexpr std::string_view kSecretLeaf = "run_secret";  ///< leaf without a field row
inline constexpr std::uint64_t kBlockSteps = 64;

/// Type byte and bytes of a value.
std::string encode_value(const FieldValue& value);
/// Type byte 3, then token, logit hash, margin and logprob: 29 bytes.
std::string encode_step(const StepRecord& step);

Sha256Digest field_leaf(const RunSecret& secret, std::string_view name, const FieldValue& value);
Sha256Digest step_leaf(const RunSecret& secret, const StepRecord& step);

/// RFC 6962 tree head over leaf hashes.
Sha256Digest merkle_root(const std::vector<Sha256Digest>& leaves);

/// The step tree as it grows: roots of whole blocks, leaves of the last one.
class StepTree {
 public:
  void add(const Sha256Digest& leaf);
  std::uint64_t size() const { return size_; }
  /// Roots of all blocks, the last one possibly of fewer than 64 leaves.
  std::vector<Sha256Digest> blocks() const;

 private:
  std::vector<Sha256Digest> roots_;
  std::vector<Sha256Digest> open_;
  std::uint64_t size_ = 0;
};

/// Appends a step's text as the leaf of `text` holds it: u32le(length) | piece, so that moving
/// bytes from one step's piece to the next one's is another value.
void append_piece(std::string& pieces, std::string_view piece);

/// Everything a run is sealed from.
struct RunContent {
  std::string id;
  RunSecret secret{};
  FieldMap fields;  ///< rows of the field table: neither text nor secret
  StepTree steps;
  std::string pieces;  ///< append_piece of every step

  void add_step(const StepRecord& step);
};

struct SealedRun {
  std::vector<std::pair<std::string, Sha256Digest>> leaves;  ///< bytewise by name
  std::vector<Sha256Digest> blocks;
  Sha256Digest seal{};
};

/// Seal over stored leaves and block roots, whatever they were made from.
Sha256Digest make_seal(std::string_view run_id, std::uint64_t step_count,
                       const std::vector<Sha256Digest>& leaves,
                       const std::vector<Sha256Digest>& blocks);
SealedRun seal_content(const RunContent& content);

/// "steps[64..127]": the block that holds a step, by its full range whatever the run's length.
std::string block_name(std::uint64_t block);

}  // namespace detrun::ledger
