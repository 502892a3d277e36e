// See bench_trace.h.
#include "run/bench_trace.h"

#include "run/bench_model.h"

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

std::unique_ptr<Weight> TracingBackend::noted(std::unique_ptr<Weight> weight,
                                              const WeightView& view) {
  matrices_[weight.get()] = {view.row_elems * view.n_rows, view.data.size()};
  return weight;
}

std::unique_ptr<Weight> TracingBackend::load_weight(const WeightView& view) {
  if (make_up_) return make_up_weight(view, synthetic_key(view.name));
  return noted(inner_->load_weight(view), view);
}

std::unique_ptr<Weight> TracingBackend::make_up_weight(const WeightView& view, std::uint64_t key) {
  return noted(inner_->make_up_weight(view, key), view);
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
