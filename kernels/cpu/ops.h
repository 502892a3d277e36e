// The one table of function pointers that an instruction set fills: every operator of the contract
// on a CPU. PODs and pointers, no STL, no words of models. kernels/cpu/scalar is the reference.
//
// Every function is a pure function of its arguments and works on a slice of the outputs, so that
// the caller may split outputs between threads. Sizes are checked by the caller.
#pragma once

#include <cstddef>
#include <cstdint>

namespace detrun::kernels {

/// The form in which a matmul reads its activations.
enum class InputForm : int { kFloat = 0, kQuantized = 1 };
constexpr int kInputForms = 2;

/// Prepares one row of activations; done once, read by every matmul of that form.
struct InputOps {
  /// Bytes of a prepared row of k elements, a multiple of 64.
  std::uint64_t (*row_bytes)(std::uint64_t k);
  /// False when an element is not finite; then `row` is unspecified. `row` is 64-byte aligned.
  bool (*prepare)(const float* x, std::uint64_t k, void* row);
};

struct MatmulArgs {
  const void* weight;         ///< packed by `pack`
  const void* x;              ///< prepared rows
  std::uint64_t x_row_bytes;  ///< distance between them
  std::uint32_t n_rows;       ///< rows of x
  std::uint64_t k;            ///< length of the dot products
  std::uint64_t n;            ///< outputs a row
  float* y;                   ///< (n_rows, n)
};

/// Everything about one tensor type as a matrix (n, k). Outputs come in groups of `group`.
struct MatmulOps {
  std::uint32_t gguf_id;
  InputForm input;
  std::uint32_t group;  ///< outputs packed together
  std::uint64_t (*packed_bytes)(std::uint64_t k, std::uint64_t n);
  /// Packs groups [g0, g1); `rows` is the whole matrix as in the file, any alignment.
  void (*pack)(const void* rows, std::uint64_t k, std::uint64_t n, std::uint64_t g0,
               std::uint64_t g1, void* packed);
  /// Row i of the packed matrix, decoded exactly: k floats.
  void (*decode_row)(const void* packed, std::uint64_t k, std::uint64_t n, std::uint64_t i,
                     float* out);
  /// Outputs of groups [g0, g1) for every row of x. Contract clauses 1 and 3.
  void (*matmul)(const MatmulArgs* args, std::uint64_t g0, std::uint64_t g1);
};

/// One query head against the cached positions of its kv head. Contract clause 6.
struct AttentionArgs {
  const float* q;  ///< (head_dim)
  const void* k;   ///< position 0 of the kv head; f16 or f32
  const void* v;
  /// Elements from one position to the next: a multiple of 8; those beyond head_dim are zero.
  std::uint64_t stride;
  std::uint32_t head_dim;
  /// Positions first_visible .. n_visible - 1 are visible; at least one. Blocks of 64 stay those of
  /// absolute positions; a block without a visible position is skipped.
  std::uint32_t n_visible;
  std::uint32_t first_visible;
  float scale;
  float softcap;      ///< s = softcap * tanh(s / softcap) after the scale; 0: none
  const float* sink;  ///< the head's attention sink, one value; nullptr: none
  float* scratch;     ///< attention_scratch_floats(head_dim), 64-byte aligned
  float* out;         ///< (head_dim)
};

/// At most this many rows times heads make a tile.
constexpr std::uint32_t kAttentionTileSlots = 96;

/// Several rows and heads that share a kv head: row r and head h as AttentionArgs with
/// n_visible + r. Contract clause 6; the bits are those of the one-row form.
struct AttentionTileArgs {
  const float* q;            ///< first row, first head; the next head is head_dim floats on
  std::uint64_t row_floats;  ///< from one row to the next, in q and in out
  std::uint32_t n_rows, n_heads;
  const void* k;  ///< as in AttentionArgs
  const void* v;
  std::uint64_t stride;
  std::uint32_t head_dim;
  std::uint32_t n_visible;  ///< of the first row: positions 0 .. n_visible - 1
  std::uint32_t window;     ///< a row sees only the last `window` of its positions; 0: all
  float scale;
  float softcap;
  const float* sinks;  ///< (n_heads) or nullptr
  float* scratch;      ///< attention_tile_scratch_floats(head_dim), 64-byte aligned
  float* out;          ///< like q
};

/// Floats of the state (m, l, o) of one block alone: m at 0, l at 1, o (head_dim) from 8 on. l is 0
/// only where a row sees no position of the block; then m and o mean nothing.
constexpr std::uint64_t attention_state_floats(std::uint32_t head_dim) {
  return 8 + (std::uint64_t{head_dim} + 7) / 8 * 8;
}

/// The states of one row and head, block after block, merged as clause 6 says.
struct AttentionMergeArgs {
  const float* states;  ///< of the first block, 32-byte aligned
  std::uint64_t step;   ///< floats from one block's state to the next one's
  std::uint32_t n_blocks, head_dim;
  const float* sink;  ///< one value; nullptr: none
  float* scratch;     ///< attention_tile_scratch_floats(head_dim), 64-byte aligned
  float* out;         ///< (head_dim)
};

/// One row, (n_heads, head_dim), rotated in place. Contract clause 8.
struct RopeArgs {
  float* x;
  std::uint32_t n_heads, head_dim, rope_dim;
  const float* cos;  ///< (rope_dim / 2) of this row's position
  const float* sin;
};

/// The elementwise functions of contract clause 4.
enum class Function : int {
  kExp = 0,
  kLog,
  kTanh,
  kErf,
  kSigmoid,
  kSilu,
  kGeluTanh,
  kGeluErf,
};
constexpr int kFunctions = 8;

struct CpuOps {
  const char* name;
  InputOps inputs[kInputForms];
  const MatmulOps* const* matmuls;
  std::size_t n_matmuls;

