// See bench_trace.h.
#include "run/bench_trace.h"

namespace detrun {

void MatmulTrace::add(std::span<const MatmulTask> tasks, const Buffer& x, std::uint32_t rows,
                      std::uint64_t macs, std::uint64_t weight_bytes) {
  calls_.push_back({{tasks.begin(), tasks.end()}, &x, rows});
  macs_ += macs;
  weight_bytes_ += weight_bytes;
}

void MatmulTrace::repeat(Backend& backend) const {
  for (const Call& call : calls_) backend.matmul(call.tasks, *call.x, call.rows);
  backend.synchronize();
}

std::unique_ptr<Weight> TracingBackend::load_weight(const WeightView& view) {
  std::unique_ptr<Weight> weight = inner_->load_weight(view);
  matrices_[weight.get()] = {view.row_elems * view.n_rows, view.data.size()};
  return weight;
}

void TracingBackend::matmul(std::span<const MatmulTask> tasks, const Buffer& x,
                            std::uint32_t rows) {
  inner_->matmul(tasks, x, rows);
  if (trace_ == nullptr) return;
  std::uint64_t macs = 0;
  std::uint64_t n_bytes = 0;
  for (const MatmulTask& task : tasks) {
    const Matrix& matrix = matrices_.at(task.weight);
    macs += matrix.n_elems * rows;
    n_bytes += matrix.n_bytes;
  }
  trace_->add(tasks, x, rows, macs, n_bytes);
}

}  // namespace detrun
