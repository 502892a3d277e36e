// Buffers and operators on one device. The model's forward pass calls this and nothing else.
// Every operator's bits are those of the arithmetic contract, on every backend, for every number
// of threads; rows are independent: a call with m rows equals m calls with one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "detrun/quant.h"

namespace detrun {

/// A matrix (n_rows, row_elems) as stored in a model file; the backend copies or borrows its bytes.
struct WeightView {
  std::string_view name;  ///< for errors
  QType type;
  std::uint64_t row_elems;          ///< K: length of the dot products
  std::uint64_t n_rows;             ///< N: outputs
  std::span<const std::byte> data;  ///< outlives the Weight
  /// Whether the prompt's rows are multiplied with it many at once, which profile cublas pins; not
  /// so the table of tokens and the output head.
  bool many_rows = true;
};

/// A matrix on the device in the layout of its kernels. Opaque.
class Weight {
 public:
  virtual ~Weight() = default;
};

/// fp32 values in the device's memory. Opaque; the CPU backend's is ordinary memory.
class Buffer {
 public:
  virtual ~Buffer() = default;
  std::uint64_t n_floats() const { return n_floats_; }

 protected:
  explicit Buffer(std::uint64_t n_floats) : n_floats_(n_floats) {}

 private:
  std::uint64_t n_floats_;
};

enum class KvType { kF16, kF32 };

struct KvShape {
  KvType type;
  std::uint32_t n_layers, n_ctx, n_kv_heads, head_dim;
};

/// What a backend remembers of the passes of one context, to do them again with less to say.
/// Opaque; null where a backend remembers nothing.
class PassMemory {
 public:
  virtual ~PassMemory() = default;
};

/// K (after RoPE) and V of every layer and position, stored rounded to `type`.
class KvCache {
 public:
  virtual ~KvCache() = default;
  /// Bytes of K then V of one layer and position, as stored: for tests of the matrix.
  virtual std::vector<std::byte> snapshot(std::uint32_t layer, std::uint32_t position) const = 0;
};

/// Rotation of pairs: adjacent (2i, 2i+1) as in Llama GGUF files, or halves (i, i + n/2).
enum class RopePairs { kAdjacent, kHalves };

struct RopeParams {
  RopePairs pairs;
  std::uint32_t rope_dim;  ///< leading elements of a head that rotate; even
  const Buffer* cos;       ///< (n_ctx, rope_dim / 2)
  const Buffer* sin;       ///< (n_ctx, rope_dim / 2)
};

struct AttentionParams {
  std::uint32_t n_heads, n_kv_heads, head_dim;
  float scale;  ///< contract clause 6
};

/// One product of several that share their input: y (rows, weight.n_rows) = x (rows, K) times
/// weight transposed, plus nothing.
struct MatmulTask {
  const Weight* weight;
  Buffer* y;
};

/// Something that the driver says of a GPU. Written down; decides about nothing.
struct DeviceFact {
  std::string name;  ///< "driver_version": those of detrun-fingerprint(1)
  std::variant<std::int64_t, std::string> value;
  bool operator==(const DeviceFact&) const = default;
};

/// A GPU as its driver describes it.
struct DeviceInfo {
  std::uint32_t index;         ///< as CUDA counts the devices that this process sees
  std::string name, uuid;      ///< "NVIDIA H200", "GPU-01234567-89ab-..."
  std::uint32_t major, minor;  ///< compute capability
  std::uint64_t memory_bytes;  ///< all there is, in use or not
  std::uint32_t n_multiprocessors;
  bool ecc;                     ///< error correction is on
  std::string driver, runtime;  ///< CUDA versions: "13.0"
  /// Of a GPU that a backend computes on, otherwise none: what NVML adds, or why it adds nothing.
  std::vector<DeviceFact> facts = {};
};

struct BackendInfo {
  std::string name;                 ///< "cpu", "cuda"; "cuda-emulated" in test programs
  std::string isa;                  ///< "scalar", "avx2", "sm_90"
  std::uint32_t n_threads;          ///< of the CPU; 1 where a device computes
  std::vector<std::uint32_t> cpus;  ///< the cores the threads are pinned to; empty: not pinned
  std::uint32_t fp_control_found;   ///< MXCSR (FPCR) as found at start, see FpControlScope
  std::optional<DeviceInfo> device = std::nullopt;
  bool graph = false;  ///< passes of one row are CUDA graphs, see run_pass
};

/// The memory that a backend's objects lie in.
struct BackendMemory {
  std::string where;    ///< for messages: "", " on device 0 (NVIDIA H200)"
  std::uint64_t total;  ///< bytes; no object is larger
  std::uint64_t free;   ///< bytes now; the total where nobody says
};

/// Most of everything that the passes of one context ask for.
struct PassShape {
  std::uint32_t rows, n_ctx;
  std::uint64_t row_floats;  ///< of the widest input of a product
  std::uint32_t n_heads, head_dim;
};

/// In what a pass of a context differs from another one, beside its values.
struct PassAt {
  const KvCache* cache;
  std::uint32_t rows, pos0;
  bool logits;  ///< whether it ends with the head
};

/// A product of many rows under profile cublas, as a run pins it: y (rows, n) = x (rows, k),
/// rounded to the type, times the weight transposed, summed in binary32 in the order of the
/// algorithm.
struct PinnedProduct {
  QType type;
  std::uint32_t n, k;
  std::array<std::byte, 64> algorithm;  ///< a cublasLtMatmulAlgo_t: opaque, of one version
  std::string description;              ///< the same for people; decides about nothing
  bool operator==(const PinnedProduct&) const = default;
};

/// All of them for the weights of one model, each shape and type once.
struct ProductPlan {
  std::string cublaslt;                 ///< version of cuBLASLt: "13.1.0"
  std::uint32_t rows;                   ///< of every product; fewer are filled up with zeros
  std::uint64_t workspace_bytes;        ///< that every product may use
  std::vector<PinnedProduct> products;  ///< ascending by type, n, k
  bool operator==(const ProductPlan&) const = default;
};

/// While it lives this thread computes as the contract says: nearest even, subnormals kept. Every
/// operator of a Backend has its own; code that computes outside of one (sampling) takes one too.
class FpControlScope {
 public:
  FpControlScope();
  ~FpControlScope();
  FpControlScope(const FpControlScope&) = delete;
  FpControlScope& operator=(const FpControlScope&) = delete;
  /// MXCSR (FPCR) before, without its sticky status flags.
  std::uint32_t found() const;

