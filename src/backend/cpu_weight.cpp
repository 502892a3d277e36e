// Loading: the finite check and the packing of one run of rows by one thread, while they are in its
// cache. No arithmetic on the values, so nothing here can change a bit of them.
#include "backend/cpu_weight.h"

#include <algorithm>

#include "backend/cpu_select.h"
#include "backend/operator_errors.h"
#include "detrun/error.h"
#include "detrun/quant.h"

namespace detrun {
namespace {

using kernels::MatmulOps;

constexpr std::uint64_t kItemsPerThread = 16;

}  // namespace

std::unique_ptr<CpuWeight> load_cpu_weight(const kernels::CpuOps& ops, ThreadPool& pool,
                                           const WeightView& view) {
  const MatmulOps* matmul = find_matmul(ops, static_cast<std::uint32_t>(view.type));
  check_weight_view(view, matmul != nullptr);
  auto weight = std::make_unique<CpuWeight>();
  weight->name = view.name;
  weight->ops = matmul;
  weight->k = view.row_elems;
  weight->n = view.n_rows;
  weight->packed = CpuMemory(matmul->packed_bytes(weight->k, weight->n), view.name);

  const std::uint64_t bytes_per_row = view.data.size() / view.n_rows;
  const std::uint64_t n_groups = weight->n_groups();
  const std::uint64_t step = n_groups / (pool.n_threads() * kItemsPerThread) + 1;
  const auto n_items = static_cast<std::uint32_t>((n_groups + step - 1) / step);
  LeastIndex bad;
  pool.run(n_items, [&](std::uint32_t item, std::uint32_t) {
    const std::uint64_t g0 = item * step;
    const std::uint64_t g1 = std::min(n_groups, g0 + step);
    const std::uint64_t row0 = g0 * matmul->group;
    const std::uint64_t row1 = std::min(view.n_rows, g1 * matmul->group);
    const auto rows = view.data.subspan(row0 * bytes_per_row, (row1 - row0) * bytes_per_row);
    if (const auto found = first_non_finite(view.type, rows)) {
      bad.lower(row0 * weight->k + *found);
    } else {
      matmul->pack(view.data.data(), weight->k, weight->n, g0, g1, weight->packed.data());
    }
  });
  if (bad.found()) throw_weight_not_finite(view, bad.value());
  return weight;
}

}  // namespace detrun
