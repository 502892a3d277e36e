// K and V into the cache: contract clause 7. FCVTN rounds as FPCR says: to nearest even.
#include "kernels/cpu/neon/lanes.h"
#include "kernels/cpu/neon/neon.h"

namespace detrun::kernels::neon {

bool kv_write_f16(const float* x, std::uint64_t n, std::uint16_t* out) {
  uint32x4_t largest = vdupq_n_u32(0);
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    const float32x4_t v = load_padded(x + i, n - i);
    largest = vmaxq_u32(largest, magnitude_bits(v));
    alignas(8) std::uint16_t half[kLanes];
    vst1_u16(half, vreinterpret_u16_f16(vcvt_f16_f32(v)));
    std::memcpy(out + i, half, (n - i < kLanes ? n - i : kLanes) * sizeof half[0]);
  }
  return vmaxvq_u32(largest) < kF16OverflowBits;
}

bool kv_write_f32(const float* x, std::uint64_t n, float* out) {
  uint32x4_t largest = vdupq_n_u32(0);
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    const float32x4_t v = load_padded(x + i, n - i);
    largest = vmaxq_u32(largest, magnitude_bits(v));
    store_first(out + i, n - i, v);
  }
  return vmaxvq_u32(largest) < kInfBits;
}

}  // namespace detrun::kernels::neon
