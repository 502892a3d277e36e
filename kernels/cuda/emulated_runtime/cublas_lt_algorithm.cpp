// See cublas_lt_algorithm.h. Bits of its own: sums from the end, in parts, where the contract has
// 32 lanes.
#include "kernels/cuda/emulated_runtime/cublas_lt_algorithm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "kernels/fp.h"

namespace detrun::emulation {
namespace {

constexpr std::uint32_t kMagic = 0x6c74656d;

struct Library {
  std::mutex mutex;  // guards everything here
  EmulatedCublasLt behaviour = first_behaviour();
  std::vector<CublasLtCall> calls;
  bool recording = false;
  std::uint64_t products = 0;

  static EmulatedCublasLt first_behaviour() {
    EmulatedCublasLt behaviour;
    const char* version = std::getenv("DETRUN_EMULATED_CUBLASLT");
    const char* flip = std::getenv("DETRUN_EMULATED_CUBLASLT_FLIP");
    if (version != nullptr) {
      behaviour.missing = std::string_view(version) == "none";
      behaviour.version = std::strtoull(version, nullptr, 10);
    }
    if (flip != nullptr) behaviour.flipped_call = std::strtoull(flip, nullptr, 10);
    return behaviour;
  }
};
Library& library() {
  static Library instance;
  return instance;
}

float element(const std::byte* memory, cudaDataType_t type, std::uint64_t index) {
  float value = 0;
  std::uint16_t half = 0;
  if (type == CUDA_R_32F) {
    std::memcpy(&value, memory + index * sizeof(value), sizeof(value));
    return value;
  }
  std::memcpy(&half, memory + index * sizeof(half), sizeof(half));
  return type == CUDA_R_16F ? kernels::f16_to_f32(half) : kernels::bf16_to_f32(half);
}

LtAlgorithm make_algorithm(const CublasLtCall& shape, std::uint32_t version, std::uint32_t id,
                           std::uint32_t parts, std::uint32_t reduction) {
  return {kMagic,
          version,
          id,
          parts,
          reduction,
          static_cast<std::uint32_t>(shape.a_type),
          static_cast<std::uint32_t>(shape.m),
          static_cast<std::uint32_t>(shape.n),
          static_cast<std::uint32_t>(shape.k),
          {}};
}

/// (n, k) of B as floats (k, n), so that a step of the sums of all n goes over memory in a row.
std::vector<float> turned(const CublasLtCall& call) {
  const auto* b = static_cast<const std::byte*>(call.b);
  std::vector<float> out(call.k * call.n);
  for (std::uint64_t j = 0; j < call.n; ++j) {
    for (std::uint64_t p = 0; p < call.k; ++p) {
      out[p * call.n + j] = element(b, call.b_type, j * call.k + p);
    }
  }
  return out;
}

/// d (n): the sums of each part from its end, then the parts in their order; two roundings a step.
void dots(const CublasLtCall& call, std::uint32_t parts, std::uint64_t output, const float* b,
          std::vector<float>& of_part, std::vector<float>& d) {
  const auto* a = static_cast<const std::byte*>(call.a);
  std::fill(d.begin(), d.end(), 0.0F);
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::uint64_t first = call.k * part / parts;
    std::fill(of_part.begin(), of_part.end(), 0.0F);
    for (std::uint64_t p = call.k * (part + 1) / parts; p > first; --p) {
      const float of_a = element(a, call.a_type, output * call.k + p - 1);
      const float* of_b = b + (p - 1) * call.n;
      for (std::uint64_t j = 0; j < call.n; ++j) {
        of_part[j] = kernels::f32_add(of_part[j], kernels::f32_mul(of_a, of_b[j]));
      }
    }
    for (std::uint64_t j = 0; j < call.n; ++j) d[j] = kernels::f32_add(d[j], of_part[j]);
  }
}

}  // namespace

LtAlgorithm read_algorithm(const cublasLtMatmulAlgo_t& from) {
  LtAlgorithm algorithm;
  std::memcpy(&algorithm, &from, sizeof(algorithm));
  return algorithm;
}

