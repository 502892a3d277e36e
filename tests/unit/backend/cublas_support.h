// What the tests of profile cublas share: the emulated library told how to behave, small products,
// refusals as values.
#pragma once

#include <cublasLt.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "detrun/backend.h"
#include "detrun/error.h"
#include "detrun/quant.h"
#include "kernels/fp.h"
#include "refusal.h"

namespace detrun::test {

using emulation::CublasLtCall;
using emulation::EmulatedCublasLt;

/// The emulated library behaves so as long as it lives; calls and counts are new.
class Behaviour {
 public:
  explicit Behaviour(const EmulatedCublasLt& behaviour = {}) {
    emulation::set_cublas_lt(behaviour);
  }
  ~Behaviour() { emulation::set_cublas_lt({}); }
  Behaviour(const Behaviour&) = delete;
  Behaviour& operator=(const Behaviour&) = delete;
};

inline std::uint16_t narrow(QType type, float value) {
  return type == QType::kF16 ? kernels::f32_to_f16(value) : kernels::f32_to_bf16(value);
}
inline float widen(QType type, std::uint16_t value) {
  return type == QType::kF16 ? kernels::f16_to_f32(value) : kernels::bf16_to_f32(value);
}
/// The value as it is in the type.
inline float rounded(QType type, float value) {
  return type == QType::kF32 ? value : widen(type, narrow(type, value));
}

/// Numbers of the type, as floats; in another order their sums have other bits.
inline std::vector<float> numbers(QType type, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    value = static_cast<float>(static_cast<int>(random() % 20001) - 10000) * 3.7e-4F;
    value = rounded(type, value);
  }
  return values;
}

/// A weight (n, k) whose bytes live as long as it does.
struct Matrix {
  Matrix(QType type_, std::uint32_t n_, std::uint32_t k_, unsigned seed)
      : type(type_), n(n_), k(k_), values(numbers(type, std::size_t{n} * k, seed)) {
    for (const float value : values) {
      if (type != QType::kF32) halves.push_back(narrow(type, value));
    }
  }
  std::unique_ptr<Weight> load(Backend& backend, bool many_rows = true) const {
    const auto bytes =
        type == QType::kF32 ? std::as_bytes(std::span(values)) : std::as_bytes(std::span(halves));
    return backend.load_weight({"w", type, k, n, bytes, many_rows});
  }
  QType type;
  std::uint32_t n, k;
  std::vector<float> values;
  std::vector<std::uint16_t> halves;
};

/// y (rows, n) of one product; the buffer has room for `room` rows.
inline std::vector<float> multiply(Backend& backend, const Weight& weight, std::uint32_t n,
                                   std::span<const float> x, std::uint32_t rows,
                                   std::uint32_t room) {
  const auto in = backend.new_buffer(x.size());
  backend.upload(*in, x);
  const auto y = backend.new_buffer(std::uint64_t{room} * n);
  const MatmulTask task{&weight, y.get()};
  backend.matmul({&task, 1}, *in, rows);
  std::vector<float> out(std::size_t{rows} * n);
  backend.download(*y, 0, out);
  return out;
}

/// Quantized, (n, 32), all zeros.
struct QuantizedMatrix {
  explicit QuantizedMatrix(std::uint32_t n_) : n(n_), bytes(std::size_t{n} * 34) {}
  std::unique_ptr<Weight> load(Backend& backend, bool many_rows = true) const {
    return backend.load_weight({"blk.0.quantized", QType::kQ8_0, 32, n, bytes, many_rows});
  }
  std::uint32_t n;
  std::vector<std::byte> bytes;
};

/// A variable of the environment as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace detrun::test
