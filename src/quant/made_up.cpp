// Pseudo-random tensors as a file would hold them; what they are is in kernels/quant/synthetic.h.
#include <algorithm>
#include <cstring>

#include "detrun/error.h"
#include "detrun/quant.h"
#include "kernels/quant/synthetic.h"

namespace detrun {
namespace {

using namespace kernels;

constexpr SyntheticFloat kFloats[] = {kSyntheticF32, kSyntheticF16, kSyntheticBf16};
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

void make_up_floats(const SyntheticFloat& kind, std::uint64_t key, std::uint64_t first,
                    std::span<std::byte> out) {
  const std::uint64_t first_word = first * static_cast<unsigned>(kind.bits) / 64;
  for (std::size_t at = 0; at < out.size(); at += kWordBytes) {
    const std::uint64_t values = synthetic_floats(kind, key, first_word + at / kWordBytes);
    std::memcpy(out.data() + at, &values, std::min(kWordBytes, out.size() - at));
  }
}

}  // namespace

bool can_make_up(QType type) {
  const auto id = static_cast<std::uint32_t>(type);
  return std::any_of(std::begin(kFloats), std::end(kFloats),
                     [&](const SyntheticFloat& kind) { return kind.gguf_id == id; }) ||
         synthetic_block_of(id).scale_at >= 0;
}

void make_up_blocks(QType type, std::uint64_t key, std::uint64_t first, std::span<std::byte> out) {
  DETRUN_CHECK(can_make_up(type) && first % 4 == 0);
  const auto id = static_cast<std::uint32_t>(type);
  for (const SyntheticFloat& kind : kFloats) {
    if (kind.gguf_id == id) return make_up_floats(kind, key, first, out);
  }
  const SyntheticBlock kind = synthetic_block_of(id);
  const std::size_t n_bytes = qtype_info(type).block_bytes;
  auto* bytes = static_cast<std::uint8_t*>(static_cast<void*>(out.data()));
  for (std::uint64_t block = 0; block < out.size() / n_bytes; ++block) {
    synthetic_block(kind, key, first + block, bytes + block * n_bytes, static_cast<int>(n_bytes));
  }
}

}  // namespace detrun
