// See row_reader.h. A block belongs to the caller until blocks_in_ counts it and to the reader
// until rows_read_ covers it: no lock is needed, and what a row gave does not depend on who read
// it or when.
#include "engine/row_reader.h"

#include <bit>
#include <string>
#include <system_error>

#include "detrun/backend.h"
#include "detrun/engine.h"
#include "detrun/error.h"

namespace detrun {
namespace {

static_assert(std::endian::native == std::endian::little,
              "logits are hashed as they lie in memory: little-endian hosts only");

/// Logits of a block below which waking a thread costs more than reading them.
constexpr std::uint64_t kBesideFloats = 16384;

/// A foreign shared object may have switched subnormals off in this thread: the contract's control
/// register holds for the choice too.
void read_row(std::span<const float> logits, RowFinding& finding) {
  const FpControlScope fp_control;
  finding.not_finite = first_non_finite_logit(logits);
  if (finding.not_finite) return;
  finding.choice = choose_greedy(logits);
  finding.xxh3 = hash_logits(logits);
}

}  // namespace

Xxh3Digest hash_logits(std::span<const float> logits) { return xxh3_128(std::as_bytes(logits)); }

RowReader::RowReader(std::uint32_t n_vocab, std::uint32_t block_rows, std::uint32_t findings_max)
    : n_vocab_(n_vocab), block_rows_(block_rows), findings_(findings_max) {
  const std::uint64_t block_floats = n_vocab_ * block_rows_;
  for (Block& block : blocks_) block.logits = std::make_unique_for_overwrite<float[]>(block_floats);
  if (block_floats < kBesideFloats) return;
  try {
    thread_ = std::thread([this] { read_loop(); });
  } catch (const std::system_error& error) {
    throw_internal(std::string("cannot start a thread: ") + error.what(),
                   "the number of processes or the memory of this user is used up");
  }
}

RowReader::~RowReader() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_relaxed);
  blocks_in_.fetch_add(1, std::memory_order_release);
  blocks_in_.notify_all();
  thread_.join();
}

void RowReader::wait_until_read(std::uint64_t rows) {
  std::uint32_t read = rows_read_.load(std::memory_order_acquire);
  while (read < rows) {
    rows_read_.wait(read, std::memory_order_acquire);
    read = rows_read_.load(std::memory_order_acquire);
  }
}

std::span<float> RowReader::room(std::uint32_t n_rows) {
  Block& next = block(blocks_in_.load(std::memory_order_relaxed));
  DETRUN_CHECK(n_rows >= 1 && n_rows <= block_rows_);
  wait_until_read(next.rows_before_end);  // of the block that lay there before
  next.n_rows = n_rows;
  return next.rows(n_vocab_);
}

void RowReader::filled() {
  const std::uint32_t index = blocks_in_.load(std::memory_order_relaxed);
  Block& given = block(index);
  rows_in_ += given.n_rows;
  DETRUN_CHECK(pending() <= findings_.size());
  given.rows_before_end = rows_in_;
  blocks_in_.store(index + 1, std::memory_order_release);
  if (reads_beside()) {
    blocks_in_.notify_one();
  } else {
    read_block(given);
  }
}

std::span<const float> RowReader::last_rows() const {
  return blocks_[(blocks_in_.load(std::memory_order_relaxed) + 1) % 2].rows(n_vocab_);
}

const RowFinding& RowReader::take() {
  DETRUN_CHECK(pending() > 0);
  wait_until_read(rows_taken_ + 1);
  return findings_[rows_taken_++ % findings_.size()];
}

/// The block may be the caller's again as soon as rows_read_ covers its last row: nothing of it is
/// looked at after that.
void RowReader::read_block(const Block& block) {
  std::span<const float> left = block.rows(n_vocab_);
  std::uint32_t read = rows_read_.load(std::memory_order_relaxed);
  while (!left.empty()) {
    read_row(left.first(n_vocab_), findings_[read % findings_.size()]);
    left = left.subspan(n_vocab_);
    rows_read_.store(++read, std::memory_order_release);
  }
  rows_read_.notify_one();  // once: to be woken for every row costs more than to read one
}

void RowReader::read_loop() {
  for (std::uint32_t done = 0;; ++done) {
    blocks_in_.wait(done, std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    read_block(block(done));
  }
}

}  // namespace detrun
