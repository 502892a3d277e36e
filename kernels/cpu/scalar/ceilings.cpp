// What plain C++ reaches with the flags of the build: where no instruction set has a table of its
// own. See kernels/cpu/ceilings.h.
#include "kernels/cpu/ceilings.h"

#include "kernels/fp.h"

namespace detrun::kernels::scalar {
namespace {

constexpr int kChains = 8;

std::uint64_t read(const void* base, std::uint64_t n_bytes) {
  constexpr std::uint64_t kStream = kCeilingStreamBytes / sizeof(std::uint64_t);
  const auto* words = static_cast<const std::uint64_t*>(base);
  std::uint64_t sum[kCeilingStreams] = {};
  for (std::uint64_t unit = 0; unit < n_bytes / sizeof(*words); unit += kCeilingStreams * kStream) {
    for (std::uint64_t i = 0; i < kStream; ++i) {
      for (std::uint64_t s = 0; s < kCeilingStreams; ++s) sum[s] ^= words[unit + s * kStream + i];
    }
  }
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

float fma(std::uint64_t rounds) {
  volatile float start = 0.5F;
  const float x = start;
  float chain[kChains] = {};
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (float& part : chain) part = f32_fma(x, 0.25F, part);
  }
  float sum = 0;
  for (const float part : chain) sum = f32_add(sum, part);
  return sum;
}

std::int32_t int8(std::uint64_t rounds) {
  volatile std::int8_t start = 3;
  std::uint32_t chain[kChains] = {};
  for (std::uint64_t i = 0; i < rounds; ++i) {
    for (std::uint32_t& part : chain) part += static_cast<std::uint32_t>(start) * 5U;
  }
  std::uint32_t sum = 0;
  for (const std::uint32_t part : chain) sum += part;
  return static_cast<std::int32_t>(sum);
}

}  // namespace

const CeilingOps kCeilings = {"scalar", read, fma, 2 * kChains, int8, 2 * kChains};

}  // namespace detrun::kernels::scalar
