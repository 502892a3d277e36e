// Matrix products and embeddings on the device: the file's blocks to the layouts of planes.h, then
// the launcher of the type.
#include <algorithm>
#include <cstring>

#include "device_memory.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launch_rows.h"
#include "kernels/cuda/planes.h"
#include "kernels_under_test.h"

namespace detrun::smoke {

namespace {

constexpr cudaStream_t kStream = nullptr;

unsigned narrow(std::uint64_t size) { return static_cast<unsigned>(size); }

/// m quantized rows side by side on the device.
class DeviceRows {
 public:
  DeviceRows(PreparedRows x, std::uint64_t k)
      : quants_(gather<std::int8_t>(
            x, k, [](const auto& row) { return row.q; }, k)),
        scales_(gather<float>(
            x, k, [](const auto& row) { return row.d; }, k / 32)),
        sums_(gather<float>(
            x, k, [](const auto& row) { return row.bx; }, k / 32)) {}
  cuda::QuantizedRows rows() {
    return {quants_.as<std::int8_t>(), scales_.as<float>(), sums_.as<float>()};
  }

 private:
  template <class T, class Part>
  static std::vector<T> gather(PreparedRows x, std::uint64_t k, Part part, std::uint64_t count) {
    std::vector<T> all;
    for (std::uint64_t r = 0; r < x.m; ++r) {
      const T* row =
          part(kernels::quantized_row(static_cast<const std::byte*>(x.rows) + r * x.row_bytes, k));
      all.insert(all.end(), row, row + count);
    }
    return all;
  }
  DeviceMemory quants_, scales_, sums_;
};

/// Weights in planes, by type; `planes()` is what the launchers take.
struct DeviceQ8_0 {
  explicit DeviceQ8_0(const std::byte* matrix, std::uint64_t n_elements)
      : scales(n_elements / 32 * 2), quants(n_elements) {
    const std::uint64_t n_blocks = n_elements / 32;
    std::vector<std::uint16_t> host_scales(n_blocks);
    std::vector<std::int8_t> host_quants(n_elements);
    cuda::split_q8_0(reinterpret_cast<const kernels::BlockQ8_0*>(matrix), n_blocks,
                     host_scales.data(), host_quants.data());
    scales.write(host_scales);
    quants.write(host_quants);
  }
  cuda::PlanesQ8_0 planes() { return {scales.as<std::uint16_t>(), quants.as<std::int8_t>()}; }
  DeviceMemory scales, quants;
};

struct DeviceQ4K {
  explicit DeviceQ4K(const std::byte* matrix, std::uint64_t n_elements)
      : d(n_elements / 256 * 4), scales(n_elements / 256 * 16), quants(n_elements / 2) {
    const std::uint64_t n_blocks = n_elements / 256;
    std::vector<std::uint16_t> host_d(2 * n_blocks);
    std::vector<std::uint8_t> host_scales(16 * n_blocks);
    std::vector<std::uint8_t> host_quants(128 * n_blocks);
    cuda::split_q4_k(reinterpret_cast<const kernels::BlockQ4_K*>(matrix), n_blocks, host_d.data(),
                     host_scales.data(), host_quants.data());
    d.write(host_d);
    scales.write(host_scales);
    quants.write(host_quants);
  }
  cuda::PlanesQ4K planes() {
    return {d.as<std::uint16_t>(), scales.as<std::uint8_t>(), quants.as<std::uint8_t>()};
  }
  DeviceMemory d, scales, quants;
};

struct DeviceQ6K {
  explicit DeviceQ6K(const std::byte* matrix, std::uint64_t n_elements)
      : d(n_elements / 256 * 2),
        scales(n_elements / 16),
        low(n_elements / 2),
        high(n_elements / 4) {
    const std::uint64_t n_blocks = n_elements / 256;
    std::vector<std::uint16_t> host_d(n_blocks);
    std::vector<std::int8_t> host_scales(16 * n_blocks);
    std::vector<std::uint8_t> host_low(128 * n_blocks);
    std::vector<std::uint8_t> host_high(64 * n_blocks);
    cuda::split_q6_k(reinterpret_cast<const kernels::BlockQ6_K*>(matrix), n_blocks, host_d.data(),
                     host_scales.data(), host_low.data(), host_high.data());
    d.write(host_d);
    scales.write(host_scales);
    low.write(host_low);
    high.write(host_high);
  }
  cuda::PlanesQ6K planes() {
    return {d.as<std::uint16_t>(), scales.as<std::int8_t>(), low.as<std::uint8_t>(),
            high.as<std::uint8_t>()};
  }
  DeviceMemory d, scales, low, high;
};

struct Job {
  const std::byte* matrix;
  std::uint64_t n, k;
  PreparedRows x;
  Form form;
};

template <class Element>
using FloatLauncher = cudaError_t (*)(const Element*, const float*, float*, unsigned, unsigned,
                                      cudaStream_t);
template <class Element>
using FloatGemm = cudaError_t (*)(const Element*, const float*, float*, unsigned, unsigned,
                                  unsigned, cudaStream_t);

template <class Element>
Floats float_product(const Job& job, FloatLauncher<Element> gemv, FloatGemm<Element> gemm) {
  const std::uint64_t m = job.x.m;
  const auto row_at = [&](std::uint64_t r) {
    return reinterpret_cast<const float*>(static_cast<const std::byte*>(job.x.rows) +
                                          r * job.x.row_bytes);
  };
  DeviceMemory y(m * job.n * sizeof(float));
  std::vector<Element> matrix(job.n * job.k);
  std::memcpy(matrix.data(), job.matrix, matrix.size() * sizeof(Element));
  if (job.form == Form::kVector) {
    DeviceMemory weight(matrix);
    for (std::uint64_t r = 0; r < m; ++r) {
      DeviceMemory x(row_at(r), job.k * sizeof(float));
      require(gemv(weight.as<Element>(), x.as<float>(), y.as<float>() + r * job.n, narrow(job.n),
                   narrow(job.k), kStream),
              "GEMV");
      require(cudaDeviceSynchronize(), "GEMV");
    }
    return y.read<float>();
  }
  Floats rows;
  for (std::uint64_t r = 0; r < m; ++r) rows.insert(rows.end(), row_at(r), row_at(r) + job.k);
  DeviceMemory x(rows);
  std::vector<Element> panels(cuda::panel_elements(job.n, job.k, cuda::kPanelOutputs));
  cuda::pack_panels(matrix.data(), job.n, job.k, panels.data());
  DeviceMemory weight(panels);
  DeviceMemory packed(cuda::panel_elements(m, job.k, cuda::kPanelRows) * sizeof(float));
  require(cuda::pack_rows(x.as<float>(), narrow(m), narrow(job.k), packed.as<float>(), kStream),
          "pack_rows");
  require(gemm(weight.as<Element>(), packed.as<float>(), y.as<float>(), narrow(m), narrow(job.n),
               narrow(job.k), kStream),
          "GEMM");
  return y.read<float>();
}

cudaError_t gemv_q8_0(cuda::PlanesQ8_0 weight, cuda::QuantizedRows x, float* y, unsigned n,
                      unsigned n_groups, cudaStream_t stream) {
  return cuda::gemv_q8_0(weight.scales, weight.quants, x.quants, x.scales, y, n, n_groups, stream);
}

/// Aligned rows of a GEMV: each row of x is copied on its own, as decoding one token would have it.
template <class Device, class Gemv, class Gemm>
Floats quantized_product(const Job& job, std::uint64_t group, Gemv gemv, Gemm gemm) {
  Device weight(job.matrix, job.n * job.k);
  DeviceMemory y(job.x.m * job.n * sizeof(float));
  const unsigned n_groups = narrow(job.k / group);
  if (job.form == Form::kMatrix) {
    DeviceRows x(job.x, job.k);
    require(gemm(weight.planes(), x.rows(), y.as<float>(), narrow(job.x.m), narrow(job.n), n_groups,
                 kStream),
            "GEMM");
    return y.read<float>();
  }
  for (std::uint64_t r = 0; r < job.x.m; ++r) {
    const auto* row = static_cast<const std::byte*>(job.x.rows) + r * job.x.row_bytes;
    DeviceRows x({row, job.x.row_bytes, 1}, job.k);
    require(gemv(weight.planes(), x.rows(), y.as<float>() + r * job.n, narrow(job.n), n_groups,
                 kStream),
            "GEMV");
    require(cudaDeviceSynchronize(), "GEMV");
  }
  return y.read<float>();
}

struct ProductRow {
  std::uint32_t gguf_id;
  Floats (*product)(const Job& job);
};
constexpr ProductRow kProducts[] = {
    {0, [](const Job& job) { return float_product(job, cuda::gemv_f32, cuda::gemm_f32); }},
    {1, [](const Job& job) { return float_product(job, cuda::gemv_f16, cuda::gemm_f16); }},
    {30, [](const Job& job) { return float_product(job, cuda::gemv_bf16, cuda::gemm_bf16); }},
    {8,
     [](const Job& job) {
       return quantized_product<DeviceQ8_0>(job, 32, gemv_q8_0, cuda::gemm_q8_0);
     }},
    {12,
     [](const Job& job) {
       return quantized_product<DeviceQ4K>(job, 256, cuda::gemv_q4_k, cuda::gemm_q4_k);
     }},
    {14,
     [](const Job& job) {
       return quantized_product<DeviceQ6K>(job, 256, cuda::gemv_q6_k, cuda::gemm_q6_k);
     }},
};

template <class Launch>
Floats run_embed(const std::vector<int>& ids, std::uint64_t k, Launch launch) {
  DeviceMemory tokens(ids);
  DeviceMemory out(ids.size() * k * sizeof(float));
  require(launch(tokens.as<int>(), narrow(ids.size()), narrow(k), out.as<float>()), "embed");
  return out.read<float>();
}

template <class Element, class Launcher>
Floats embed_elements(const std::byte* matrix, std::uint64_t n, std::uint64_t k,
                      const std::vector<int>& ids, Launcher launcher) {
  DeviceMemory weight(matrix, n * k * sizeof(Element));
  return run_embed(ids, k, [&](const int* tokens, unsigned count, unsigned cols, float* out) {
    return launcher(weight.as<Element>(), tokens, count, cols, out, kStream);
  });
}

template <class Device, class Launcher>
Floats embed_planes(const std::byte* matrix, std::uint64_t n, std::uint64_t k,
                    const std::vector<int>& ids, Launcher launcher) {
  Device weight(matrix, n * k);
  return run_embed(ids, k, [&](const int* tokens, unsigned count, unsigned cols, float* out) {
    return launcher(weight.planes(), tokens, count, cols, out, kStream);
  });
}

}  // namespace

bool device_has_product(std::uint32_t gguf_id) {
  return std::any_of(std::begin(kProducts), std::end(kProducts),
                     [&](const ProductRow& row) { return row.gguf_id == gguf_id; });
}

Floats device_product(std::uint32_t gguf_id, const std::byte* matrix, std::uint64_t n,
                      std::uint64_t k, PreparedRows x, Form form) {
  for (const ProductRow& row : kProducts) {
    if (row.gguf_id == gguf_id) return row.product({matrix, n, k, x, form});
  }
  throw DeviceFailure("no product of type " + std::to_string(gguf_id));
}

Floats device_embed(std::uint32_t gguf_id, const std::byte* matrix, std::uint64_t n,
                    std::uint64_t k, const std::vector<int>& ids) {
  switch (gguf_id) {
    case 0:
      return embed_elements<float>(matrix, n, k, ids, cuda::embed_f32);
    case 1:
      return embed_elements<std::uint16_t>(matrix, n, k, ids, cuda::embed_f16);
    case 30:
      return embed_elements<std::uint16_t>(matrix, n, k, ids, cuda::embed_bf16);
    case 8:
      return embed_planes<DeviceQ8_0>(matrix, n, k, ids, cuda::embed_q8_0);
    case 12:
      return embed_planes<DeviceQ4K>(matrix, n, k, ids, cuda::embed_q4_k);
    case 14:
      return embed_planes<DeviceQ6K>(matrix, n, k, ids, cuda::embed_q6_k);
    default:
      throw DeviceFailure("no embedding of type " + std::to_string(gguf_id));
  }
}

}  // namespace detrun::smoke
