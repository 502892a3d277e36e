// The backend of an NVIDIA GPU: sizes are checked here, all work is queued on one stream,
// arithmetic is in the kernels. Which kernel computes an output never changes it. Written once,
// compiled twice: against the CUDA runtime and, for tests, against its emulation on the host.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <vector>

#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_ceilings.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_flag.h"
#include "backend/cuda/cuda_kv_cache.h"
#include "backend/cuda/cuda_matmul.h"
#include "backend/cuda/cuda_pass_memory.h"
#include "backend/cuda/cuda_pinned.h"
#include "backend/cuda/cuda_positions.h"
#include "backend/cuda/cuda_scratch.h"
#include "backend/cuda/cuda_transfer.h"
#include "backend/cuda/cuda_weight.h"
#include "backend/nvml.h"
#include "backend/operator_errors.h"
#include "backend/own_objects.h"
#include "detrun/backend.h"
#include "detrun/error.h"
#include "detrun/log.h"
#include "kernels/cuda/launch_rows.h"

namespace detrun {
namespace {

constexpr const char* kName = DETRUN_CUDA_BACKEND_NAME;
constexpr std::array kNvmlLibraries = {DETRUN_NVML_LIBRARY};

struct CudaBuffer final : Buffer {
  explicit CudaBuffer(std::uint64_t n_floats)
      : Buffer(n_floats), memory(float_bytes(n_floats), "a buffer") {}
  DeviceMemory memory;
};

float* floats(const Buffer& buffer, std::uint64_t n) {
  DETRUN_CHECK(n <= buffer.n_floats());
  return cast<const CudaBuffer>(buffer).memory.as<float>();
}

// $CUDA_LAUNCH_BLOCKING, read as the driver reads it: who sets it wants to see which launch fails.
bool is_launch_blocking() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && std::strtol(value, nullptr, 10) != 0;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(const DeviceInfo& device, bool graph) {
    info_.name = kName;
    info_.isa = cuda_isa(device);
    info_.n_threads = 1;
    info_.fp_control_found = FpControlScope().found();
    info_.device = device;
    info_.graph = graph;
  }

  const BackendInfo& info() const override { return info_; }
  BackendMemory memory() const override;
  std::unique_ptr<Ceilings> make_ceilings() const override {
    use_device();
    return make_cuda_ceilings(*info_.device);
  }
  void synchronize() override;
  bool has_unplaced_error() const override { return flag_.was_raised(); }
  void place_errors(bool on) override { flag_.set_placing(on); }
  std::uint64_t weight_bytes(QType type, std::uint64_t n_rows,
                             std::uint64_t row_elems) const override;
  std::uint64_t scratch_bytes(const PassShape& shape) const override;
  void reserve(const PassShape& shape) override;
  std::string product_library() override;
  ProductPlan pin_products(std::uint32_t rows) override;
  void use_products(const ProductPlan* plan) override;
  void test_products(std::uint32_t times) override;
  std::unique_ptr<PassMemory> new_pass_memory() override;
  void run_pass(PassMemory* memory, const PassAt& at,
                const std::function<void()>& operators) override;
  std::unique_ptr<Weight> load_weight(const WeightView& view) override;
  bool makes_up(QType type) const override;
  std::unique_ptr<Weight> make_up_weight(const WeightView& view, std::uint64_t key) override;
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
  /// Everything is of this device, whatever the calling thread used before.
  void use_device() const {
    check_cuda(cudaSetDevice(static_cast<int>(info_.device->index)), "cudaSetDevice");
  }
  cudaError_t write_kv(CudaKvCache& kv, std::uint32_t layer, const float* k, const float* v,
                       const unsigned* positions, std::uint32_t rows);