  /// Contract clause 5; y may be x. False when the sum of squares is not finite.
  bool (*rmsnorm)(const float* x, const float* weight, float eps, std::uint64_t n, float* y);
  void (*rope_adjacent)(const RopeArgs* args);
  void (*rope_halves)(const RopeArgs* args);
  /// Clause 7. False when a value does not fit (or, for f32, is not finite).
  bool (*kv_write_f16)(const float* x, std::uint64_t n, std::uint16_t* out);
  bool (*kv_write_f32)(const float* x, std::uint64_t n, float* out);
  std::uint64_t (*attention_scratch_floats)(std::uint32_t head_dim);
  void (*attention_f16)(const AttentionArgs* args);
  void (*attention_f32)(const AttentionArgs* args);
  std::uint64_t (*attention_tile_scratch_floats)(std::uint32_t head_dim);
  void (*attention_tile_f16)(const AttentionTileArgs* args);
  void (*attention_tile_f32)(const AttentionTileArgs* args);
  /// States of blocks [b0, b1), each by itself, for every slot of the tile: (b1 - b0, n_rows *
  /// n_heads, attention_state_floats(head_dim)), 32-byte aligned; sinks and out are not read.
  /// Blocks of different calls, merged, give the bits of the tile. nullptr: never split here.
  void (*attention_blocks_f16)(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                               float* states);
  void (*attention_blocks_f32)(const AttentionTileArgs* args, std::uint32_t b0, std::uint32_t b1,
                               float* states);
  void (*attention_merge)(const AttentionMergeArgs* args);
  /// Clause 5; bias may be nullptr, y may be x. False when the sum of squares is not finite.
  bool (*layernorm)(const float* x, const float* weight, const float* bias, float eps,
                    std::uint64_t n, float* y);
  void (*silu_mul)(float* gate, const float* up, std::uint64_t n);  ///< gate = silu(gate) * up
  void (*add)(float* x, const float* y, std::uint64_t n);           ///< x = x + y
  void (*mul)(float* x, const float* y, std::uint64_t n);           ///< x = x * y
  void (*scale)(float* x, float factor, std::uint64_t n);           ///< x = x * factor
  void (*add_scaled)(float* x, const float* y, float factor,
                     std::uint64_t n);                    ///< fma(factor, y, x)
  void (*softcap)(float* x, float cap, std::uint64_t n);  ///< x = cap * tanh(x / cap)
  /// y[i] = f(x[i]) for the functions of clause 4, indexed by Function; y may be x.
  void (*functions[kFunctions])(const float* x, std::uint64_t n, float* y);
};

namespace scalar {
extern const CpuOps kOps;
}
namespace avx2 {
extern const CpuOps kOps;  ///< only where the build targets x86-64
}
namespace neon {
extern const CpuOps kOps;         ///< only where the build targets AArch64
extern const CpuOps kOpsDotprod;  ///< for processors with the dot product extension
}  // namespace neon

}  // namespace detrun::kernels
