// Loading: the finite check and the packing of one run of rows by one thread, while they are in its
// cache, into an image in ordinary memory, which then goes to the device slice by slice. No
// arithmetic on the values, so nothing here can change a bit of them.
#include "backend/cuda/cuda_weight.h"

#include <algorithm>

#include "backend/cpu_memory.h"
#include "backend/operator_errors.h"
#include "detrun/error.h"
#include "detrun/quant.h"

namespace detrun {
namespace {

constexpr std::uint64_t kItemsPerThread = 16;
constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 31U;  // of what kernels count in 32 bits

/// Zeroed memory that starts where an image may.
class HostImage {
 public:
  explicit HostImage(std::uint64_t n_bytes)
      : memory_(n_bytes + cuda::kImageAlignment, "the image of a tensor") {
    const auto first = reinterpret_cast<std::uintptr_t>(memory_.data());
    const std::uint64_t past = first % cuda::kImageAlignment;
    start_ = memory_.data() + (past == 0 ? 0 : cuda::kImageAlignment - past);
  }
  std::byte* data() { return start_; }

 private:
  CpuMemory memory_;
  std::byte* start_;
};

void pack(const WeightView& view, const cuda::ProductOps& ops, ThreadPool& pool, void* image) {
  const std::uint64_t bytes_per_row = view.data.size() / view.n_rows;
  const std::uint64_t step = view.n_rows / (pool.n_threads() * kItemsPerThread) + 1;
  const auto n_items = static_cast<std::uint32_t>((view.n_rows + step - 1) / step);
  LeastIndex bad;
  pool.run(n_items, [&](std::uint32_t item, std::uint32_t) {
    const std::uint64_t row0 = item * step;
    const std::uint64_t row1 = std::min(view.n_rows, row0 + step);
    const auto rows = view.data.subspan(row0 * bytes_per_row, (row1 - row0) * bytes_per_row);
    if (const auto found = first_non_finite(view.type, rows)) {
      bad.lower(row0 * view.row_elems + *found);
    } else {
      ops.pack(view.data.data(), view.n_rows, view.row_elems, row0, row1, image);
    }
  });
  if (bad.found()) throw_weight_not_finite(view, bad.value());
}

/// With memory of the device, whose bytes are not written yet.
std::unique_ptr<CudaWeight> new_cuda_weight(const WeightView& view) {
  const cuda::ProductOps* ops = cuda::find_product(static_cast<std::uint32_t>(view.type));
  check_weight_view(view, ops != nullptr);
  if (view.n_rows >= kSizeMax || view.row_elems >= kSizeMax) {
    throw_usage("tensor " + std::string(view.name) + " of " + std::to_string(view.n_rows) +
                " rows of " + std::to_string(view.row_elems) +
                " elements is larger than the kernels of the device can count");
  }
  auto weight = std::make_unique<CudaWeight>();
  weight->name = view.name;
  weight->ops = ops;
  weight->type = view.type;
  weight->many_rows = view.many_rows;
  weight->n = static_cast<unsigned>(view.n_rows);
  weight->k = static_cast<unsigned>(view.row_elems);
  const std::uint64_t n_bytes = ops->image_bytes(weight->n, weight->k);
  weight->image = DeviceMemory(n_bytes, "tensor " + weight->name);
  return weight;
}

}  // namespace

std::unique_ptr<CudaWeight> load_cuda_weight(CudaTransfer& transfer, ThreadPool& pool,
                                             const WeightView& view) {
  auto weight = new_cuda_weight(view);
  HostImage image(weight->image.size());
  pack(view, *weight->ops, pool, image.data());
  transfer.upload(weight->image.data(), image.data(), weight->image.size());
  return weight;
}

std::unique_ptr<CudaWeight> make_up_cuda_weight(const CudaStream& stream, const WeightView& view,
                                                std::uint64_t key) {
  auto weight = new_cuda_weight(view);
  check_cuda(weight->ops->fill(weight->image.data(), weight->n, weight->k, key, stream.get()),
             "making a weight up");
  return weight;
}

}  // namespace detrun
