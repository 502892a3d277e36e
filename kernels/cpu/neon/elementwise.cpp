// Elementwise operators: contract clauses 4 and 10, four at a time, the last ones padded with +0.
#include "kernels/cpu/neon/math4.h"
#include "kernels/cpu/neon/neon.h"

namespace detrun::kernels::neon {

namespace {

template <float32x4_t (*F)(float32x4_t)>
void map(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    store_first(y + i, n - i, F(load_padded(x + i, n - i)));
  }
}

}  // namespace

void silu_mul(float* gate, const float* up, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    const float32x4_t silu = silu4(load_padded(gate + i, n - i));
    store_first(gate + i, n - i, vmulq_f32(silu, load_padded(up + i, n - i)));
  }
}

void add(float* x, const float* y, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    store_first(x + i, n - i, vaddq_f32(load_padded(x + i, n - i), load_padded(y + i, n - i)));
  }
}

void mul(float* x, const float* y, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    store_first(x + i, n - i, vmulq_f32(load_padded(x + i, n - i), load_padded(y + i, n - i)));
  }
}

void scale(float* x, float factor, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    store_first(x + i, n - i, vmulq_f32(load_padded(x + i, n - i), splat(factor)));
  }
}

void add_scaled(float* x, const float* y, float factor, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    const float32x4_t yi = load_padded(y + i, n - i);
    store_first(x + i, n - i, fma4(splat(factor), yi, load_padded(x + i, n - i)));
  }
}

void softcap(float* x, float cap, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += kLanes) {
    store_first(x + i, n - i, softcap4(load_padded(x + i, n - i), splat(cap)));
  }
}

void exp(const float* x, std::uint64_t n, float* y) { map<exp4>(x, n, y); }
void log(const float* x, std::uint64_t n, float* y) { map<log4>(x, n, y); }
void tanh(const float* x, std::uint64_t n, float* y) { map<tanh4>(x, n, y); }
void erf(const float* x, std::uint64_t n, float* y) { map<erf4>(x, n, y); }
void sigmoid(const float* x, std::uint64_t n, float* y) { map<sigmoid4>(x, n, y); }
void silu(const float* x, std::uint64_t n, float* y) { map<silu4>(x, n, y); }
void gelu_tanh(const float* x, std::uint64_t n, float* y) { map<gelu_tanh4>(x, n, y); }
void gelu_erf(const float* x, std::uint64_t n, float* y) { map<gelu_erf4>(x, n, y); }

}  // namespace detrun::kernels::neon
