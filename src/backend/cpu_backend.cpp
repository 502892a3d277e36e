// The CPU backend: sizes are checked here, outputs are split between threads here, arithmetic is in
// the kernels of the chosen instruction set. Which thread computes an output never changes it.
#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cpu_attention.h"
#include "backend/cpu_kv_cache.h"
#include "backend/cpu_matmul_plan.h"
#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "backend/cpu_weight.h"
#include "backend/operator_errors.h"
#include "backend/own_objects.h"
#include "backend/thread_pool.h"
#include "detrun/backend.h"
#include "detrun/error.h"
#include "kernels/contract.h"

namespace detrun {
namespace {

using kernels::CpuOps;

constexpr std::uint32_t kThreadsMax = 1024;
constexpr std::uint64_t kCeilingBufferBytes = std::uint64_t{256} << 20U;
// Below this many multiplications a job is not worth waking a thread for.
constexpr std::uint64_t kSerialMuls = 65536;
constexpr std::uint32_t kElementwiseChunk = 8192;
constexpr std::uint32_t kFunctionChunk = 1024;  // elements of the functions of clause 4

struct CpuBuffer final : Buffer {
  explicit CpuBuffer(std::uint64_t n_floats)
      : Buffer(n_floats), memory(float_bytes(n_floats), "a buffer") {}
  float* data() { return memory.as<float>(); }
  const float* data() const { return memory.as<float>(); }
  CpuMemory memory;
};

float* floats(Buffer& buffer, std::uint64_t n) {
  DETRUN_CHECK(n <= buffer.n_floats());
  return cast<CpuBuffer>(buffer).data();
}
const float* floats(const Buffer& buffer, std::uint64_t n) {
  DETRUN_CHECK(n <= buffer.n_floats());
  return cast<const CpuBuffer>(buffer).data();
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const CpuOps& ops, std::unique_ptr<ThreadPool> pool)
      : ops_(ops), pool_(std::move(pool)), attention_(ops, *pool_) {
    info_.name = "cpu";
    info_.isa = ops.name;
    info_.n_threads = pool_->n_threads();
    info_.cpus = pool_->pinned_cpus();
    info_.fp_control_found = FpControlScope().found();
  }

  const BackendInfo& info() const override { return info_; }
  BackendMemory memory() const override;
  std::unique_ptr<Ceilings> make_ceilings() const override {
    return make_cpu_ceilings(pool_->n_threads(), kCeilingBufferBytes);
  }
  std::unique_ptr<Weight> load_weight(const WeightView& view) override;
  std::unique_ptr<Buffer> new_buffer(std::uint64_t n_floats) override;
  std::unique_ptr<KvCache> new_kv_cache(const KvShape& shape) override;
  void upload(Buffer& to, std::span<const float> from) override;
  void download(const Buffer& from, std::uint64_t offset, std::span<float> out) override;
  void embed(const Weight& table, std::span<const std::int32_t> tokens, Buffer& out) override;
  void matmul(std::span<const MatmulTask> tasks, const Buffer& x, std::uint32_t rows) override;
  void rmsnorm(const Buffer& x, const Buffer& weight, float eps, std::uint32_t rows,
               std::uint32_t n, Buffer& y) override;
  void rope(Buffer& x, const RopeParams& params, std::uint32_t rows, std::uint32_t n_heads,
            std::uint32_t head_dim, std::uint32_t pos0) override;
  void kv_write(KvCache& cache, std::uint32_t layer, const Buffer& k, const Buffer& v,
                std::uint32_t rows, std::uint32_t pos0) override;
  void attention(const Buffer& q, const KvCache& cache, std::uint32_t layer,
                 const AttentionParams& params, std::uint32_t rows, std::uint32_t pos0,
                 Buffer& out) override;
  void silu_mul(Buffer& gate, const Buffer& up, std::uint64_t n) override;
  void add(Buffer& x, const Buffer& y, std::uint64_t n) override;

