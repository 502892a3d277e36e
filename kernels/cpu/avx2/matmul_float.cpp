// Products with F32, F16 and BF16 weights, contract clause 1: lane of the register = output.
//
// Panel layout: 16 outputs a panel; within it the 32 canonical lanes follow each other in
// bit-reversed order (0, 16, 8, 24, ...), and within a lane k ascends: [lane][j][16 outputs] with
// k = 32 j + lane. A lane's chain is a run of plain fma; in bit-reversed order the tree T_32 is a
// binary counter, so that five levels of partial sums wait on a small stack. The weights are read
// once, front to back; four panels at a time give the memory four streams. x lies in the same
// order. wide_tile does the same sums for many rows, with the tree put off.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr std::uint64_t kPanel = 16;
constexpr int kTreeLevels = 5;  // 2^5 canonical lanes

constexpr std::uint64_t lane_at(int step) {
  std::uint64_t lane = 0;
  for (int bit = 0; bit < kTreeLevels; ++bit) lane = lane * 2 + ((step >> bit) & 1);
  return lane;
}

/// How many k have this canonical lane.
inline std::uint64_t lane_length(std::uint64_t k, std::uint64_t lane) {
  return (k + kFloatLanes - 1 - lane) / kFloatLanes;
}

/// start[lane]: index of the lane's first element in the order of visits.
void lane_starts(std::uint64_t k, std::uint64_t* start) {
  std::uint64_t at = 0;
  for (int step = 0; step < kFloatLanes; ++step) {
    const std::uint64_t lane = lane_at(step);
    start[lane] = at;
    at += lane_length(k, lane);
  }
}

template <class Type>
std::uint64_t packed_bytes(std::uint64_t k, std::uint64_t n) {
  return (n + kPanel - 1) / kPanel * kPanel * k * sizeof(typename Type::Block);
}

