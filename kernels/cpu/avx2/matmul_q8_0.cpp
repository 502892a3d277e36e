// Products with Q8_0 weights, contract clause 3: lane of the register = output.
//
// Eight rows of the matrix are interleaved: a packed block holds eight scales, then for each run of
// four k the four int8 of row 0, of row 1, ...: as many bytes as in the file. The int32 sums are
// exact, so their order is free; the eight canonical lanes are eight accumulators visited in turn.
#include "kernels/cpu/avx2/avx2.h"
#include "kernels/cpu/avx2/lanes.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/quant/q8_0.h"

namespace detrun::kernels::avx2 {

namespace {

constexpr std::uint64_t kGroup = 8;  // outputs packed together
constexpr int kRuns = 8;             // runs of four k in a block of 32

struct PackedBlock {
  std::uint16_t d[kGroup];
  std::int8_t q[kRuns][kGroup][4];
};
static_assert(sizeof(PackedBlock) == kGroup * sizeof(BlockQ8_0), "no byte more than the file");

std::uint64_t packed_bytes(std::uint64_t k, std::uint64_t n) {
  return (n + kGroup - 1) / kGroup * (k / TypeQ8_0::kBlockElems) * sizeof(PackedBlock);
}

void pack(const void* rows, std::uint64_t k, std::uint64_t n, std::uint64_t g0, std::uint64_t g1,
          void* packed) {
  const std::uint64_t n_blocks = k / TypeQ8_0::kBlockElems;
  const std::uint64_t row_bytes = n_blocks * sizeof(BlockQ8_0);
  for (std::uint64_t g = g0; g < g1; ++g) {
    PackedBlock* group = static_cast<PackedBlock*>(packed) + g * n_blocks;
    const char* first_row = static_cast<const char*>(rows) + g * kGroup * row_bytes;
    const std::uint64_t n_here = n - g * kGroup < kGroup ? n - g * kGroup : kGroup;
    for (std::uint64_t b = 0; b < n_blocks; ++b) {
      for (std::uint64_t r = 0; r < kGroup; ++r) {
        BlockQ8_0 block = {};  // outputs beyond n are computed and dropped
        const char* from = first_row + r * row_bytes + b * sizeof block;
        if (r < n_here) std::memcpy(&block, from, sizeof block);
        group[b].d[r] = block.d;
        for (int run = 0; run < kRuns; ++run) std::memcpy(group[b].q[run][r], block.q + 4 * run, 4);
      }
    }
  }
}

void decode_row(const void* packed, std::uint64_t k, std::uint64_t /*n*/, std::uint64_t i,
                float* out) {
  const std::uint64_t n_blocks = k / TypeQ8_0::kBlockElems;
  const PackedBlock* group = static_cast<const PackedBlock*>(packed) + i / kGroup * n_blocks;
  const std::uint64_t r = i % kGroup;
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    BlockQ8_0 block;
    block.d = group[b].d[r];
    for (int run = 0; run < kRuns; ++run) std::memcpy(block.q + 4 * run, group[b].q[run][r], 4);
    TypeQ8_0::decode(block, out + b * TypeQ8_0::kBlockElems);
  }
}

inline __m256i broadcast4(const std::int8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, sizeof four);
  return _mm256_set1_epi32(four);
}

/// G groups of outputs times R rows of x, from `row` and group `g`.
template <int G, int R>
void tile(const MatmulArgs& args, std::uint64_t row, std::uint64_t g) {
  const std::uint64_t n_blocks = args.k / TypeQ8_0::kBlockElems;
  const PackedBlock* w = static_cast<const PackedBlock*>(args.weight) + g * n_blocks;
  QuantizedRow x[R];
  for (int r = 0; r < R; ++r) {
    const std::uint64_t offset = (row + static_cast<std::uint64_t>(r)) * args.x_row_bytes;
    x[r] = quantized_row(static_cast<const char*>(args.x) + offset, args.k);
  }
  const __m256i ones = _mm256_set1_epi16(1);
  __m256 a[kQuantLanes][G][R];
  for (auto& lane : a) {
    for (auto& group : lane) {
      for (auto& v : group) v = _mm256_setzero_ps();
    }
  }
  for (std::uint64_t b = 0; b < n_blocks; ++b) {
    __m256i sum[G][R];
    for (auto& group : sum) {
      for (auto& v : group) v = _mm256_setzero_si256();
    }
#pragma GCC unroll 8
    for (int run = 0; run < kRuns; ++run) {
      __m256i xq[R];
      for (int r = 0; r < R; ++r) xq[r] = broadcast4(x[r].q + b * kActivationBlock + 4 * run);
#pragma GCC unroll 4
      for (std::uint64_t i = 0; i < G; ++i) {
        // |w| * (x with w's sign): w may be -128, x never is, so no pair leaves int16.
        const std::int8_t* q = &w[i * n_blocks + b].q[run][0][0];
        const __m256i wq = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
        const __m256i abs_w = _mm256_abs_epi8(wq);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const __m256i pairs = _mm256_maddubs_epi16(abs_w, _mm256_sign_epi8(xq[r], wq));
          sum[i][r] = _mm256_add_epi32(sum[i][r], _mm256_madd_epi16(pairs, ones));
        }
      }
    }
#pragma GCC unroll 4
    for (std::uint64_t i = 0; i < G; ++i) {
      const __m256 dw = load8(TypeF16{}, w[i * n_blocks + b].d);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256 e = _mm256_fmadd_ps(_mm256_broadcast_ss(x[r].d + b),
                                         _mm256_cvtepi32_ps(sum[i][r]), _mm256_setzero_ps());
        __m256& lane = a[b % kQuantLanes][i][r];
        lane = _mm256_fmadd_ps(dw, e, lane);
      }
    }
  }
  for (std::uint64_t i = 0; i < G; ++i) {
    const std::uint64_t first = (g + i) * kGroup;
    for (int r = 0; r < R; ++r) {
      for (int off = kQuantLanes / 2; off >= 1; off /= 2) {
        for (int l = 0; l < off; ++l) a[l][i][r] = _mm256_add_ps(a[l][i][r], a[l + off][i][r]);
      }
      store_first(args.y + (row + static_cast<std::uint64_t>(r)) * args.n + first, args.n - first,
                  _mm256_add_ps(a[0][i][r], _mm256_setzero_ps()));
    }
  }
}

/// One row reads four groups at a time: four streams from memory.
void one_row(const MatmulArgs& args, std::uint64_t row, std::uint64_t g0, std::uint64_t g1) {
  std::uint64_t g = g0;
  for (; g + 4 <= g1; g += 4) tile<4, 1>(args, row, g);
  for (; g < g1; ++g) tile<1, 1>(args, row, g);
}

void matmul(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
  if (args->n_rows == 1) {
    one_row(*args, 0, g0, g1);
    return;
  }
  for (std::uint64_t g = g0; g < g1; ++g) {  // a group stays in the cache for all rows
    std::uint32_t row = 0;
    for (; row + 4 <= args->n_rows; row += 4) tile<1, 4>(*args, row, g);
    switch (args->n_rows - row) {
      case 1:
        tile<1, 1>(*args, row, g);
        break;
      case 2:
        tile<1, 2>(*args, row, g);
        break;
      case 3:
        tile<1, 3>(*args, row, g);
        break;
      default:
        break;
    }
  }
}

}  // namespace

const MatmulOps kMatmulQ8_0 = {
    TypeQ8_0::kGgufId, InputForm::kQuantized, kGroup, packed_bytes, pack, decode_row, matmul};

}  // namespace detrun::kernels::avx2
