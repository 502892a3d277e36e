// Rotary position embedding: contract clause 8. The two functions differ in which elements pair up.
#include "kernels/contract.h"
#include "kernels/cpu/scalar/scalar.h"

namespace detrun::kernels::scalar {

namespace {

void rotate(float* x0, float* x1, float c, float s) {
  const float a = *x0;
  const float b = *x1;
  *x0 = f32_fma(-b, s, f32_mul(a, c));
  *x1 = f32_fma(a, s, f32_mul(b, c));
}

}  // namespace

void rope_adjacent(const RopeArgs* args) {
  for (std::uint32_t h = 0; h < args->n_heads; ++h) {
    float* x = args->x + std::uint64_t{h} * args->head_dim;
    for (std::uint32_t i = 0; i < args->rope_dim / 2; ++i) {
      rotate(x + 2 * i, x + 2 * i + 1, args->cos[i], args->sin[i]);
    }
  }
}

void rope_halves(const RopeArgs* args) {
  const std::uint32_t half = args->rope_dim / 2;
  for (std::uint32_t h = 0; h < args->n_heads; ++h) {
    float* x = args->x + std::uint64_t{h} * args->head_dim;
    for (std::uint32_t i = 0; i < half; ++i) {
      rotate(x + i, x + half + i, args->cos[i], args->sin[i]);
    }
  }
}

}  // namespace detrun::kernels::scalar
