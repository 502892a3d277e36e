// Rows of logits on their way to steps: finite check, greedy choice and hash. Where that is enough
// work a thread of its own does it, while the next rows are computed. Two blocks of rows take
// turns; findings come out in the order in which the rows went in.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "detrun/digest.h"
#include "detrun/model.h"
#include "detrun/sampler.h"

namespace detrun {

/// What one row of logits says.
struct RowFinding {
  std::optional<std::int64_t> not_finite;  ///< first id whose logit is not; then there is no choice
  Choice choice{};
  Xxh3Digest xxh3{};
};

/// Used by one thread. Allocates at construction only.
class RowReader final : public LogitSink {
 public:
  /// Blocks of at most `block_rows` rows; at most `findings_max` rows handed over and not taken.
  /// Error kInternal when the thread cannot be started.
  RowReader(std::uint32_t n_vocab, std::uint32_t block_rows, std::uint32_t findings_max);
  ~RowReader() override;
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// True when rows are read beside the caller; false when `filled` does all the work.
  bool reads_beside() const { return thread_.joinable(); }

  /// Waits until one of the two blocks was read.
  std::span<float> room(std::uint32_t n_rows) override;
  /// The rows of the room given last are read from now on and must not change.
  void filled() override;
  /// The rows handed over last.
  std::span<const float> last_rows() const;

  /// Rows handed over and not taken.
  std::uint64_t pending() const { return rows_in_ - rows_taken_; }
  /// `take` would not wait.
  bool ready() const { return rows_taken_ < rows_read_.load(std::memory_order_acquire); }
  /// The finding of the oldest row not taken (there is one, DETRUN_CHECK). Valid until rows are
  /// handed over again.
  const RowFinding& take();

 private:
  struct Block {
    std::span<float> rows(std::uint64_t n_vocab) const { return {logits.get(), n_rows * n_vocab}; }

    std::unique_ptr<float[]> logits;
    std::uint64_t n_rows = 0;
    std::uint64_t rows_before_end = 0;  ///< rows_read_ when the whole block was read
  };

  Block& block(std::uint64_t index) { return blocks_[index % 2]; }
  void read_block(const Block& block);
  void read_loop();
  void wait_until_read(std::uint64_t rows);

  const std::uint64_t n_vocab_, block_rows_;
  std::array<Block, 2> blocks_;
  std::vector<RowFinding> findings_;  ///< of row i at i modulo size
  std::uint64_t rows_in_ = 0, rows_taken_ = 0;
  std::atomic<std::uint32_t> blocks_in_ = 0;  ///< written by the caller
  std::atomic<std::uint32_t> rows_read_ = 0;  ///< written by whoever reads
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace detrun
