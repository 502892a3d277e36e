// How many thread blocks a launch takes. Not the launches: each file of kernels has its own.
#pragma once

#include <cstddef>

#include "kernels/cuda/planes.h"

namespace detrun::cuda {

/// ceil(n / a_block). Beyond 2^31 - 1 the result is 0, which every launch refuses: never a grid
/// that covers a part.
inline unsigned blocks_for(std::size_t n, unsigned a_block) {
  const std::size_t blocks = n / a_block + (n % a_block != 0 ? 1 : 0);
  return blocks <= 0x7fffffffu ? static_cast<unsigned>(blocks) : 0;
}

/// The first n of `matrices`, at least one, in one launch of blocks of `a_block` rows; all of its
/// blocks are end[n - 1].
template <class Weight>
GemvMatrices<Weight> in_one_grid(const GemvMatrix<Weight>* matrices, unsigned n, unsigned a_block) {
  GemvMatrices<Weight> all{};
  unsigned end = 0;
  for (unsigned i = 0; i < kGemvMatrices; ++i) {
    if (i < n) {
      all.matrix[i] = matrices[i];
      end += blocks_for(matrices[i].n_rows, a_block);
    }
    all.end[i] = end;
  }
  return all;
}

}  // namespace detrun::cuda
