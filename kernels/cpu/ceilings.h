// What a processor does at most of one kind of work: loops that do nothing else, for measuring
// speed against. One table an instruction set. They compute nothing of the contract and no result
// ever depends on them; a caller splits threads and measures time.
#pragma once

#include <cstdint>

namespace detrun::kernels {

/// Streams that one thread reads at once. One alone does not fill the memory bus.
constexpr std::uint64_t kCeilingStreams = 4;
/// Bytes of a stream before the next unit begins. `read` takes a multiple of streams times this.
constexpr std::uint64_t kCeilingStreamBytes = 8192;

/// Every function returns something that depends on all it did, so that none of it is left out.
struct CeilingOps {
  const char* name;
  /// Reads `n_bytes` once, in `kCeilingStreams` streams, without software prefetch. `base` is
  /// 64-byte aligned, n_bytes a multiple of kCeilingStreams * kCeilingStreamBytes.
  std::uint64_t (*read)(const void* base, std::uint64_t n_bytes);
  /// Fused multiply-adds of binary32 in independent chains.
  float (*fma)(std::uint64_t rounds);
  std::uint64_t fma_flops;  ///< of one round; a fused multiply-add counts two
  /// Products of 8-bit integers, added up to 32 bits, in independent chains.
  std::int32_t (*int8)(std::uint64_t rounds);
  std::uint64_t int8_ops;  ///< of one round; a multiplication and an addition count two
};

namespace scalar {
extern const CeilingOps kCeilings;
}
namespace avx2 {
extern const CeilingOps kCeilings;  ///< only where the build targets x86-64
}
namespace neon {
extern const CeilingOps kCeilings;  ///< only where the build targets AArch64
}  // namespace neon

}  // namespace detrun::kernels
