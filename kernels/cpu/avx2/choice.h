// Passes over one row of logits in eight lanes: what contract clause 11 asks of the whole
// vocabulary. Not a row of CpuOps: choosing a token belongs to no backend. The reference is
// src/sampler, which compares both before it uses these.
#pragma once

#include <cstdint>

namespace detrun::kernels::avx2 {

/// The two largest of a row, and whether every element is finite.
struct RowScan {
  std::uint64_t best;  ///< the first of the largest, -0 equal to +0
  float second;        ///< the largest of the others, of either zero any; -infinity: none
  float least;         ///< the smallest
  bool finite;         ///< when false the rest means nothing
};

/// n >= 1.
RowScan scan_row(const float* x, std::uint64_t n);
bool row_is_finite(const float* x, std::uint64_t n);
/// S32(exp(x_i - m)). All finite, none above m, none below `least`.
float sum_of_exp(const float* x, std::uint64_t n, float m, float least);

}  // namespace detrun::kernels::avx2