 private:
  /// Runs body(item, thread) here when the work is small, else on all threads.
  template <class Body>
  void split(std::uint32_t n_items, std::uint64_t n_muls, Body&& body);
  const std::byte* prepare(kernels::InputForm form, const MatmulTask& reader, const float* x,
                           std::uint32_t rows, std::uint64_t k);

  const CpuOps& ops_;
  std::unique_ptr<ThreadPool> pool_;
  BackendInfo info_;
  // Grown when a larger size is first seen; the step loop then allocates nothing.
  std::array<CpuMemory, kernels::kInputForms> inputs_;
  CpuAttention attention_;
};

void grow(CpuMemory& memory, std::uint64_t n_bytes) {
  if (memory.size() < n_bytes) memory = CpuMemory(n_bytes, "scratch");
}

template <class Body>
void CpuBackend::split(std::uint32_t n_items, std::uint64_t n_muls, Body&& body) {
  if (n_muls >= kSerialMuls) {
    pool_->run(n_items, body);
    return;
  }
  const FpControlScope fp_control;
  for (std::uint32_t item = 0; item < n_items; ++item) body(item, 0);
}

BackendMemory CpuBackend::memory() const {
  const std::uint64_t total = physical_memory_bytes();
  return {{}, total, total};
}

std::unique_ptr<Weight> CpuBackend::load_weight(const WeightView& view) {
  return load_cpu_weight(ops_, *pool_, view);
}

std::unique_ptr<Buffer> CpuBackend::new_buffer(std::uint64_t n_floats) {
  return std::make_unique<CpuBuffer>(n_floats);
}

std::unique_ptr<KvCache> CpuBackend::new_kv_cache(const KvShape& shape) {
  attention_.reserve(shape.head_dim);
  return std::make_unique<CpuKvCache>(shape);
}

void CpuBackend::upload(Buffer& to, std::span<const float> from) {
  float* data = floats(to, from.size());
  if (!from.empty()) std::memcpy(data, from.data(), from.size_bytes());
}

void CpuBackend::download(const Buffer& from, std::uint64_t offset, std::span<float> out) {
  DETRUN_CHECK(offset <= from.n_floats());
  const float* data = floats(from, offset + out.size()) + offset;
  if (!out.empty()) std::memcpy(out.data(), data, out.size_bytes());
}

void CpuBackend::embed(const Weight& table, std::span<const std::int32_t> tokens, Buffer& out) {
  const auto& weight = cast<const CpuWeight>(table);
  float* data = floats(out, tokens.size() * weight.k);
  const FpControlScope fp_control;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    DETRUN_CHECK(tokens[i] >= 0 && static_cast<std::uint64_t>(tokens[i]) < weight.n);
    weight.ops->decode_row(weight.packed.data(), weight.k, weight.n,
                           static_cast<std::uint64_t>(tokens[i]), data + i * weight.k);
  }
}

const std::byte* CpuBackend::prepare(kernels::InputForm form, const MatmulTask& reader,
                                     const float* x, std::uint32_t rows, std::uint64_t k) {
  const kernels::InputOps& input = ops_.inputs[static_cast<int>(form)];
  const std::uint64_t row_bytes = input.row_bytes(k);
  CpuMemory& memory = inputs_.at(static_cast<std::size_t>(form));
  grow(memory, rows * row_bytes);
  LeastIndex bad;
  split(rows, rows * k, [&](std::uint32_t row, std::uint32_t) {
    if (!input.prepare(x + row * k, k, memory.data() + row * row_bytes)) bad.lower(row);
  });
  if (bad.found()) {
    throw_activation_not_finite(cast<const CpuWeight>(*reader.weight).name, bad.value(), rows);
  }
  return memory.data();
}