/// out[c] of 8 registers: column c of rows 0-7 in the low half, column c + 8 in the high half.
[[gnu::always_inline]] inline void transpose_8_rows(const char* rows, std::uint64_t row_bytes,
                                                    __m256i* out) {
  __m256i a[8], b[8];
#pragma GCC unroll 8
  for (std::uint64_t r = 0; r < 8; ++r) {
    a[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + r * row_bytes));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_epi16(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_unpacklo_epi32(b[i], b[i + 2]);
    a[i + 1] = _mm256_unpackhi_epi32(b[i], b[i + 2]);
    a[i + 2] = _mm256_unpacklo_epi32(b[i + 1], b[i + 3]);
    a[i + 3] = _mm256_unpackhi_epi32(b[i + 1], b[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = _mm256_unpacklo_epi64(a[i], a[i + 4]);
    out[2 * i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 4]);
  }
}

/// 16 rows of 64 two-byte weights: line[32 h + lane][16 outputs] is k = 32 h + lane.
void transpose_columns(const char* rows, std::uint64_t row_bytes, __m256i* line) {
  // The rows may lie a multiple of 4 KiB apart, where eight of them at most stay in the L1 cache.
  alignas(64) char block[kPanel][128];
  for (std::uint64_t r = 0; r < kPanel; ++r) std::memcpy(block[r], rows + r * row_bytes, 128);
  for (int c = 0; c < 64; c += 16) {
    __m256i low[8], high[8];
    transpose_8_rows(block[0] + 2 * c, 128, low);
    transpose_8_rows(block[8] + 2 * c, 128, high);
    for (int i = 0; i < 8; ++i) {
      line[c + i] = _mm256_permute2x128_si256(low[i], high[i], 0x20);
      line[c + 8 + i] = _mm256_permute2x128_si256(low[i], high[i], 0x31);
    }
  }
}

/// Packs the leading columns of a full panel of two-byte weights; returns how many.
std::uint64_t pack_columns(const char* rows, std::uint64_t k, const std::uint64_t* start,
                           std::uint16_t* panel) {
  std::uint64_t i = 0;
  for (; i + 64 <= k; i += 64) {
    alignas(64) __m256i line[64];
    transpose_columns(rows + 2 * i, 2 * k, line);
    for (std::uint64_t lane = 0; lane < kFloatLanes; ++lane) {
      auto* out = reinterpret_cast<__m256i*>(panel + (start[lane] + i / kFloatLanes) * kPanel);
      _mm256_storeu_si256(out, line[lane]);
      _mm256_storeu_si256(out + 1, line[kFloatLanes + lane]);
    }
  }
  return i;
}

template <class Type>
void pack(const void* rows, std::uint64_t k, std::uint64_t n, std::uint64_t g0, std::uint64_t g1,
          void* packed) {
  using Block = typename Type::Block;
  std::uint64_t start[kFloatLanes];
  lane_starts(k, start);
  for (std::uint64_t g = g0; g < g1; ++g) {
    Block* panel = static_cast<Block*>(packed) + g * kPanel * k;
    const std::uint64_t n_here = n - g * kPanel < kPanel ? n - g * kPanel : kPanel;
    const char* first_row = static_cast<const char*>(rows) + g * kPanel * k * sizeof(Block);
    if (n_here < kPanel) std::memset(panel, 0, kPanel * k * sizeof(Block));
    std::uint64_t i = 0;
    if constexpr (sizeof(Block) == 2) {
      if (n_here == kPanel) i = pack_columns(first_row, k, start, panel);
    }
    for (; i < k; ++i) {
      Block* out = panel + (start[i % kFloatLanes] + i / kFloatLanes) * kPanel;
      const char* column = first_row + i * sizeof(Block);
      for (std::uint64_t r = 0; r < n_here; ++r) {
        std::memcpy(&out[r], column + r * k * sizeof(Block), sizeof(Block));
      }
    }
  }
}

template <class Type>
void decode_row(const void* packed, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t i,
                float* out) {
  std::uint64_t start[kFloatLanes];
  lane_starts(k, start);
  const auto* panel =
      static_cast<const typename Type::Block*>(packed) + i / kPanel * kPanel * k + i % kPanel;
  for (std::uint64_t j = 0; j < k; ++j) {
    out[j] = Type::widen(panel[(start[j % kFloatLanes] + j / kFloatLanes) * kPanel]);
  }
}

struct Tile {
  const void* weight;   ///< first panel
  const float* x;       ///< first row
  std::uint64_t x_row;  ///< floats from one row of x to the next
  std::uint64_t k;
  std::uint64_t n_outputs;  ///< of the panels' outputs, those that exist
  float* y;
  std::uint64_t y_row;
};

/// The tree over N sums that follow each other at `step` floats: neighbours first, because they
/// were visited in bit-reversed order.
template <int N>
[[gnu::always_inline]] inline __m256 tree_of(const float* sums, int step) {
  if constexpr (N == 1) {
    return _mm256_load_ps(sums);
  } else {
    return _mm256_add_ps(tree_of<N / 2>(sums, step), tree_of<N / 2>(sums + N / 2 * step, step));
  }
}

/// One panel times R rows of x; every canonical lane has at least one k. A chain begins with a bare
/// product: fma with +0 can differ from it in the sign of a zero only, which the + 0 at the end
/// takes away. Meanwhile the sums of the chain before are stored, one between two products: all of
/// them in a row between two chains cost some 25 cycles, 6 % at k = 2048.
template <class Type, int R>
void wide_tile(const Tile& t) {
  constexpr int kFloats = R * 16;
  constexpr int kInner = 8, kOuter = kFloatLanes / kInner;
  const std::uint64_t whole = t.k / kFloatLanes;
  const std::uint64_t longer = t.k % kFloatLanes;  // so many lanes have one k more
  const auto* w = static_cast<const typename Type::Block*>(t.weight);
  const float* x = t.x;
  const std::uint64_t x_row = t.x_row;
  alignas(64) float inner[kInner][kFloats];
  alignas(64) float outer[kOuter][kFloats];
  __m256 a[R][2];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) a[r][0] = a[r][1] = _mm256_setzero_ps();
  for (int step = 0; step < kFloatLanes; ++step) {
    float* sums = inner[(step + kInner - 1) % kInner];
    __m256 w0 = load8(Type{}, w);
    __m256 w1 = load8(Type{}, w + 8);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const __m256 xr = _mm256_broadcast_ss(x + r * x_row);
      _mm256_store_ps(sums + r * 16, a[r][0]);
      a[r][0] = _mm256_mul_ps(xr, w0);
      _mm256_store_ps(sums + r * 16 + 8, a[r][1]);
      a[r][1] = _mm256_mul_ps(xr, w1);
    }
    w += kPanel;
    ++x;
    if (step % kInner == 0 && step != 0) {
      float* out = outer[step / kInner - 1];
      for (int at = 0; at < kFloats; at += 8) {
        _mm256_store_ps(out + at, tree_of<kInner>(inner[0] + at, kFloats));
      }
    }
    for (std::uint64_t left = whole - (lane_at(step) < longer ? 0 : 1); left != 0; --left) {
      w0 = load8(Type{}, w);
      w1 = load8(Type{}, w + 8);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        const __m256 xr = _mm256_broadcast_ss(x + r * x_row);
        a[r][0] = _mm256_fmadd_ps(xr, w0, a[r][0]);
        a[r][1] = _mm256_fmadd_ps(xr, w1, a[r][1]);
      }
      w += kPanel;
      ++x;
    }
  }
  float* sums = inner[kInner - 1];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    _mm256_store_ps(sums + r * 16, a[r][0]);
    _mm256_store_ps(sums + r * 16 + 8, a[r][1]);
  }
  for (int r = 0; r < R; ++r) {
    for (std::uint64_t h = 0; h < 2 && 8 * h < t.n_outputs; ++h) {
      const int at = r * 16 + 8 * static_cast<int>(h);
      _mm256_store_ps(outer[kOuter - 1] + at, tree_of<kInner>(inner[0] + at, kFloats));
      const __m256 sum = tree_of<kOuter>(outer[0] + at, kFloats);
      store_first(t.y + static_cast<std::uint64_t>(r) * t.y_row + 8 * h, t.n_outputs - 8 * h,
                  _mm256_add_ps(sum, _mm256_setzero_ps()));
    }
  }
}

