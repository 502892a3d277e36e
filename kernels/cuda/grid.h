// How many thread blocks a launch takes. Not the launches: each file of kernels has its own.
#pragma once

#include <cstddef>

namespace detrun::cuda {

/// ceil(n / a_block). Beyond 2^31 - 1 the result is 0, which every launch refuses: never a grid
/// that covers a part.
inline unsigned blocks_for(std::size_t n, unsigned a_block) {
  const std::size_t blocks = n / a_block + (n % a_block != 0 ? 1 : 0);
  return blocks <= 0x7fffffffu ? static_cast<unsigned>(blocks) : 0;
}

}  // namespace detrun::cuda