void CpuBackend::matmul(std::span<const MatmulTask> tasks, const Buffer& x, std::uint32_t rows) {
  if (tasks.empty() || rows == 0) return;
  const std::uint64_t k = cast<const CpuWeight>(*tasks[0].weight).k;
  const float* x_data = floats(x, rows * k);

  // All tasks are one job: item i is a run of groups of one of them.
  std::array<const std::byte*, kernels::kInputForms> prepared{};
  std::uint64_t n_outputs = 0;
  for (const MatmulTask& task : tasks) {
    const auto& weight = cast<const CpuWeight>(*task.weight);
    DETRUN_CHECK(weight.k == k);
    floats(*task.y, rows * weight.n);
    const std::byte*& form = prepared.at(static_cast<std::size_t>(weight.ops->input));
    if (form == nullptr) form = prepare(weight.ops->input, task, x_data, rows, k);
    n_outputs += weight.n;
  }
  const auto plan_of = [&](const MatmulTask& task) {
    const auto& weight = static_cast<const CpuWeight&>(*task.weight);
    return MatmulPlan(weight, rows, ops_.inputs[static_cast<int>(weight.ops->input)].row_bytes(k),
                      info_.n_threads);
  };
  std::uint32_t n_items = 0;
  for (const MatmulTask& task : tasks) n_items += plan_of(task).n_items();

  split(n_items, rows * k * n_outputs, [&](std::uint32_t item, std::uint32_t) {
    const MatmulTask* task = tasks.data();
    MatmulPlan plan = plan_of(*task);
    for (; item >= plan.n_items(); plan = plan_of(*++task)) item -= plan.n_items();
    const auto& weight = static_cast<const CpuWeight&>(*task->weight);
    const std::byte* input = prepared.at(static_cast<std::size_t>(weight.ops->input));
    const MatmulPlan::Item at = plan.item(item);
    const kernels::MatmulArgs args{
        weight.packed.data(),
        input + at.row0 * plan.row_bytes(),
        plan.row_bytes(),
        at.n_rows,
        k,
        weight.n,
        static_cast<CpuBuffer&>(*task->y).data() + at.row0 * weight.n,
    };
    weight.ops->matmul(&args, at.group0, at.group1);
  });
}

void CpuBackend::rmsnorm(const Buffer& x, const Buffer& weight, float eps, std::uint32_t rows,
                         std::uint32_t n, Buffer& y) {
  const std::uint64_t total = std::uint64_t{rows} * n;
  const float* in = floats(x, total);
  const float* w = floats(weight, n);
  float* out = floats(y, total);
  LeastIndex bad;
  split(rows, total, [&](std::uint32_t row, std::uint32_t) {
    const std::uint64_t at = std::uint64_t{row} * n;
    if (!ops_.rmsnorm(in + at, w, eps, n, out + at)) bad.lower(row);
  });
  if (bad.found()) throw_norm_not_finite(bad.value(), rows);
}

void CpuBackend::rope(Buffer& x, const RopeParams& params, std::uint32_t rows,
                      std::uint32_t n_heads, std::uint32_t head_dim, std::uint32_t pos0) {
  DETRUN_CHECK(params.rope_dim % 2 == 0 && params.rope_dim <= head_dim);
  const std::uint64_t row_floats = std::uint64_t{n_heads} * head_dim;
  const std::uint64_t n_pairs = params.rope_dim / 2;
  float* data = floats(x, rows * row_floats);
  const float* cos = floats(*params.cos, (std::uint64_t{pos0} + rows) * n_pairs);
  const float* sin = floats(*params.sin, (std::uint64_t{pos0} + rows) * n_pairs);
  const auto rotate = params.pairs == RopePairs::kAdjacent ? ops_.rope_adjacent : ops_.rope_halves;
  split(rows, rows * row_floats, [&](std::uint32_t row, std::uint32_t) {
    const std::uint64_t table = (std::uint64_t{pos0} + row) * n_pairs;
    const kernels::RopeArgs args{data + row * row_floats, n_heads,     head_dim,
                                 params.rope_dim,         cos + table, sin + table};
    rotate(&args);
  });
}