/// P panels times R rows of x.
template <class Type, int P, int R>
void tile(const Tile& t) {
  constexpr int kRegs = P * R * 2;
  const auto* w = static_cast<const typename Type::Block*>(t.weight);
  const float* x = t.x;
  alignas(32) float stack[kTreeLevels + 1][kRegs * 8];
  int depth = 0;
  for (int step = 0; step < kFloatLanes; ++step) {
    __m256 a[P][R][2];
    for (int p = 0; p < P; ++p) {
      for (int r = 0; r < R; ++r) a[p][r][0] = a[p][r][1] = _mm256_setzero_ps();
    }
    for (std::uint64_t left = lane_length(t.k, lane_at(step)); left != 0; --left) {
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const __m256 w0 = load8(Type{}, w + p * kPanel * t.k);
        const __m256 w1 = load8(Type{}, w + p * kPanel * t.k + 8);
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) {
          const __m256 xr = _mm256_broadcast_ss(x + r * t.x_row);
          a[p][r][0] = _mm256_fmadd_ps(xr, w0, a[p][r][0]);
          a[p][r][1] = _mm256_fmadd_ps(xr, w1, a[p][r][1]);
        }
      }
      w += kPanel;
      ++x;
    }
    // Each trailing one bit of `step` closes a subtree: earlier half + later half.
    __m256* flat = &a[0][0][0];
    for (int closed = step; (closed & 1) != 0; closed >>= 1) {
      --depth;
      for (int i = 0; i < kRegs; ++i) {
        flat[i] = _mm256_add_ps(_mm256_load_ps(stack[depth] + 8 * i), flat[i]);
      }
    }
    for (int i = 0; i < kRegs; ++i) _mm256_store_ps(stack[depth] + 8 * i, flat[i]);
    ++depth;
  }
  for (int p = 0; p < P; ++p) {
    for (int r = 0; r < R; ++r) {
      for (std::uint64_t h = 0; h < 2; ++h) {
        const std::uint64_t first = static_cast<std::uint64_t>(p) * kPanel + 8 * h;
        if (first >= t.n_outputs) continue;
        const float* sum = stack[0] + ((p * R + r) * 2 + static_cast<int>(h)) * 8;
        store_first(t.y + static_cast<std::uint64_t>(r) * t.y_row + first, t.n_outputs - first,
                    _mm256_add_ps(_mm256_load_ps(sum), _mm256_setzero_ps()));
      }
    }
  }
}

