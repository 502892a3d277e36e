// Everything that is no product, on the device: upload, launch, download. A raised flag gives an
// empty result, which no case expects.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "device_memory.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cuda/launch_rows.h"
#include "kernels_under_test.h"

namespace detrun::smoke {

namespace {

constexpr cudaStream_t kStream = nullptr;

unsigned narrow(std::uint64_t size) { return static_cast<unsigned>(size); }

// Rows of tables and caches that come before the one of row 0: nothing may be read or written
// there.
constexpr unsigned kRowsBefore = 2;

std::vector<unsigned> positions_of(unsigned n_rows) {
  std::vector<unsigned> positions(n_rows);
  std::iota(positions.begin(), positions.end(), kRowsBefore);
  return positions;
}

/// The table behind rows that no result may depend on.
Floats behind(const Floats& table, std::size_t row_floats) {
  Floats all(kRowsBefore * row_floats, std::numeric_limits<float>::quiet_NaN());
  all.insert(all.end(), table.begin(), table.end());
  return all;
}

/// The one row that a kernel wrote behind those rows; nothing when it wrote into them.
template <class T>
std::vector<T> last_row(const std::vector<T>& cache) {
  const std::size_t n = cache.size() / (kRowsBefore + 1);
  const auto row = cache.end() - static_cast<std::ptrdiff_t>(n);
  if (std::any_of(cache.begin(), row, [](T x) { return x != T{}; })) return {};
  return {row, cache.end()};
}

class DeviceKernels final : public Kernels {
 public:
  bool has_product(std::uint32_t gguf_id) const override { return device_has_product(gguf_id); }

