// K and V into the cache: contract clause 7. Narrowing is to nearest even with subnormals kept;
// what would become infinite is reported, never stored silently.
#include "kernels/contract.h"
#include "kernels/cpu/scalar/scalar.h"
#include "kernels/fp.h"

namespace detrun::kernels::scalar {

bool kv_write_f16(const float* x, std::uint64_t n, std::uint16_t* out) {
  bool fits = true;
  for (std::uint64_t i = 0; i < n; ++i) {
    out[i] = f32_to_f16(x[i]);
    if ((f32_bits(x[i]) & kAbsMask) >= kF16OverflowBits) fits = false;
  }
  return fits;
}

bool kv_write_f32(const float* x, std::uint64_t n, float* out) {
  bool finite = true;
  for (std::uint64_t i = 0; i < n; ++i) {
    out[i] = x[i];
    if (!f32_is_finite(x[i])) finite = false;
  }
  return finite;
}

}  // namespace detrun::kernels::scalar