 private:
  std::uint64_t saved_;
};

/// What the machine of a backend does at most of one kind of work: what a figure of speed is
/// compared with. Every call measures anew, some hundredths of a second long. Error kInternal when
/// the device fails.
class Ceilings {
 public:
  virtual ~Ceilings() = default;
  virtual std::string_view loops() const = 0;  ///< "avx2", "neon", "scalar"; of a GPU "sm_90"
  /// What memory_bytes_per_s does: "read", or "copy", where bytes read and bytes written count.
  virtual std::string_view memory_work() const = 0;
  virtual double memory_bytes_per_s() = 0;
  virtual double fma_flops_per_s() = 0;  ///< binary32; a fused multiply-add counts two
  virtual double int8_ops_per_s() = 0;   ///< 8-bit products added up; a multiply-add counts two
};

/// Operators throw Error kInternal for what only the data can show: K or V that overflows f16
/// (hint: --kv f32), activations that are not finite. Messages name the operator. A device runs
/// behind its caller: there such an Error comes from the next download() or synchronize() and
/// names nothing; has_unplaced_error() tells, and the same calls after place_errors(true) throw
/// the Error of the operator.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const BackendInfo& info() const = 0;
  virtual BackendMemory memory() const = 0;

  /// Of this processor with the threads of this backend, or of this device. Error kInternal when
  /// the memory it takes (hundreds of megabytes) is not there.
  virtual std::unique_ptr<Ceilings> make_ceilings() const = 0;

  /// Waits for every operator called so far. Errors as theirs.
  virtual void synchronize() {}
  /// The last Error was about values, and did not say whose.
  virtual bool has_unplaced_error() const { return false; }
  /// While on, an operator waits and throws its own Error. Slow; no influence on any bit.
  virtual void place_errors(bool /*on*/) {}
  /// Bytes of memory that such a matrix takes; 0 where nobody needs to ask before.
  virtual std::uint64_t weight_bytes(QType /*type*/, std::uint64_t /*n_rows*/,
                                     std::uint64_t /*row_elems*/) const {
    return 0;
  }
  /// Bytes of scratch for passes of this shape with the weights loaded so far, and making it, so
  /// that passes allocate nothing and none fails for lack of memory.
  virtual std::uint64_t scratch_bytes(const PassShape& /*shape*/) const { return 0; }
  virtual void reserve(const PassShape& /*shape*/) {}

