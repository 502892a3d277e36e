// Elementwise operators: contract clauses 4 and 10.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/functions.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

void silu_mul(float* gate, const float* up, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 g = silu8(load_padded(gate + i, n - i));
    store_first(gate + i, n - i, _mm256_mul_ps(g, load_padded(up + i, n - i)));
  }
}

void add(float* x, const float* y, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 sum = _mm256_add_ps(load_padded(x + i, n - i), load_padded(y + i, n - i));
    store_first(x + i, n - i, sum);
  }
}

void mul(float* x, const float* y, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 product = _mm256_mul_ps(load_padded(x + i, n - i), load_padded(y + i, n - i));
    store_first(x + i, n - i, product);
  }
}

void scale(float* x, float factor, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 product = _mm256_mul_ps(load_padded(x + i, n - i), _mm256_set1_ps(factor));
    store_first(x + i, n - i, product);
  }
}

void add_scaled(float* x, const float* y, float factor, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    const __m256 sum = _mm256_fmadd_ps(_mm256_set1_ps(factor), load_padded(y + i, n - i),
                                       load_padded(x + i, n - i));
    store_first(x + i, n - i, sum);
  }
}

void softcap(float* x, float cap, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    store_first(x + i, n - i, softcap8(load_padded(x + i, n - i), _mm256_set1_ps(cap)));
  }
}

namespace {

/// y[i] = F(x[i]), eight at a time.
template <__m256 (*F)(__m256)>
void apply(const float* x, std::uint64_t n, float* y) {
  for (std::uint64_t i = 0; i < n; i += 8) {
    store_first(y + i, n - i, F(load_padded(x + i, n - i)));
  }
}

}  // namespace

void exp(const float* x, std::uint64_t n, float* y) { apply<exp8>(x, n, y); }
void log(const float* x, std::uint64_t n, float* y) { apply<log8>(x, n, y); }
void tanh(const float* x, std::uint64_t n, float* y) { apply<tanh8>(x, n, y); }
void erf(const float* x, std::uint64_t n, float* y) { apply<erf8>(x, n, y); }
void sigmoid(const float* x, std::uint64_t n, float* y) { apply<sigmoid8>(x, n, y); }
void silu(const float* x, std::uint64_t n, float* y) { apply<silu8>(x, n, y); }
void gelu_tanh(const float* x, std::uint64_t n, float* y) { apply<gelu_tanh8>(x, n, y); }
void gelu_erf(const float* x, std::uint64_t n, float* y) { apply<gelu_erf8>(x, n, y); }

}  // namespace detrun::kernels::avx2
