// How many tokens a prefill takes at once when nobody says. Has no influence on any bit: rows are
// independent. More rows read the weights less often; their activations, all of one layer, are to
// stay in the cache that the cores share.
#include <unistd.h>

#include <algorithm>

#include "detrun/model.h"

namespace detrun {
namespace {

constexpr std::uint64_t kRowsMin = 64;   // below, products wait for weights
constexpr std::uint64_t kRowsMax = 512;  // above, nothing is left to gain
constexpr std::uint64_t kRowsStep = 16;
constexpr std::uint64_t kCacheUnknown = std::uint64_t{8} << 20U;

/// Bytes of the largest cache; not all of it is this process's.
std::uint64_t shared_cache_bytes() {
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return static_cast<std::uint64_t>(bytes);
#endif
  return kCacheUnknown;
}

}  // namespace

std::uint32_t default_chunk_rows(const ModelSpec& spec, std::uint64_t cache_bytes) {
  const std::uint64_t heads = 2ULL * spec.n_heads + 2ULL * spec.n_kv_heads;
  const std::uint64_t floats = 3ULL * spec.n_embd + heads * spec.head_dim + 2ULL * spec.n_ff;
  const std::uint64_t row_bytes = std::max<std::uint64_t>(1, floats * sizeof(float));
  const std::uint64_t fit = cache_bytes / 2 / row_bytes / kRowsStep * kRowsStep;
  return static_cast<std::uint32_t>(std::clamp(fit, kRowsMin, kRowsMax));
}

std::uint32_t default_chunk_rows(const ModelSpec& spec) {
  return default_chunk_rows(spec, shared_cache_bytes());
}

}  // namespace detrun