void CpuBackend::kv_write(KvCache& cache, std::uint32_t layer, const Buffer& k, const Buffer& v,
                          std::uint32_t rows, std::uint32_t pos0) {
  using Part = CpuKvCache::Part;
  auto& kv = cast<CpuKvCache>(cache);
  const KvShape& shape = kv.shape();
  const std::uint64_t row_floats = std::uint64_t{shape.n_kv_heads} * shape.head_dim;
  const float* in[] = {floats(k, rows * row_floats), floats(v, rows * row_floats)};
  LeastIndex bad;
  split(rows, 2 * rows * row_floats, [&](std::uint32_t row, std::uint32_t) {
    for (const Part part : {Part::kK, Part::kV}) {
      for (std::uint32_t head = 0; head < shape.n_kv_heads; ++head) {
        const float* from =
            in[static_cast<int>(part)] + row * row_floats + std::uint64_t{head} * shape.head_dim;
        void* to = kv.at(part, layer, head, pos0 + row);
        const bool fits =
            shape.type == KvType::kF16
                ? ops_.kv_write_f16(from, shape.head_dim, static_cast<std::uint16_t*>(to))
                : ops_.kv_write_f32(from, shape.head_dim, static_cast<float*>(to));
        if (!fits) bad.lower(row);
      }
    }
  });
  if (bad.found()) throw_kv_does_not_fit(shape.type, layer, pos0 + bad.value());
}

void CpuBackend::attention(const Buffer& q, const KvCache& cache, std::uint32_t layer,
                           const AttentionParams& params, std::uint32_t rows, std::uint32_t pos0,
                           Buffer& out) {
  const auto& kv = cast<const CpuKvCache>(cache);
  const KvShape& shape = kv.shape();
  DETRUN_CHECK(params.n_kv_heads == shape.n_kv_heads && params.head_dim == shape.head_dim);
  DETRUN_CHECK(params.n_kv_heads != 0 && params.n_heads % params.n_kv_heads == 0);
  DETRUN_CHECK(std::uint64_t{pos0} + rows <= shape.n_ctx);
  const std::uint64_t total = std::uint64_t{rows} * params.n_heads * params.head_dim;
  const float* q_data = floats(q, total);
  float* out_data = floats(out, total);
  attention_.run({kv, layer, params, rows, pos0, q_data, out_data});
}

void CpuBackend::silu_mul(Buffer& gate, const Buffer& up, std::uint64_t n) {
  float* g = floats(gate, n);
  const float* u = floats(up, n);
  const auto n_items = static_cast<std::uint32_t>((n + kFunctionChunk - 1) / kFunctionChunk);
  split(n_items, 16 * n, [&](std::uint32_t item, std::uint32_t) {
    const std::uint64_t first = std::uint64_t{item} * kFunctionChunk;
    ops_.silu_mul(g + first, u + first, std::min<std::uint64_t>(kFunctionChunk, n - first));
  });
}

void CpuBackend::add(Buffer& x, const Buffer& y, std::uint64_t n) {
  float* to = floats(x, n);
  const float* from = floats(y, n);
  const auto n_items = static_cast<std::uint32_t>((n + kElementwiseChunk - 1) / kElementwiseChunk);
  split(n_items, n, [&](std::uint32_t item, std::uint32_t) {
    const std::uint64_t first = std::uint64_t{item} * kElementwiseChunk;
    ops_.add(to + first, from + first, std::min<std::uint64_t>(kElementwiseChunk, n - first));
  });
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  if (options.n_threads > kThreadsMax) {
    throw_usage(std::to_string(options.n_threads) + " threads asked for, at most " +
                std::to_string(kThreadsMax) + " are possible");
  }
  const auto n_threads =
      options.n_threads != 0
          ? options.n_threads
          : std::min(kThreadsMax, static_cast<std::uint32_t>(allowed_cpus().size()));
  auto pool = std::make_unique<ThreadPool>(n_threads);
  const CpuOps& ops = select_cpu_ops(options.isa, pool.get());
  return std::make_unique<CpuBackend>(ops, std::move(pool));
}

std::unique_ptr<Backend> make_cpu_backend_on(const CpuOps& ops, std::uint32_t n_threads) {
  return std::make_unique<CpuBackend>(ops, std::make_unique<ThreadPool>(n_threads));
}

}  // namespace detrun
