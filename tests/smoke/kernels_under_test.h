// Every operator that has a CUDA kernel, over many rows, host memory in and out: what a case of the
// smoke test calls. Two implementations: an instruction set of the CPU (the reference) and the
// launchers of kernels/cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/ops.h"
#include "kernels/cuda/attention_input.h"

namespace detrun::smoke {

using Floats = std::vector<float>;

/// A weight matrix (n, k) as a file holds it.
struct Matrix {
  std::uint32_t gguf_id;
  std::uint64_t n, k;
  std::vector<std::byte> bytes;
};

struct Quantized {
  std::vector<std::int8_t> quants;
  Floats scales, sums;
  std::vector<std::int16_t> half_sums;
  bool finite;
};

/// Operators in two forms that must agree: for one row (GEMV; attention split over blocks) and for
/// many (GEMM; attention in one pass).
enum class Form { kVector, kMatrix };

/// cuda::AttentionInput with pointers of the host, and what they point to.
struct Attention {
  Floats q, sinks;              ///< sinks may be empty
  std::vector<std::byte> k, v;  ///< (n_positions, n_kv_heads, head_dim)
  bool f16;
  std::vector<unsigned> first_visible, n_visible;
  unsigned n_positions, n_heads, n_kv_heads, head_dim;
  float scale, softcap;
};

enum class Pairs { kAdjacent, kHalves };
struct Rope {
  Floats x, cos, sin;  ///< (n_rows, n_heads, head_dim); (n_rows, rope_dim / 2)
  unsigned n_rows, n_heads, head_dim, rope_dim;
  Pairs pairs;
};

struct Norm {
  Floats x, weight, bias;  ///< (n_rows, n), (n), (n) or empty
  float eps;
  unsigned n_rows, n;
};

enum class Elementwise { kAdd, kMul, kScale, kAddScaled, kSiluMul, kSoftcap };

struct Choices {
  std::vector<int> ids;
  Floats largest, margins, logprobs;
};

class Kernels {
 public:
  virtual ~Kernels() = default;
  /// Whether the type has a product here.
  virtual bool has_product(std::uint32_t gguf_id) const = 0;
  /// y (m, n) = x (m, k) times the matrix, activations quantized where the type wants it.
  virtual Floats product(const Matrix& weight, const Floats& x, std::uint64_t m, Form form) = 0;
  virtual Floats embed(const Matrix& matrix, const std::vector<int>& ids) = 0;
  /// The same of a matrix that is made up from a key: its bytes, which a device does not read.
  virtual Floats embed_made_up(const Matrix& matrix, std::uint64_t key,
                               const std::vector<int>& ids) = 0;
  virtual Quantized quantize(const Floats& x) = 0;
  virtual Floats attention(const Attention& in, Form form) = 0;
  virtual Floats rmsnorm(const Norm& in) = 0;
  virtual Floats layernorm(const Norm& in) = 0;
  virtual Floats rope(const Rope& in) = 0;
  /// Binary16 patterns, or binary32 ones.
  virtual std::vector<std::uint16_t> kv_write_f16(const Floats& x) = 0;
  virtual Floats kv_write_f32(const Floats& x) = 0;
  /// x rounded to binary16, to bfloat16, or checked, and `padding` zeros behind it; empty when a
  /// value does not fit.
  virtual std::vector<std::uint16_t> round_f16(const Floats& x, std::size_t padding) = 0;
  virtual std::vector<std::uint16_t> round_bf16(const Floats& x, std::size_t padding) = 0;
  virtual Floats round_f32(const Floats& x, std::size_t padding) = 0;
  virtual Floats elementwise(Elementwise op, const Floats& x, const Floats& y, float factor) = 0;
  virtual Floats function(kernels::Function f, const Floats& x) = 0;
  /// Rows of n logits.
  virtual Choices choose(const Floats& logits, std::uint64_t n) = 0;
};

std::unique_ptr<Kernels> make_cpu_kernels(const kernels::CpuOps& ops);
std::unique_ptr<Kernels> make_device_kernels();

/// A product's activations as the CPU's `prepare` leaves them.
struct PreparedRows {
  const void* rows;
  std::uint64_t row_bytes, m;
};
/// One of the device's products on prepared rows: y (m, n).
Floats device_product(std::uint32_t gguf_id, const std::byte* matrix, std::uint64_t n,
                      std::uint64_t k, PreparedRows x, Form form);
bool device_has_product(std::uint32_t gguf_id);
/// Whether its `rows` are floats, not quantized rows.
bool device_takes_floats(std::uint32_t gguf_id);
Floats device_embed(std::uint32_t gguf_id, const std::byte* matrix, std::uint64_t n,
                    std::uint64_t k, const std::vector<int>& ids);

Floats device_embed_made_up(std::uint32_t gguf_id, std::uint64_t n, std::uint64_t k,
                            std::uint64_t key, const std::vector<int>& ids);

/// The device as an instruction set: the table that the known-answer self-test and the golden cases
/// run on. One row at a time; the form decides GEMV or GEMM, split or one-pass attention. What has
/// no kernel (packing, checking floats) is the scalar reference's.
const kernels::CpuOps& device_ops(Form form);

}  // namespace detrun::smoke
