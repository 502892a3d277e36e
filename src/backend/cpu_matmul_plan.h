// How a product is cut into items for the threads: runs of groups (outputs), and blocks of rows of
// x where that alone gives too few items. Only outputs are split, so the cut has no influence on
// any bit. Small items cost nothing (thread_pool.h) and let all threads end together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu_weight.h"

namespace detrun {

class MatmulPlan {
 public:
  /// row_bytes: of one prepared row of x.
  MatmulPlan(const CpuWeight& weight, std::uint32_t n_rows, std::uint64_t row_bytes,
             std::uint32_t n_threads)
      : n_rows_(n_rows), row_bytes_(row_bytes), n_groups_(weight.n_groups()) {
    const std::uint64_t n_chunks = (n_groups_ + kGroups - 1) / kGroups;
    const std::uint64_t wanted = std::uint64_t{n_threads} * kItemsPerThread;
    // Weights are read again for every block, so blocks are as few and as large as they can be.
    const std::uint64_t n_blocks =
        std::clamp<std::uint64_t>(n_rows / kRowsMin, 1, (wanted + n_chunks - 1) / n_chunks);
    const std::uint64_t even = std::max<std::uint64_t>(1, (n_rows + n_blocks - 1) / n_blocks);
    block_rows_ = static_cast<std::uint32_t>((even + kRowsStep - 1) / kRowsStep * kRowsStep);
    n_blocks_ = (n_rows + block_rows_ - 1) / block_rows_;
    n_items_ = static_cast<std::uint32_t>(n_chunks * n_blocks_);
  }

  std::uint32_t n_items() const { return n_items_; }
  std::uint64_t row_bytes() const { return row_bytes_; }

  struct Item {
    std::uint64_t group0, group1;
    std::uint32_t row0, n_rows;
  };
  /// Items that follow each other share their groups: a thread finds them in its cache.
  Item item(std::uint32_t index) const {
    const std::uint64_t group0 = std::uint64_t{index / n_blocks_} * kGroups;
    const std::uint32_t row0 = index % n_blocks_ * block_rows_;
    return {group0, std::min(n_groups_, group0 + kGroups), row0,
            std::min(block_rows_, n_rows_ - row0)};
  }

 private:
  static constexpr std::uint64_t kGroups = 4;  ///< four streams from memory
  static constexpr std::uint32_t kItemsPerThread = 16;
  static constexpr std::uint32_t kRowsMin = 48;   ///< of a block, about
  static constexpr std::uint32_t kRowsStep = 12;  ///< a multiple of the rows of any kernel's tile

  std::uint32_t n_rows_;
  std::uint64_t row_bytes_;
  std::uint64_t n_groups_;
  std::uint32_t block_rows_ = 0, n_blocks_ = 0, n_items_ = 0;
};

}  // namespace detrun