  /// Version of the library of profile cublas: "13.1.0". Error kUsage: there is none here, and why,
  /// or a setting of the environment changes what it computes; kInternal: it does not start.
  virtual std::string product_library();
  /// Profile cublas: from now on products of 2 to `rows` rows, and there are none of more, are
  /// cuBLASLt's, by algorithms that it chooses here for the weights loaded so far that are used so.
  /// Contract clauses 1 to 3 do not hold for them; rows stay independent. Error kUsage: as above,
  /// or a type it does not multiply; kInternal: the library fails.
  virtual ProductPlan pin_products(std::uint32_t rows);
  /// The same with the algorithms of a recorded run; nullptr: the contract's own products again.
  /// Errors: the same; kInconclusive: what the plan holds cannot be computed here, and why.
  virtual void use_products(const ProductPlan* plan);
  /// Computes every pinned product of the same numbers `times` times. Error kInternal, which names
  /// the product, when two results differ in a bit.
  virtual void test_products(std::uint32_t times);

  /// Of one context, which asks for it once.
  virtual std::unique_ptr<PassMemory> new_pass_memory() { return nullptr; }
  /// Does what `operators` does, which calls operators and nothing else of this backend: the same
  /// ones on the same buffers, cache and weights for the same rows and logits, only at other
  /// positions. A device may remember in `memory` what they queued and do that again without
  /// calling them. No influence on any bit.
  virtual void run_pass(PassMemory* /*memory*/, const PassAt& /*at*/,
                        const std::function<void()>& operators) {
    operators();
  }

  /// Checks that every weight or block scale is finite (Error kUsage naming the tensor), then lays
  /// the matrix out for the kernels.
  virtual std::unique_ptr<Weight> load_weight(const WeightView& view) = 0;
  /// Whether make_up_weight makes a matrix of this type.
  virtual bool makes_up(QType /*type*/) const { return false; }
  /// What load_weight would make of the bytes that make_up_blocks (detrun/quant.h) gives for the
  /// key, made where it will lie: for measuring speed. The bytes of the view are not read. nullptr
  /// unless makes_up(view.type). Errors: load_weight's about sizes and memory.
  virtual std::unique_ptr<Weight> make_up_weight(const WeightView& /*view*/,
                                                 std::uint64_t /*key*/) {
    return nullptr;
  }
  virtual std::unique_ptr<Buffer> new_buffer(std::uint64_t n_floats) = 0;
  virtual std::unique_ptr<KvCache> new_kv_cache(const KvShape& shape) = 0;
  virtual void upload(Buffer& to, std::span<const float> from) = 0;
  /// Copies `out.size()` floats starting at `offset`.
  virtual void download(const Buffer& from, std::uint64_t offset, std::span<float> out) = 0;

  /// out (tokens, K) = rows of the table, decoded exactly.
  virtual void embed(const Weight& table, std::span<const std::int32_t> tokens, Buffer& out) = 0;
  /// Contract clauses 1 to 3, but see pin_products. x (rows, K). What lies behind the rows of an
  /// output may change.
  virtual void matmul(std::span<const MatmulTask> tasks, const Buffer& x, std::uint32_t rows) = 0;
  /// Contract clause 5. x, y (rows, n); weight (n). y may be x. Error when a sum of squares is not
  /// finite: a row of zeros would follow in silence.
  virtual void rmsnorm(const Buffer& x, const Buffer& weight, float eps, std::uint32_t rows,
                       std::uint32_t n, Buffer& y) = 0;
  /// Contract clause 8, in place. x (rows, n_heads, head_dim); row r is at position pos0 + r.
  virtual void rope(Buffer& x, const RopeParams& params, std::uint32_t rows, std::uint32_t n_heads,
                    std::uint32_t head_dim, std::uint32_t pos0) = 0;
  /// Contract clause 7. k, v (rows, n_kv_heads, head_dim) to positions pos0 + r of a layer.
  virtual void kv_write(KvCache& cache, std::uint32_t layer, const Buffer& k, const Buffer& v,
                        std::uint32_t rows, std::uint32_t pos0) = 0;
  /// Contract clause 6. q, out (rows, n_heads, head_dim); row r sees positions 0 .. pos0 + r.
  virtual void attention(const Buffer& q, const KvCache& cache, std::uint32_t layer,
                         const AttentionParams& params, std::uint32_t rows, std::uint32_t pos0,
                         Buffer& out) = 0;
  /// gate = silu(gate) * up, elementwise (rows * n).
  virtual void silu_mul(Buffer& gate, const Buffer& up, std::uint64_t n) = 0;
  /// x = x + y, elementwise.
  virtual void add(Buffer& x, const Buffer& y, std::uint64_t n) = 0;
};