cublasLtMatmulAlgo_t write_algorithm(const LtAlgorithm& algorithm) {
  cublasLtMatmulAlgo_t to;
  std::memcpy(&to, &algorithm, sizeof(algorithm));
  return to;
}

bool is_algorithm(const LtAlgorithm& algorithm) { return algorithm.magic == kMagic; }

std::uint64_t element_bytes(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

std::uint64_t workspace_of(const LtAlgorithm& algorithm) {
  if (algorithm.reduction == CUBLASLT_REDUCTION_SCHEME_NONE) return 0;
  return std::uint64_t{algorithm.parts} * algorithm.m * algorithm.n * sizeof(float);
}

bool fits(const LtAlgorithm& algorithm, const CublasLtCall& shape) {
  const EmulatedCublasLt behaviour = cublas_lt();
  const LtAlgorithm same = make_algorithm(shape, static_cast<std::uint32_t>(behaviour.version),
                                          algorithm.id, algorithm.parts, algorithm.reduction);
  return shape.k != 0 && algorithm.id != 0 && algorithm.parts != 0 &&
         shape.m != behaviour.refused_outputs && std::memcmp(&algorithm, &same, sizeof(same)) == 0;
}

std::uint64_t numerics_of(const LtAlgorithm& algorithm) {
  const bool f32 = algorithm.type == CUDA_R_32F;
  const bool f16 = algorithm.type == CUDA_R_16F;
  std::uint64_t input = f32   ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F
                        : f16 ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F
                              : CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
  std::uint64_t sums = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
  if (algorithm.id == kHalfSums) sums = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F;
  if (algorithm.id == kOtherInputs) {
    input = f32   ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32
            : f16 ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF
                  : CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F;
  }
  return CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | sums | input;
}

std::vector<LtAlgorithm> algorithms_for(const CublasLtCall& shape, bool unwanted_too) {
  const auto version = static_cast<std::uint32_t>(cublas_lt().version);
  std::vector<LtAlgorithm> found;
  if (unwanted_too) {
    found.push_back(make_algorithm(shape, version, kInPlace, 2, CUBLASLT_REDUCTION_SCHEME_INPLACE));
    found.push_back(make_algorithm(shape, version, kHalfSums, 1, CUBLASLT_REDUCTION_SCHEME_NONE));
    found.push_back(
        make_algorithm(shape, version, kOtherInputs, 1, CUBLASLT_REDUCTION_SCHEME_NONE));
  }
  if (shape.m % 2 == 0) {
    found.push_back(
        make_algorithm(shape, version, kTwoParts, 2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  }
  found.push_back(make_algorithm(shape, version, kOnePart, 1, CUBLASLT_REDUCTION_SCHEME_NONE));
  return found;
}

cudaError_t multiply(const CublasLtCall& call, std::uint32_t parts, bool flip) {
  auto* d = static_cast<float*>(const_cast<void*>(call.d));
  const std::vector<float> b = turned(call);
  std::vector<float> of_part(call.n);
  std::vector<float> column(call.n);
  for (std::uint64_t i = 0; i < call.m; ++i) {
    dots(call, parts, i, b.data(), of_part, column);
    for (std::uint64_t j = 0; j < call.n; ++j) d[j * call.m + i] = column[j];
  }
  if (flip) d[0] = kernels::f32_from_bits(kernels::f32_bits(d[0]) ^ 1U);
  return cudaSuccess;
}

void record_cublas_lt(const CublasLtCall& call) {
  const std::lock_guard lock(library().mutex);
  if (library().recording) library().calls.push_back(call);
}

bool is_flipped_product() {
  const std::lock_guard lock(library().mutex);
  return ++library().products == library().behaviour.flipped_call;
}

void set_cublas_lt(const EmulatedCublasLt& behaviour) {
  const std::lock_guard lock(library().mutex);
  library().behaviour = behaviour;
  library().calls.clear();
  library().recording = true;
  library().products = 0;
}

EmulatedCublasLt cublas_lt() {
  const std::lock_guard lock(library().mutex);
  return library().behaviour;
}

std::vector<CublasLtCall> take_cublas_lt_calls() {
  const std::lock_guard lock(library().mutex);
  return std::exchange(library().calls, {});
}

}  // namespace detrun::emulation
