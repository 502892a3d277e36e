// A backend that passes every call on to another one and, when asked, notes the products of a
// forward pass, so that they can be done again with nothing between them: the bare matmul kernels
// on the same matrices, rows and threads. For measuring only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "detrun/backend.h"

namespace detrun {

/// The matmul calls of some work, in order. Valid as long as the model and the context that made
/// them.
class MatmulTrace {
 public:
  void add(std::span<const MatmulTask> tasks, const Buffer& x, std::uint32_t rows,
           std::uint64_t macs, std::uint64_t weight_bytes);
  /// Does them again. The buffers of the context are overwritten with other finite values.
  void repeat(Backend& backend) const;
  std::uint64_t macs() const { return macs_; }  ///< multiplications
  /// Bytes of the matrices as in the file, each as often as it was used.
  std::uint64_t weight_bytes() const { return weight_bytes_; }

 private:
  struct Call {
    std::vector<MatmulTask> tasks;
    const Buffer* x;
    std::uint32_t rows;
  };
  std::vector<Call> calls_;
  std::uint64_t macs_ = 0, weight_bytes_ = 0;
};

class TracingBackend : public Backend {
 public:
  explicit TracingBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  /// From now on weights are made up by the other backend, and no bytes of theirs are read.
  void make_weights_up() { make_up_ = true; }
  /// From now on products are added to `trace`; nullptr: no longer.
  void note_in(MatmulTrace* trace) { trace_ = trace; }

  const BackendInfo& info() const override { return inner_->info(); }
  BackendMemory memory() const override { return inner_->memory(); }
  std::unique_ptr<Ceilings> make_ceilings() const override { return inner_->make_ceilings(); }
  void synchronize() override { inner_->synchronize(); }
  bool has_unplaced_error() const override { return inner_->has_unplaced_error(); }
  void place_errors(bool on) override { inner_->place_errors(on); }
  std::uint64_t weight_bytes(QType type, std::uint64_t n_rows,
                             std::uint64_t row_elems) const override {
    return inner_->weight_bytes(type, n_rows, row_elems);
  }
  std::uint64_t scratch_bytes(const PassShape& shape) const override {
    return inner_->scratch_bytes(shape);
  }
  void reserve(const PassShape& shape) override { inner_->reserve(shape); }
  std::unique_ptr<Weight> load_weight(const WeightView& view) override;
  bool makes_up(QType type) const override { return inner_->makes_up(type); }
  std::unique_ptr<Weight> make_up_weight(const WeightView& view, std::uint64_t key) override;
  std::unique_ptr<Buffer> new_buffer(std::uint64_t n_floats) override {
    return inner_->new_buffer(n_floats);
  }
  std::unique_ptr<KvCache> new_kv_cache(const KvShape& shape) override {
    return inner_->new_kv_cache(shape);
  }
  std::string product_library() override { return inner_->product_library(); }
  ProductPlan pin_products(std::uint32_t rows) override { return inner_->pin_products(rows); }
  void use_products(const ProductPlan* plan) override { inner_->use_products(plan); }
  void test_products(std::uint32_t times) override { inner_->test_products(times); }
  std::unique_ptr<PassMemory> new_pass_memory() override { return inner_->new_pass_memory(); }
  /// While products are noted a pass runs operator by operator: a graph would show none.
  void run_pass(PassMemory* memory, const PassAt& at,
                const std::function<void()>& operators) override {
    if (trace_ != nullptr) {
      operators();
    } else {
      inner_->run_pass(memory, at, operators);
    }
  }
  void upload(Buffer& to, std::span<const float> from) override { inner_->upload(to, from); }
  void download(const Buffer& from, std::uint64_t offset, std::span<float> out) override {
    inner_->download(from, offset, out);
  }
  void embed(const Weight& table, std::span<const std::int32_t> tokens, Buffer& out) override {
    inner_->embed(table, tokens, out);
  }
  void matmul(std::span<const MatmulTask> tasks, const Buffer& x, std::uint32_t rows) override;
  void rmsnorm(const Buffer& x, const Buffer& weight, float eps, std::uint32_t rows,
               std::uint32_t n, Buffer& y) override {
    inner_->rmsnorm(x, weight, eps, rows, n, y);
  }
  void rope(Buffer& x, const RopeParams& params, std::uint32_t rows, std::uint32_t n_heads,
            std::uint32_t head_dim, std::uint32_t pos0) override {
    inner_->rope(x, params, rows, n_heads, head_dim, pos0);
  }
  void kv_write(KvCache& cache, std::uint32_t layer, const Buffer& k, const Buffer& v,
                std::uint32_t rows, std::uint32_t pos0) override {
    inner_->kv_write(cache, layer, k, v, rows, pos0);
  }
  void attention(const Buffer& q, const KvCache& cache, std::uint32_t layer,
                 const AttentionParams& params, std::uint32_t rows, std::uint32_t pos0,
                 Buffer& out) override {
    inner_->attention(q, cache, layer, params, rows, pos0, out);
  }
  void silu_mul(Buffer& gate, const Buffer& up, std::uint64_t n) override {
    inner_->silu_mul(gate, up, n);
  }
  void add(Buffer& x, const Buffer& y, std::uint64_t n) override { inner_->add(x, y, n); }

 private:
  std::unique_ptr<Backend> inner_;
  MatmulTrace* trace_ = nullptr;
  struct Matrix {
    std::uint64_t n_elems, n_bytes;
  };
  std::unique_ptr<Weight> noted(std::unique_ptr<Weight> weight, const WeightView& view);

  std::map<const Weight*, Matrix> matrices_;  ///< every weight loaded so far
  bool make_up_ = false;
};

}  // namespace detrun
