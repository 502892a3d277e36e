// Products with F32, F16 and BF16 weights: contract clause 1. The packed form is the file's. The 32
// canonical lanes of one output are eight registers; a row of weights is widened once for up to
// three rows of x.
#include "kernels/cpu/file_layout.h"
#include "kernels/cpu/neon/lanes.h"
#include "kernels/cpu/neon/neon.h"

namespace detrun::kernels::neon {

namespace {

constexpr int kRegs = kFloatLanes / 4;
constexpr std::uint32_t kRowsMax = 3;  // 24 accumulators of 32 registers

template <class Type>
std::uint64_t packed_bytes(std::uint64_t k, std::uint64_t n) {
  return file_bytes<typename Type::Block>(k, n, 1);
}

template <class Type>
void pack(const void* rows, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t g0,
          std::uint64_t g1, void* packed) {
  copy_rows(rows, packed_bytes<Type>(k, 1), g0, g1, packed);
}

template <class Type>
void decode_row(const void* packed, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t i,
                float* out) {
  const auto* w = static_cast<const typename Type::Block*>(packed) + i * k;
  std::uint64_t j = 0;
  for (; j + kLanes <= k; j += kLanes) vst1q_f32(out + j, load4(Type{}, w + j));
  for (; j < k; ++j) out[j] = Type::widen(w[j]);
}

/// One step of 32 k for R rows of x.
template <class Type, int R>
inline void step(const typename Type::Block* w, const float* const (&x)[R],
                 float32x4_t (&a)[R][kRegs]) {
  for (int i = 0; i < kRegs; ++i) {
    const float32x4_t wi = load4(Type{}, w + 4 * i);
    for (int r = 0; r < R; ++r) a[r][i] = vfmaq_f32(a[r][i], vld1q_f32(x[r] + 4 * i), wi);
  }
}

/// Outputs [g0, g1) of R rows of x from `row`.
template <class Type, int R>
void rows_block(const MatmulArgs& args, std::uint64_t row, std::uint64_t g0, std::uint64_t g1) {
  using Block = typename Type::Block;
  const std::uint64_t whole = args.k / kFloatLanes * kFloatLanes;
  const float* first[R];
  float x_rest[R][kFloatLanes] = {};
  for (int r = 0; r < R; ++r) {
    const std::uint64_t offset = (row + static_cast<std::uint64_t>(r)) * args.x_row_bytes;
    const void* bytes = static_cast<const char*>(args.x) + offset;
    first[r] = static_cast<const float*>(bytes);
    std::memcpy(x_rest[r], first[r] + whole, (args.k - whole) * sizeof(float));
  }
  for (std::uint64_t g = g0; g < g1; ++g) {
    const Block* w = static_cast<const Block*>(args.weight) + g * args.k;
    float32x4_t a[R][kRegs];
    for (auto& lanes : a) {
      for (auto& v : lanes) v = zero4();
    }
    const float* x[R];
    for (int r = 0; r < R; ++r) x[r] = first[r];
    for (std::uint64_t k = 0; k < whole; k += kFloatLanes) {
      step<Type, R>(w + k, x, a);
      for (int r = 0; r < R; ++r) x[r] += kFloatLanes;
    }
    if (whole != args.k) {  // +0 stands for what is missing
      Block w_rest[kFloatLanes] = {};
      std::memcpy(w_rest, w + whole, (args.k - whole) * sizeof(Block));
      for (int r = 0; r < R; ++r) x[r] = x_rest[r];
      step<Type, R>(w_rest, x, a);
    }
    for (int r = 0; r < R; ++r) {
      args.y[(row + static_cast<std::uint64_t>(r)) * args.n + g] = tree32(a[r]);
    }
  }
}

template <class Type>
void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  for (std::uint32_t row = 0; row < args->n_rows; row += kRowsMax) {
    switch (args->n_rows - row) {
      case 1:
        rows_block<Type, 1>(*args, row, g0, g1);
        break;
      case 2:
        rows_block<Type, 2>(*args, row, g0, g1);
        break;
      default:
        rows_block<Type, kRowsMax>(*args, row, g0, g1);
        break;
    }
  }
}

template <class Type>
constexpr MatmulOps matmul_ops() {
  return {Type::kGgufId, InputForm::kFloat, 1,           packed_bytes<Type>,
          pack<Type>,    decode_row<Type>,  matmul<Type>};
}

}  // namespace

const MatmulOps kMatmulF32 = matmul_ops<TypeF32>();
const MatmulOps kMatmulF16 = matmul_ops<TypeF16>();
const MatmulOps kMatmulBF16 = matmul_ops<TypeBF16>();

std::uint64_t float_row_bytes(std::uint64_t k) { return (k * sizeof(float) + 63) / 64 * 64; }

bool prepare_float(const float* x, std::uint64_t k, void* row) {
  uint32x4_t largest = vdupq_n_u32(0);
  for (std::uint64_t i = 0; i < k; i += kLanes) {
    largest = vmaxq_u32(largest, magnitude_bits(load_padded(x + i, k - i)));
  }
  std::memcpy(row, x, k * sizeof(float));
  return vmaxvq_u32(largest) < kInfBits;
}

}  // namespace detrun::kernels::neon
