// Rotary position embedding: contract clause 8. y0 = fma(-x1, s, x0*c), y1 = fma(x0, s, x1*c); FMLS
// negates a factor of its product, which is exact.
#include "kernels/cpu/neon/lanes.h"
#include "kernels/cpu/neon/neon.h"

namespace detrun::kernels::neon {

namespace {

struct Pair {
  float32x4_t x0, x1;
};

inline Pair rotate(Pair x, float32x4_t c, float32x4_t s) {
  return {vfmsq_f32(vmulq_f32(x.x0, c), x.x1, s), vfmaq_f32(vmulq_f32(x.x1, c), x.x0, s)};
}

}  // namespace

void rope_adjacent(const RopeArgs* args) {
  const std::uint32_t n_pairs = args->rope_dim / 2;
  for (std::uint32_t h = 0; h < args->n_heads; ++h) {
    float* x = args->x + std::uint64_t{h} * args->head_dim;
    for (std::uint32_t i = 0; i < n_pairs; i += kLanes) {
      const std::uint64_t left = n_pairs - i;
      const std::uint64_t bytes = (left < kLanes ? left : kLanes) * 2 * sizeof(float);
      alignas(16) float pairs[2 * kLanes] = {};
      std::memcpy(pairs, x + 2 * i, bytes);
      const float32x4x2_t split = vld2q_f32(pairs);  // even elements, odd elements
      const Pair y = rotate({split.val[0], split.val[1]}, load_padded(args->cos + i, left),
                            load_padded(args->sin + i, left));
      vst2q_f32(pairs, (float32x4x2_t{{y.x0, y.x1}}));
      std::memcpy(x + 2 * i, pairs, bytes);
    }
  }
}

void rope_halves(const RopeArgs* args) {
  const std::uint32_t half = args->rope_dim / 2;
  for (std::uint32_t h = 0; h < args->n_heads; ++h) {
    float* x = args->x + std::uint64_t{h} * args->head_dim;
    for (std::uint32_t i = 0; i < half; i += kLanes) {
      const std::uint64_t left = half - i;
      const Pair y = rotate({load_padded(x + i, left), load_padded(x + half + i, left)},
                            load_padded(args->cos + i, left), load_padded(args->sin + i, left));
      store_first(x + i, left, y.x0);
      store_first(x + half + i, left, y.x1);
    }
  }
}

}  // namespace detrun::kernels::neon