/// R rows of x times panels [g0, g1). Eight or more chains at a time hide the latency of fma.
template <class Type, int R>
void rows_block(const MatmulArgs& args, std::uint64_t row, std::uint64_t g0, std::uint64_t g1) {
  constexpr int kPanels = R == 1 ? 4 : R <= 3 ? 2 : 1;
  const void* x = static_cast<const char*>(args.x) + row * args.x_row_bytes;
  for (std::uint64_t g = g0; g < g1;) {
    const bool full = g + kPanels <= g1;
    const Tile t{static_cast<const typename Type::Block*>(args.weight) + g * kPanel * args.k,
                 static_cast<const float*>(x),
                 args.x_row_bytes / sizeof(float),
                 args.k,
                 args.n - g * kPanel,
                 args.y + row * args.n + g * kPanel,
                 args.n};
    if (kPanels == 1 && args.k >= kFloatLanes) {
      wide_tile<Type, R>(t);
    } else if (full) {
      tile<Type, kPanels, R>(t);
    } else {
      tile<Type, 1, R>(t);
    }
    g += full ? kPanels : 1;
  }
}

template <class Type>
void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  // With many rows a few panels stay in the cache while all rows pass over them.
  const std::uint64_t step = args->n_rows == 1 ? 4 : 2;
  for (std::uint64_t g = g0; g < g1; g += step) {
    const std::uint64_t end = g + step < g1 ? g + step : g1;
    for (std::uint32_t row = 0; row < args->n_rows;) {
      const std::uint32_t left = args->n_rows - row;
      switch (left) {
        case 1:
          rows_block<Type, 1>(*args, row, g, end);
          break;
        case 2:
          rows_block<Type, 2>(*args, row, g, end);
          break;
        case 3:
          rows_block<Type, 3>(*args, row, g, end);
          break;
        case 4:
          rows_block<Type, 4>(*args, row, g, end);
          break;
        case 5:
          rows_block<Type, 5>(*args, row, g, end);
          break;
        default:
          rows_block<Type, 6>(*args, row, g, end);
          break;
      }
      row += left < 6 ? left : 6;
    }
  }
}

template <class Type>
constexpr MatmulOps matmul_ops() {
  return {Type::kGgufId, InputForm::kFloat, kPanel,      packed_bytes<Type>,
          pack<Type>,    decode_row<Type>,  matmul<Type>};
}

}  // namespace

const MatmulOps kMatmulF32 = matmul_ops<TypeF32>();
const MatmulOps kMatmulF16 = matmul_ops<TypeF16>();
const MatmulOps kMatmulBF16 = matmul_ops<TypeBF16>();

std::uint64_t float_row_bytes(std::uint64_t k) { return (k * sizeof(float) + 63) / 64 * 64; }

bool prepare_float(const float* x, std::uint64_t k, void* row) {
  std::uint64_t start[kFloatLanes];
  lane_starts(k, start);
  __m256i largest = _mm256_setzero_si256();
  for (std::uint64_t i = 0; i < k; i += 8) {
    largest = _mm256_max_epu32(largest, magnitude_bits(load_padded(x + i, k - i)));
  }
  float* out = static_cast<float*>(row);
  for (std::uint64_t i = 0; i < k; ++i) out[start[i % kFloatLanes] + i / kFloatLanes] = x[i];
  return max_lane_u32(largest) < kInfBits;
}

}  // namespace detrun::kernels::avx2
