// Matrix products and embeddings on the device, by the table that the backend runs on: the file's
// rows to an image, the image to the device, then the launcher of the type.
#include "device_memory.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cuda/products.h"
#include "kernels_under_test.h"

namespace detrun::smoke {

namespace {

constexpr cudaStream_t kStream = nullptr;

unsigned narrow(std::uint64_t size) { return static_cast<unsigned>(size); }

const cuda::ProductOps& product_of(std::uint32_t gguf_id) {
  const cuda::ProductOps* ops = cuda::find_product(gguf_id);
  if (ops == nullptr) throw DeviceFailure("no product of type " + std::to_string(gguf_id));
  return *ops;
}

/// A matrix as the backend uploads it: packed in two parts, as two threads would.
class DeviceWeight {
 public:
  DeviceWeight(const cuda::ProductOps& ops, const std::byte* matrix, std::uint64_t n,
               std::uint64_t k)
      : n_(n), k_(k), memory_(packed(ops, matrix, n, k)) {}
  cuda::DeviceMatrix view() { return {memory_.as<void>(), narrow(n_), narrow(k_)}; }

 private:
  static std::vector<std::byte> packed(const cuda::ProductOps& ops, const std::byte* matrix,
                                       std::uint64_t n, std::uint64_t k) {
    std::vector<std::byte> image(ops.image_bytes(n, k));
    ops.pack(matrix, n, k, n / 2, n, image.data());
    ops.pack(matrix, n, k, 0, n / 2, image.data());
    return image;
  }
  std::uint64_t n_, k_;
  DeviceMemory memory_;
};

/// m prepared rows side by side on the device: floats, or quants with all that belongs to them.
class DeviceRows {
 public:
  DeviceRows(PreparedRows x, std::uint64_t k, kernels::InputForm form)
      : DeviceRows(x, form == kernels::InputForm::kFloat ? k : 0,
                   form == kernels::InputForm::kQuantized ? k : 0) {}
  cuda::Activations view() {
    return {floats_.as<float>(),
            {quants_.as<std::int8_t>(), scales_.as<float>(), sums_.as<float>(),
             half_sums_.as<std::int16_t>()},
            narrow(m_)};
  }

 private:
  DeviceRows(PreparedRows x, std::uint64_t n_floats, std::uint64_t n_quants)
      : m_(x.m),
        floats_(gather_floats(x, n_floats)),
        quants_(gather(x, n_quants, n_quants, &kernels::QuantizedRow::q)),
        scales_(gather(x, n_quants, n_quants / 32, &kernels::QuantizedRow::d)),
        sums_(gather(x, n_quants, n_quants / 32, &kernels::QuantizedRow::bx)),
        half_sums_(gather(x, n_quants, n_quants / 16, &kernels::QuantizedRow::b16)) {}
  static const std::byte* row_at(PreparedRows x, std::uint64_t r) {
    return static_cast<const std::byte*>(x.rows) + r * x.row_bytes;
  }
  static Floats gather_floats(PreparedRows x, std::uint64_t count) {
    Floats all;
    for (std::uint64_t r = 0; r < x.m; ++r) {
      const auto* row = reinterpret_cast<const float*>(row_at(x, r));
      all.insert(all.end(), row, row + count);
    }
    return all;
  }
  template <class T>
  static std::vector<T> gather(PreparedRows x, std::uint64_t k, std::uint64_t count,
                               const T* kernels::QuantizedRow::*part) {
    std::vector<T> all;
    for (std::uint64_t r = 0; r < x.m; ++r) {
      const T* row = kernels::quantized_row(row_at(x, r), k).*part;
      all.insert(all.end(), row, row + count);
    }
    return all;
  }
  std::uint64_t m_;
  DeviceMemory floats_, quants_, scales_, sums_, half_sums_;
};

Floats embed(const cuda::ProductOps& ops, cuda::DeviceMatrix matrix, const std::vector<int>& ids) {
  DeviceMemory tokens(ids);
  DeviceMemory out(ids.size() * matrix.k * sizeof(float));
  require(ops.embed(matrix, tokens.as<int>(), narrow(ids.size()), out.as<float>(), kStream),
          "embed");
  return out.read<float>();
}

}  // namespace

bool device_has_product(std::uint32_t gguf_id) { return cuda::find_product(gguf_id) != nullptr; }

bool device_takes_floats(std::uint32_t gguf_id) {
  return product_of(gguf_id).input == kernels::InputForm::kFloat;
}

Floats device_product(std::uint32_t gguf_id, const std::byte* matrix, std::uint64_t n,
                      std::uint64_t k, PreparedRows x, Form form) {
  const cuda::ProductOps& ops = product_of(gguf_id);
  DeviceWeight weight(ops, matrix, n, k);
  DeviceMemory y(x.m * n * sizeof(float));
  if (form == Form::kMatrix) {
    DeviceRows rows(x, k, ops.input);
    DeviceMemory workspace(ops.workspace_bytes(x.m, n, k));
    require(ops.gemm(weight.view(), rows.view(), workspace.as<void>(), y.as<float>(), kStream),
            "GEMM");
    workspace.check_guards();
    return y.read<float>();
  }
  // Each row of x is copied on its own, aligned, as decoding one token would have it.
  for (std::uint64_t r = 0; r < x.m; ++r) {
    const auto* row = static_cast<const std::byte*>(x.rows) + r * x.row_bytes;
    DeviceRows rows({row, x.row_bytes, 1}, k, ops.input);
    const cuda::GemvProduct product{weight.view(), y.as<float>() + r * n};
    require(ops.gemv(&product, 1, rows.view(), kStream), "GEMV");
    require(cudaDeviceSynchronize(), "GEMV");
  }
  return y.read<float>();
}

Floats device_embed(std::uint32_t gguf_id, const std::byte* matrix, std::uint64_t n,
                    std::uint64_t k, const std::vector<int>& ids) {
  const cuda::ProductOps& ops = product_of(gguf_id);
  DeviceWeight weight(ops, matrix, n, k);
  return embed(ops, weight.view(), ids);
}

Floats device_embed_made_up(std::uint32_t gguf_id, std::uint64_t n, std::uint64_t k,
                            std::uint64_t key, const std::vector<int>& ids) {
  const cuda::ProductOps& ops = product_of(gguf_id);
  DeviceMemory image(ops.image_bytes(n, k));
  require(ops.fill(image.as<void>(), n, k, key, kStream), "fill");
  image.check_guards();
  return embed(ops, {image.as<void>(), narrow(n), narrow(k)}, ids);
}

}  // namespace detrun::smoke