  BackendInfo info_;
  CudaStream stream_;
  CudaTransfer transfer_{stream_};
  CudaFlag flag_{stream_};
  ScratchMoves moves_;
  CudaPinned pinned_{stream_, transfer_, flag_, moves_};
  CudaMatmul matmul_{stream_, flag_, pinned_, moves_};
  CudaAttention attention_{stream_, moves_};
  CudaPositions positions_{stream_, transfer_, moves_};
  CudaScratch tokens_{"tokens", moves_};
  std::vector<CudaProduct> products_;    ///< of one call; kept so that steps allocate nothing
  std::unique_ptr<ThreadPool> loaders_;  ///< from the first weight to the first context
};

BackendMemory CudaBackend::memory() const {
  use_device();
  return cuda_memory(*info_.device);
}

void CudaBackend::synchronize() {
  use_device();
  flag_.check();
}

std::uint64_t CudaBackend::weight_bytes(QType type, std::uint64_t n_rows,
                                        std::uint64_t row_elems) const {
  const cuda::ProductOps* ops = cuda::find_product(static_cast<std::uint32_t>(type));
  return ops == nullptr ? 0 : ops->image_bytes(n_rows, row_elems);
}

std::uint64_t CudaBackend::scratch_bytes(const PassShape& shape) const {
  return shape.rows * sizeof(int) + CudaPositions::scratch_bytes(shape.rows) +
         matmul_.scratch_bytes(shape) + CudaAttention::scratch_bytes(shape);
}

void CudaBackend::reserve(const PassShape& shape) {
  use_device();
  loaders_.reset();
  tokens_.room_for<int>(shape.rows);
  positions_.reserve(shape.rows);
  matmul_.reserve(shape);
  attention_.reserve(shape);
}

std::string CudaBackend::product_library() {
  use_device();
  return pinned_.cublaslt_version();
}

ProductPlan CudaBackend::pin_products(std::uint32_t rows) {
  use_device();
  return pinned_.pin(matmul_.many_rows_weights(), rows);
}

void CudaBackend::use_products(const ProductPlan* plan) {
  use_device();
  plan == nullptr ? pinned_.stop() : pinned_.use(*plan);
}

void CudaBackend::test_products(std::uint32_t times) {
  use_device();
  pinned_.test(times);
}

std::unique_ptr<PassMemory> CudaBackend::new_pass_memory() {
  return info_.graph ? std::make_unique<CudaPassMemory>(stream_, moves_) : nullptr;
}

// Many rows are few launches a token: what a graph saves is not worth one for every chunk.
void CudaBackend::run_pass(PassMemory* memory, const PassAt& at,
                           const std::function<void()>& operators) {
  if (memory == nullptr || at.rows != 1 || flag_.is_placing()) {
    operators();
    return;
  }
  use_device();
  const std::uint32_t n_ctx = cast<const CudaKvCache>(*at.cache).layout().shape().n_ctx;
  positions_.set(at.pos0, at.rows);
  cast<CudaPassMemory>(*memory).run(
      {CudaAttention::grid_blocks(at.rows, at.pos0, n_ctx), at.logits}, operators);
}

std::unique_ptr<Weight> CudaBackend::load_weight(const WeightView& view) {
  use_device();
  if (!loaders_) {
    loaders_ = std::make_unique<ThreadPool>(static_cast<std::uint32_t>(allowed_cpus().size()));
  }
  auto weight = load_cuda_weight(transfer_, *loaders_, view);
  stream_.synchronize();  // another backend of this device may use it at once
  matmul_.expect(*weight);
  return weight;
}

bool CudaBackend::makes_up(QType type) const {
  const cuda::ProductOps* ops = cuda::find_product(static_cast<std::uint32_t>(type));
  return ops != nullptr && ops->fill != nullptr;
}

std::unique_ptr<Weight> CudaBackend::make_up_weight(const WeightView& view, std::uint64_t key) {
  if (!makes_up(view.type)) return nullptr;
  use_device();
  auto weight = make_up_cuda_weight(stream_, view, key);
  stream_.synchronize();  // as at load
  matmul_.expect(*weight);
  return weight;
}

std::unique_ptr<Buffer> CudaBackend::new_buffer(std::uint64_t n_floats) {
  use_device();
  auto buffer = std::make_unique<CudaBuffer>(n_floats);
  const DeviceMemory& memory = buffer->memory;
  if (memory.size() != 0) {
    check_cuda(cudaMemsetAsync(memory.data(), 0, memory.size(), stream_.get()), "cudaMemset");
  }
  return buffer;
}

std::unique_ptr<KvCache> CudaBackend::new_kv_cache(const KvShape& shape) {
  use_device();
  return std::make_unique<CudaKvCache>(shape, stream_, transfer_);
}

void CudaBackend::upload(Buffer& to, std::span<const float> from) {
  use_device();
  transfer_.upload(floats(to, from.size()), from.data(), from.size_bytes());
}

void CudaBackend::download(const Buffer& from, std::uint64_t offset, std::span<float> out) {
  use_device();
  DETRUN_CHECK(offset <= from.n_floats());
  const float* first = floats(from, offset + out.size()) + offset;
  if (out.empty()) return flag_.check();
  flag_.check([&] { transfer_.download(out.data(), first, out.size_bytes()); });
}

void CudaBackend::embed(const Weight& table, std::span<const std::int32_t> tokens, Buffer& out) {
  use_device();
  const auto& weight = cast<const CudaWeight>(table);
  float* to = floats(out, tokens.size() * weight.k);
  for (const std::int32_t token : tokens) {
    DETRUN_CHECK(token >= 0 && static_cast<unsigned>(token) < weight.n);
  }
  if (tokens.empty()) return;
  int* ids = tokens_.room_for<int>(tokens.size());
  transfer_.upload(ids, tokens.data(), tokens.size_bytes());
  check_cuda(weight.ops->embed(weight.matrix(), ids, static_cast<unsigned>(tokens.size()), to,
                               stream_.get()),
             "embed");
}

void CudaBackend::matmul(std::span<const MatmulTask> tasks, const Buffer& x, std::uint32_t rows) {
  if (tasks.empty() || rows == 0) return;
  use_device();
  const std::uint64_t k = cast<const CudaWeight>(*tasks[0].weight).k;
  products_.clear();
  for (const MatmulTask& task : tasks) {
    const auto& weight = cast<const CudaWeight>(*task.weight);
    DETRUN_CHECK(weight.k == k);
    products_.push_back(
        {&weight, floats(*task.y, std::uint64_t{rows} * weight.n), task.y->n_floats()});
  }
  matmul_.run(products_, floats(x, rows * k), rows);
}

void CudaBackend::rmsnorm(const Buffer& x, const Buffer& weight, float eps, std::uint32_t rows,
                          std::uint32_t n, Buffer& y) {
  use_device();
  const std::uint64_t total = std::uint64_t{rows} * n;
  const float* in = floats(x, total);
  const float* w = floats(weight, n);
  float* out = floats(y, total);
  flag_.launch_rows(
      rows,
      [&](std::uint32_t first, std::uint32_t count) {
        const std::uint64_t at = std::uint64_t{first} * n;
        check_cuda(cuda::rmsnorm(in + at, w, eps, count, n, out + at, flag_.get(), stream_.get()),
                   "rmsnorm");
      },
      [&](std::uint32_t row) { throw_norm_not_finite(row, rows); });
}

void CudaBackend::rope(Buffer& x, const RopeParams& params, std::uint32_t rows,
                       std::uint32_t n_heads, std::uint32_t head_dim, std::uint32_t pos0) {
  use_device();
  DETRUN_CHECK(params.rope_dim % 2 == 0 && params.rope_dim <= head_dim);
  const std::uint64_t n_pairs = params.rope_dim / 2;
  const std::uint64_t n_angles = (std::uint64_t{pos0} + rows) * n_pairs;
  float* data = floats(x, std::uint64_t{rows} * n_heads * head_dim);
  const float* cos = floats(*params.cos, n_angles);
  const float* sin = floats(*params.sin, n_angles);
  if (n_pairs == 0 || rows == 0) return;
  positions_.set(pos0, rows);
  const auto rotate =
      params.pairs == RopePairs::kAdjacent ? cuda::rope_adjacent : cuda::rope_halves;
  check_cuda(rotate(data, cos, sin, positions_.get(), rows, n_heads, head_dim, params.rope_dim,
                    stream_.get()),
             "rope");
}

cudaError_t CudaBackend::write_kv(CudaKvCache& kv, std::uint32_t layer, const float* k,
                                  const float* v, const unsigned* positions, std::uint32_t rows) {
  const KvLayout& layout = kv.layout();
  const KvShape& shape = layout.shape();
  void* k_out = kv.at(KvPart::kK, layer);
  void* v_out = kv.at(KvPart::kV, layer);
  if (shape.type == KvType::kF16) {
    return cuda::kv_write_f16(k, v, positions, rows, shape.n_kv_heads, shape.head_dim,
                              layout.stride(), layout.head_stride(),
                              static_cast<std::uint16_t*>(k_out),
                              static_cast<std::uint16_t*>(v_out), flag_.get(), stream_.get());
  }
  return cuda::kv_write_f32(k, v, positions, rows, shape.n_kv_heads, shape.head_dim,
                            layout.stride(), layout.head_stride(), static_cast<float*>(k_out),
                            static_cast<float*>(v_out), flag_.get(), stream_.get());
}

void CudaBackend::kv_write(KvCache& cache, std::uint32_t layer, const Buffer& k, const Buffer& v,
                           std::uint32_t rows, std::uint32_t pos0) {
  use_device();
  auto& kv = cast<CudaKvCache>(cache);
  const KvShape& shape = kv.layout().shape();
  DETRUN_CHECK(std::uint64_t{pos0} + rows <= shape.n_ctx);
  const std::uint64_t row_floats = std::uint64_t{shape.n_kv_heads} * shape.head_dim;
  const float* k_data = floats(k, rows * row_floats);
  const float* v_data = floats(v, rows * row_floats);
  if (rows == 0) return;
  positions_.set(pos0, rows);
  flag_.launch_rows(
      rows,
      [&](std::uint32_t first, std::uint32_t count) {
        const std::uint64_t at = first * row_floats;
        const unsigned* positions = positions_.get() + first;
        check_cuda(write_kv(kv, layer, k_data + at, v_data + at, positions, count), "kv_write");
      },
      [&](std::uint32_t row) {
        throw_kv_does_not_fit(shape.type, layer, std::uint64_t{pos0} + row);
      });
}

void CudaBackend::attention(const Buffer& q, const KvCache& cache, std::uint32_t layer,
                            const AttentionParams& params, std::uint32_t rows, std::uint32_t pos0,
                            Buffer& out) {
  use_device();
  const auto& kv = cast<const CudaKvCache>(cache);
  const KvShape& shape = kv.layout().shape();
  DETRUN_CHECK(params.n_kv_heads == shape.n_kv_heads && params.head_dim == shape.head_dim);
  DETRUN_CHECK(params.n_kv_heads != 0 && params.n_heads % params.n_kv_heads == 0);
  DETRUN_CHECK(std::uint64_t{pos0} + rows <= shape.n_ctx);
  const std::uint64_t total = std::uint64_t{rows} * params.n_heads * params.head_dim;
  if (rows == 0) return;
  positions_.set(pos0, rows);
  attention_.run({kv, layer, params, positions_, rows, pos0, floats(q, total), floats(out, total)});
}

void CudaBackend::silu_mul(Buffer& gate, const Buffer& up, std::uint64_t n) {
  use_device();
  check_cuda(cuda::silu_mul(floats(gate, n), floats(up, n), n, stream_.get()), "silu_mul");
}

void CudaBackend::add(Buffer& x, const Buffer& y, std::uint64_t n) {
  use_device();
  check_cuda(cuda::add(floats(x, n), floats(y, n), n, stream_.get()), "add");
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  DeviceInfo device = find_cuda_device(kName, options.device);
  // Beside the making of the device's context, which takes longer; here where no thread starts.
  auto facts = std::async([&uuid = device.uuid] { return ask_nvml(kNvmlLibraries, uuid); });
  check_cuda(cudaSetDevice(static_cast<int>(device.index)), "cudaSetDevice");
  device.facts = facts.get();
  const bool blocking = options.graph && is_launch_blocking();
  if (blocking) log_info("CUDA_LAUNCH_BLOCKING is set: steps are launched kernel by kernel");
  return std::make_unique<CudaBackend>(device, options.graph && !blocking);
}

}  // namespace detrun