  Floats product(const Matrix& weight, const Floats& x, std::uint64_t m, Form form) override;
  Floats embed(const Matrix& matrix, const std::vector<int>& ids) override {
    return device_embed(matrix.gguf_id, matrix.bytes.data(), matrix.n, matrix.k, ids);
  }
  Floats embed_made_up(const Matrix& matrix, std::uint64_t key,
                       const std::vector<int>& ids) override {
    return device_embed_made_up(matrix.gguf_id, matrix.n, matrix.k, key, ids);
  }
  Quantized quantize(const Floats& x) override;
  Floats attention(const Attention& in, Form form) override;
  Floats rmsnorm(const Norm& in) override;
  Floats layernorm(const Norm& in) override;
  Floats rope(const Rope& in) override;
  std::vector<std::uint16_t> kv_write_f16(const Floats& x) override;
  Floats kv_write_f32(const Floats& x) override;
  std::vector<std::uint16_t> round_f16(const Floats& x, std::size_t padding) override;
  std::vector<std::uint16_t> round_bf16(const Floats& x, std::size_t padding) override;
  Floats round_f32(const Floats& x, std::size_t padding) override;
  Floats elementwise(Elementwise op, const Floats& x, const Floats& y, float factor) override;
  Floats function(kernels::Function f, const Floats& x) override;
  Choices choose(const Floats& logits, std::uint64_t n) override;
};

Floats DeviceKernels::product(const Matrix& weight, const Floats& x, std::uint64_t m, Form form) {
  const std::uint64_t k = weight.k;
  if (device_takes_floats(weight.gguf_id)) {
    return device_product(weight.gguf_id, weight.bytes.data(), weight.n, k,
                          {x.data(), k * sizeof(float), m}, form);
  }
  // The device's own quantized rows, in the CPU's arrangement.
  const std::uint64_t row_bytes = kernels::quantized_row_bytes(k);
  std::vector<std::byte> rows(m * row_bytes);
  for (std::uint64_t r = 0; r < m; ++r) {
    const auto* from = x.data() + r * k;
    const Quantized row = quantize(Floats(from, from + k));
    if (!row.finite) return {};
    const kernels::QuantizedRowOut to = kernels::quantized_row_out(rows.data() + r * row_bytes, k);
    std::memcpy(to.q, row.quants.data(), k);
    std::memcpy(to.d, row.scales.data(), row.scales.size() * sizeof(float));
    std::memcpy(to.bx, row.sums.data(), row.sums.size() * sizeof(float));
    std::memcpy(to.b16, row.half_sums.data(), row.half_sums.size() * sizeof(std::int16_t));
  }
  return device_product(weight.gguf_id, weight.bytes.data(), weight.n, k,
                        {rows.data(), row_bytes, m}, form);
}

Quantized DeviceKernels::quantize(const Floats& x) {
  const std::size_t n_blocks = x.size() / kernels::kActivationBlock;
  DeviceMemory from(x);
  DeviceMemory quants(x.size());
  DeviceMemory scales(n_blocks * sizeof(float));
  DeviceMemory sums(n_blocks * sizeof(float));
  DeviceMemory half_sums(2 * n_blocks * sizeof(std::int16_t));
  DeviceFlag flag;
  require(cuda::quantize(from.as<float>(), n_blocks, quants.as<std::int8_t>(), scales.as<float>(),
                         sums.as<float>(), half_sums.as<std::int16_t>(), flag.pointer(), kStream),
          "quantize");
  return {quants.read<std::int8_t>(), scales.read<float>(), sums.read<float>(),
          half_sums.read<std::int16_t>(), !flag.raised()};
}

Floats DeviceKernels::attention(const Attention& in, Form form) {
  const auto n_queries = narrow(in.n_visible.size());
  const std::size_t n_out = std::size_t{n_queries} * in.n_heads * in.head_dim;
  unsigned first = in.n_positions;
  unsigned last = 0;
  for (std::size_t i = 0; i < n_queries; ++i) {
    first = std::min(first, in.first_visible[i] / kernels::kKvBlock);
    last = std::max(last, (in.n_visible[i] - 1) / kernels::kKvBlock);
  }
  DeviceMemory q(in.q);
  DeviceMemory k(in.k);
  DeviceMemory v(in.v);
  DeviceMemory sinks(in.sinks);
  DeviceMemory first_visible(in.first_visible);
  DeviceMemory n_visible(in.n_visible);
  const cuda::AttentionInput device{q.as<float>(),
                                    k.as<void>(),
                                    v.as<void>(),
                                    std::size_t{in.n_kv_heads} * in.head_dim,
                                    in.head_dim,
                                    first_visible.as<unsigned>(),
                                    n_visible.as<unsigned>(),
                                    n_queries,
                                    in.n_heads,
                                    in.n_kv_heads,
                                    in.head_dim,
                                    first,
                                    last - first + 1,
                                    in.scale,
                                    in.softcap,
                                    in.sinks.empty() ? nullptr : sinks.as<float>()};
  DeviceMemory out(n_out * sizeof(float));
  if (form == Form::kMatrix) {
    const auto launch = in.f16 ? cuda::attention_stream_f16 : cuda::attention_stream_f32;
    require(launch(device, out.as<float>(), kStream), "attention in one pass");
    return out.read<float>();
  }
  const std::size_t n_states = std::size_t{n_queries} * in.n_heads * device.n_blocks;
  DeviceMemory states(n_states * 2 * sizeof(float));
  DeviceMemory values(n_states * in.head_dim * sizeof(float));
  const auto launch = in.f16 ? cuda::attention_blocks_f16 : cuda::attention_blocks_f32;
  require(launch(device, states.as<float>(), values.as<float>(), kStream), "attention, split");
  require(cuda::attention_merge(device, states.as<float>(), values.as<float>(), out.as<float>(),
                                kStream),
          "attention, merge");
  return out.read<float>();
}

Floats DeviceKernels::rmsnorm(const Norm& in) {
  DeviceMemory x(in.x);
  DeviceMemory weight(in.weight);
  DeviceFlag flag;
  require(cuda::rmsnorm(x.as<float>(), weight.as<float>(), in.eps, in.n_rows, in.n, x.as<float>(),
                        flag.pointer(), kStream),
          "rmsnorm");
  return flag.raised() ? Floats{} : x.read<float>();
}

Floats DeviceKernels::layernorm(const Norm& in) {
  DeviceMemory x(in.x);
  DeviceMemory weight(in.weight);
  DeviceMemory bias(in.bias);
  DeviceFlag flag;
  require(cuda::layernorm(x.as<float>(), weight.as<float>(),
                          in.bias.empty() ? nullptr : bias.as<float>(), in.eps, in.n_rows, in.n,
                          x.as<float>(), flag.pointer(), kStream),
          "layernorm");
  return flag.raised() ? Floats{} : x.read<float>();
}

Floats DeviceKernels::rope(const Rope& in) {
  DeviceMemory x(in.x);
  DeviceMemory cos(behind(in.cos, in.rope_dim / 2));
  DeviceMemory sin(behind(in.sin, in.rope_dim / 2));
  DeviceMemory positions(positions_of(in.n_rows));
  const auto launch = in.pairs == Pairs::kHalves ? cuda::rope_halves : cuda::rope_adjacent;
  require(launch(x.as<float>(), cos.as<float>(), sin.as<float>(), positions.as<unsigned>(),
                 in.n_rows, in.n_heads, in.head_dim, in.rope_dim, kStream),
          "rope");
  return x.read<float>();
}

std::vector<std::uint16_t> DeviceKernels::kv_write_f16(const Floats& x) {
  DeviceMemory from(x);
  DeviceMemory positions(positions_of(1));
  DeviceMemory out(std::vector<std::uint16_t>((kRowsBefore + 1) * x.size()));
  DeviceFlag flag;
  require(cuda::kv_write_f16(from.as<float>(), nullptr, positions.as<unsigned>(), 1, 1,
                             narrow(x.size()), x.size(), x.size(), out.as<std::uint16_t>(), nullptr,
                             flag.pointer(), kStream),
          "kv_write_f16");
  if (flag.raised()) return {};
  return last_row(out.read<std::uint16_t>());
}

Floats DeviceKernels::kv_write_f32(const Floats& x) {
  DeviceMemory from(x);
  DeviceMemory positions(positions_of(1));
  DeviceMemory out(Floats((kRowsBefore + 1) * x.size()));
  DeviceFlag flag;
  require(cuda::kv_write_f32(from.as<float>(), nullptr, positions.as<unsigned>(), 1, 1,
                             narrow(x.size()), x.size(), x.size(), out.as<float>(), nullptr,
                             flag.pointer(), kStream),
          "kv_write_f32");
  if (flag.raised()) return {};
  return last_row(out.read<float>());
}

// `launch(x, n, n_all, out, flag, stream)` on the device.
template <class T, class Launch>
std::vector<T> rounded(Launch launch, const Floats& x, std::size_t padding) {
  const std::size_t n_all = x.size() + padding;
  DeviceMemory from(x);
  DeviceMemory out(n_all * sizeof(T));
  DeviceFlag flag;
  require(launch(from.as<float>(), x.size(), n_all, out.as<T>(), flag.pointer(), kStream), "round");
  return flag.raised() ? std::vector<T>{} : out.read<T>();
}

std::vector<std::uint16_t> DeviceKernels::round_f16(const Floats& x, std::size_t padding) {
  return rounded<std::uint16_t>(cuda::round_f16, x, padding);
}

std::vector<std::uint16_t> DeviceKernels::round_bf16(const Floats& x, std::size_t padding) {
  return rounded<std::uint16_t>(cuda::round_bf16, x, padding);
}

Floats DeviceKernels::round_f32(const Floats& x, std::size_t padding) {
  return rounded<float>(cuda::round_f32, x, padding);
}

Floats DeviceKernels::elementwise(Elementwise op, const Floats& x, const Floats& y, float factor) {
  DeviceMemory to(x);
  DeviceMemory from(y);
  float* a = to.as<float>();
  const float* b = from.as<float>();
  const auto launch = [&] {
    switch (op) {
      case Elementwise::kAdd:
        return cuda::add(a, b, x.size(), kStream);
      case Elementwise::kMul:
        return cuda::mul(a, b, x.size(), kStream);
      case Elementwise::kScale:
        return cuda::scale(a, factor, x.size(), kStream);
      case Elementwise::kAddScaled:
        return cuda::add_scaled(a, b, factor, x.size(), kStream);
      case Elementwise::kSiluMul:
        return cuda::silu_mul(a, b, x.size(), kStream);
      case Elementwise::kSoftcap:
        return cuda::softcap(a, factor, x.size(), kStream);
    }
    return cudaErrorInvalidValue;
  };
  require(launch(), "an elementwise operator");
  return to.read<float>();
}

Floats DeviceKernels::function(kernels::Function f, const Floats& x) {
  DeviceMemory to(x);
  require(cuda::apply(f, to.as<float>(), x.size(), to.as<float>(), kStream), "a function");
  return to.read<float>();
}

Choices DeviceKernels::choose(const Floats& logits, std::uint64_t n) {
  const std::size_t n_rows = logits.size() / n;
  DeviceMemory x(logits);
  DeviceMemory ids(n_rows * sizeof(int));
  DeviceMemory largest(n_rows * sizeof(float));
  DeviceMemory margins(n_rows * sizeof(float));
  DeviceMemory logprobs(n_rows * sizeof(float));
  DeviceFlag flag;
  require(cuda::argmax(x.as<float>(), narrow(n_rows), narrow(n), ids.as<int>(), largest.as<float>(),
                       margins.as<float>(), flag.pointer(), kStream),
          "argmax");
  require(cuda::logprob(x.as<float>(), narrow(n_rows), narrow(n), ids.as<int>(),
                        largest.as<float>(), logprobs.as<float>(), kStream),
          "logprob");
  if (flag.raised()) return {};
  return {ids.read<int>(), largest.read<float>(), margins.read<float>(), logprobs.read<float>()};
}

}  // namespace

std::unique_ptr<Kernels> make_device_kernels() { return std::make_unique<DeviceKernels>(); }

}  // namespace detrun::smoke