/// How a model stretches the positions it was trained with. YaRN: Peng, Quesnelle, Fan, Shippole
/// (2023), "YaRN: efficient context window extension of large language models".
enum class RopeScaling { kNone, kLinear, kYarn };

/// What the RoPE tables are made of (contract clause 8). Computed on the host in binary64 by our
/// own polynomials, rounded once to binary32.
struct RopeTableSpec {
  std::uint32_t rope_dim;               ///< even
  double theta;                         ///< base frequency
  std::span<const float> freq_factors;  ///< (rope_dim / 2) divisors, or empty
  RopeScaling scaling = RopeScaling::kNone;
  double scaling_factor = 1.0;    ///< F of linear and YaRN; YaRN: 1 or more
  double original_context = 0.0;  ///< YaRN: positions the model was trained with
  double beta_fast = 32.0;        ///< YaRN: rotations from which on a frequency is kept
  double beta_slow = 1.0;         ///< YaRN: rotations below which a frequency is divided by F
  double attention_factor = 1.0;  ///< multiplies cos and sin
};
/// cos, sin: (n_positions, rope_dim / 2) each. Error kUsage for values no model can mean.
void make_rope_tables(const RopeTableSpec& spec, std::uint32_t n_positions, std::span<float> cos,
                      std::span<float> sin);

/// The cores the calling thread may run on, ascending; counted from 0 where the system does not
/// say.
std::vector<std::uint32_t> allowed_cpus();

struct CpuOptions {
  std::uint32_t n_threads = 0;  ///< 0: one per core this process may run on
  std::string isa;              ///< empty: DETRUN_CPU_ISA, or the best that passes its self-test
};

/// Error kUsage for an unknown instruction set or one this CPU lacks (the known ones are named).
/// An instruction set whose known-answer test fails is skipped with a warning; asked for by name,
/// it is Error kInternal.
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

struct CudaOptions {
  std::string device = {};  ///< an index, or a UUID as nvidia-smi prints it; empty: device 0
  /// Passes of one row as CUDA graphs; never while $CUDA_LAUNCH_BLOCKING wants every launch waited
  /// for. No influence on any bit.
  bool graph = true;
};
/// Name of the CUDA backend that this program was linked with: "cuda"; "cuda-emulated" in test
/// programs; empty: none. Asks no driver.
std::string cuda_backend_name();
/// What this program can do with CUDA, here and now. Starts the driver, which takes a while.
struct CudaSupport {
  bool usable = false;  ///< make_cuda_backend without a device named would find one
  std::string text;     ///< one line: the device, or why there is none
};
CudaSupport cuda_support();
/// Error kUsage: built without CUDA, no driver, no such device, a device too old or divided (MIG);
/// kInternal: the driver fails.
void require_cuda_device(const CudaOptions& options);
/// Errors: the same. A program links one of three libraries that have these functions: with the
/// CUDA runtime, with its emulation (test programs), with neither.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options);

/// The ceilings of this processor, of all threads at once with the best loops that it has; memory
/// is read: four streams a thread, huge pages, no prefetch. `n_threads` 0 as in CpuOptions. Error
/// kInternal when `buffer_bytes` of memory are not there; bandwidth means nothing for a buffer that
/// caches hold.
std::unique_ptr<Ceilings> make_cpu_ceilings(std::uint32_t n_threads, std::uint64_t buffer_bytes);

/// Instruction sets built into this binary that this CPU has, best first, "scalar" last.
std::vector<std::string> available_cpu_isas();
/// CUDA architectures the kernels were compiled for ("sm_75 sm_80 ..."), empty without CUDA.
std::string cuda_build_description();

}  // namespace detrun
