// The CUDA backend through its front door, on the emulated device: every operator gives the bits of
// the scalar CPU, whichever kernel it chooses; loading, transfers and what it tells of itself.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "../../parity/inputs.h"
#include "detrun/backend.h"
#include "detrun/error.h"
#include "kernels/cuda/products.h"

namespace {

using namespace detrun;
using parity::Inputs;

/// The same call on the emulated device and on the scalar CPU.
struct Pair {
  std::unique_ptr<Backend> device = make_cuda_backend({});
  std::unique_ptr<Backend> cpu = make_cpu_backend({1, "scalar"});
  std::array<Backend*, 2> both{device.get(), cpu.get()};
};

std::unique_ptr<Buffer> buffer_of(Backend& backend, std::span<const float> values) {
  auto buffer = backend.new_buffer(values.size());
  backend.upload(*buffer, values);
  return buffer;
}

std::vector<float> values_of(Backend& backend, const Buffer& buffer) {
  std::vector<float> values(buffer.n_floats());
  backend.download(buffer, 0, values);
  return values;
}

/// body(backend) -> what it computed; the two must agree in every bit.
template <class Body>
void check_same(Pair& pair, Body&& body) {
  const std::vector<float> found = body(*pair.device);
  const std::vector<float> expected = body(*pair.cpu);
  CHECK_SAME_BITS(found, expected, expected.size() / 2);
}

struct Shape {
  std::uint64_t k, n;
};

/// Widths whose rows start at every address that kernels cannot load from, and others.
std::vector<Shape> shapes_of(std::uint32_t gguf_id) {
  const parity::BlockShape* blocks = parity::block_shape(gguf_id);
  if (blocks == nullptr) return {{45, 37}, {64, 3}};
  if (blocks->elems == 32) return {{96, 37}, {128, 3}};
  return {{256, 37}, {512, 3}};
}

std::vector<std::uint32_t> product_types() {
  std::vector<std::uint32_t> types{0, 1, 30};
  for (const parity::BlockShape& shape : parity::block_shapes()) types.push_back(shape.gguf_id);
  return types;
}

struct Matrix {
  std::uint32_t gguf_id;
  std::uint64_t n;
};

struct Multiplied {
  std::vector<float> values;  ///< of all outputs, one behind the other
  std::uint64_t launches = 0;
};

/// One call of matmul with matrices of 256 columns.
Multiplied multiply(Backend& backend, const std::vector<Matrix>& matrices, std::uint32_t rows) {
  constexpr std::uint64_t kK = 256;
  Inputs inputs(7);
  std::vector<std::unique_ptr<Weight>> weights;
  std::vector<std::unique_ptr<Buffer>> outputs;
  std::vector<MatmulTask> tasks;
  for (const auto& [type, n] : matrices) {
    weights.push_back(backend.load_weight({"w", QType{type}, kK, n, inputs.matrix(type, kK, n)}));
    outputs.push_back(backend.new_buffer(rows * n));
    tasks.push_back({weights.back().get(), outputs.back().get()});
  }
  const auto x = buffer_of(backend, inputs.plain(rows * kK));
  backend.synchronize();
  const std::uint64_t before = emulation::launches_executed();
  backend.matmul(tasks, *x, rows);
  backend.synchronize();
  Multiplied found{{}, emulation::launches_executed() - before};
  for (const auto& output : outputs) {
    const std::vector<float> values = values_of(backend, *output);
    found.values.insert(found.values.end(), values.begin(), values.end());
  }
  return found;
}

}  // namespace

TEST_CASE("every tensor type that a file may have is multiplied on the device") {
  for (const std::uint32_t type : product_types()) {
    CAPTURE(type);
    CHECK(cuda::find_product(type) != nullptr);
  }
}

TEST_CASE("products of one, few and many rows have the bits of the CPU, for every type and width") {
  Pair pair;
  for (const std::uint32_t type : product_types()) {
    if (cuda::find_product(type) == nullptr) continue;
    for (const Shape& shape : shapes_of(type)) {
      const auto matrix = Inputs(type + 1).matrix(type, shape.k, shape.n);
      const WeightView view{"w", QType{type}, shape.k, shape.n, matrix};
      for (const std::uint32_t rows : {1U, 2U, 3U, 4U, 65U}) {
        CAPTURE(type);
        CAPTURE(shape.k);
        CAPTURE(rows);
        check_same(pair, [&](Backend& backend) {
          const auto weight = backend.load_weight(view);
          const auto x = buffer_of(backend, Inputs(rows).plain(rows * shape.k));
          const auto y = backend.new_buffer(rows * shape.n);
          const MatmulTask task{weight.get(), y.get()};
          backend.matmul({&task, 1}, *x, rows);
          return values_of(backend, *y);
        });
      }
    }
  }
}

TEST_CASE("weights of several types share their activations in one call") {
  Pair pair;
  const std::vector<Matrix> matrices = {{8, 5}, {1, 6}, {12, 7}, {30, 8}, {8, 9}};
  for (const std::uint32_t rows : {1U, 3U, 6U}) {
    CAPTURE(rows);
    check_same(pair, [&](Backend& backend) {
      const Multiplied found = multiply(backend, matrices, rows);
      if (&backend == pair.device.get() && rows == 1) {  // quantized once, floats looked at beside
        CHECK(found.launches == matrices.size() + 1);
      }
      return found.values;
    });
  }
}

TEST_CASE("weights of one type are multiplied with a row in one launch, three of them at most") {
  Pair pair;
  for (const std::uint32_t type : {1U, 8U}) {
    for (const std::uint32_t rows : {1U, 2U, 5U}) {
      CAPTURE(type);
      CAPTURE(rows);
      check_same(pair, [&](Backend& backend) {
        const Multiplied found =
            multiply(backend, {{type, 70}, {type, 9}, {type, 33}, {type, 1}}, rows);
        if (&backend == pair.device.get() && rows < 5) {
          const std::uint64_t quantize = type == 8 ? 1 : 0;
          CHECK(found.launches == quantize + 2 * rows);
        }
        return found.values;
      });
    }
  }
}

TEST_CASE("rows of an embedding come out as the CPU decodes them, in the order of the tokens") {
  Pair pair;
  for (const std::uint32_t type : product_types()) {
    if (cuda::find_product(type) == nullptr) continue;
    const Shape shape = shapes_of(type)[0];
    const auto matrix = Inputs(type + 3).matrix(type, shape.k, shape.n);
    const std::vector<std::int32_t> tokens{36, 0, 7, 7, 1};
    CAPTURE(type);
    check_same(pair, [&](Backend& backend) {
      const auto table = backend.load_weight({"w", QType{type}, shape.k, shape.n, matrix});
      const auto out = backend.new_buffer(tokens.size() * shape.k);
      backend.embed(*table, tokens, *out);
      return values_of(backend, *out);
    });
  }
}

TEST_CASE("norms, rotations and elementwise operators have the bits of the CPU") {
  Pair pair;
  constexpr std::uint32_t kRows = 3, kHeads = 5, kHeadDim = 12, kRopeDim = 8, kPos0 = 70;
  constexpr std::uint32_t kWidth = kHeads * kHeadDim;
  for (const bool in_place : {false, true}) {
    check_same(pair, [&](Backend& backend) {
      Inputs inputs(11);
      const auto x = buffer_of(backend, inputs.plain(kRows * kWidth));
      const auto w = buffer_of(backend, inputs.plain(kWidth));
      const auto y = backend.new_buffer(kRows * kWidth);
      Buffer& out = in_place ? *x : *y;
      backend.rmsnorm(*x, *w, 1e-5F, kRows, kWidth, out);
      return values_of(backend, out);
    });
  }
  for (const RopePairs pairs : {RopePairs::kAdjacent, RopePairs::kHalves}) {
    check_same(pair, [&](Backend& backend) {
      Inputs inputs(13);
      std::vector<float> cos((kPos0 + kRows) * kRopeDim / 2), sin(cos.size());
      make_rope_tables({kRopeDim, 10000.0, {}}, kPos0 + kRows, cos, sin);
      const auto cos_buffer = buffer_of(backend, cos);
      const auto sin_buffer = buffer_of(backend, sin);
      const auto x = buffer_of(backend, inputs.plain(kRows * kWidth));
      backend.rope(*x, {pairs, kRopeDim, cos_buffer.get(), sin_buffer.get()}, kRows, kHeads,
                   kHeadDim, kPos0);
      return values_of(backend, *x);
    });
  }
  for (const std::uint64_t n : {1U, 255U, 1001U}) {
    CAPTURE(n);
    check_same(pair, [&](Backend& backend) {
      Inputs inputs(17);
      const auto x = buffer_of(backend, inputs.plain(n + 1));  // the last is not touched
      const auto y = buffer_of(backend, inputs.plain(n + 1));
      backend.silu_mul(*x, *y, n);
      backend.add(*x, *y, n);
      return values_of(backend, *x);
    });
  }
}

TEST_CASE("placing errors changes no bit of what is computed without one") {
  Pair pair;
  pair.device->place_errors(true);
  constexpr std::uint32_t kRows = 3, kWidth = 64;
  for (const std::uint32_t type : {0U, 8U}) {
    check_same(pair, [&](Backend& backend) {
      Inputs inputs(29);
      const auto matrix = inputs.matrix(type, kWidth, kWidth);
      const auto weight = backend.load_weight({"w", QType{type}, kWidth, kWidth, matrix});
      const auto x = buffer_of(backend, inputs.plain(kRows * kWidth));
      const auto y = backend.new_buffer(kRows * kWidth);
      const MatmulTask task{weight.get(), y.get()};
      backend.matmul({&task, 1}, *x, kRows);
      backend.rmsnorm(*y, *x, 1e-5F, kRows, kWidth, *y);
      const auto cache = backend.new_kv_cache({KvType::kF32, 1, 8, 1, kWidth});
      backend.kv_write(*cache, 0, *x, *y, kRows, 5);
      const auto out = backend.new_buffer(kRows * kWidth);
      backend.attention(*x, *cache, 0, {1, 1, kWidth, 0.125F}, kRows, 5, *out);
      return values_of(backend, *out);
    });
  }
}

TEST_CASE("attention in blocks and in one pass has the bits of the CPU, and so has the cache") {
  Pair pair;
  constexpr std::uint32_t kHeads = 4, kKvHeads = 2, kHeadDim = 20, kContext = 140;  // stride 24
  for (const KvType type : {KvType::kF16, KvType::kF32}) {
    for (const std::uint32_t chunk : {1U, 3U, 70U}) {
      CAPTURE(chunk);
      std::array<std::vector<std::byte>, 2> kv;
      std::size_t next = 0;
      check_same(pair, [&](Backend& backend) {
        Inputs inputs(19);
        const auto cache = backend.new_kv_cache({type, 2, kContext, kKvHeads, kHeadDim});
        const auto out = backend.new_buffer(std::uint64_t{chunk} * kHeads * kHeadDim);
        std::vector<float> all;
        for (std::uint32_t pos = 0; pos + chunk <= kContext; pos += chunk) {
          const auto q = buffer_of(backend, inputs.plain(out->n_floats()));
          const auto k = buffer_of(backend, inputs.plain(std::size_t{chunk} * kKvHeads * kHeadDim));
          const auto v = buffer_of(backend, inputs.plain(k->n_floats()));
          backend.kv_write(*cache, 1, *k, *v, chunk, pos);
          backend.attention(*q, *cache, 1, {kHeads, kKvHeads, kHeadDim, 0.22F}, chunk, pos, *out);
          const std::vector<float> values = values_of(backend, *out);
          all.insert(all.end(), values.begin(), values.end());
          const auto bytes = cache->snapshot(1, pos);
          kv.at(next).insert(kv.at(next).end(), bytes.begin(), bytes.end());
        }
        ++next;
        return all;
      });
      CHECK(kv[0] == kv[1]);
      CHECK(kv[0].size() > 2 * kKvHeads * kHeadDim);
    }
  }
}

TEST_CASE("buffers begin as zeros, and large transfers in either direction keep every bit") {
  const auto backend = make_cuda_backend({});
  const auto fresh = backend->new_buffer(1000);
  CHECK(values_of(*backend, *fresh) == std::vector<float>(1000, 0.0F));
  std::vector<float> values((std::size_t{9} << 20) / sizeof(float) + 77);  // slices of 4 MiB
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
  const auto buffer = backend->new_buffer(values.size());
  backend->upload(*buffer, values);
  const std::vector<float> before = values;
  values.assign(values.size(), -1.0F);  // the source may change at once
  CHECK(values_of(*backend, *buffer) == before);
  std::vector<float> end(50);
  backend->download(*buffer, before.size() - end.size(), end);
  CHECK(parity::first_difference(end, std::span(before).last(end.size())) == -1);
}

TEST_CASE("a table that is also the head lies on the device once, packed as its kernels read it") {
  const std::uint64_t before = emulation::allocated_bytes();
  const auto backend = make_cuda_backend({});
  const std::uint64_t empty = emulation::allocated_bytes();
  constexpr std::uint64_t kK = 256, kN = 40;
  const auto matrix = Inputs(2).matrix(8, kK, kN);
  const auto weight = backend->load_weight({"w", QType::kQ8_0, kK, kN, matrix});
  const std::uint64_t n_bytes = backend->weight_bytes(QType::kQ8_0, kN, kK);
  CHECK(n_bytes >= matrix.size());
  CHECK(n_bytes < matrix.size() + 1024);
  CHECK(emulation::allocated_bytes() == empty + n_bytes);
  CHECK(empty > before);
}

TEST_CASE("a pass whose scratch was reserved allocates nothing") {
  const auto backend = make_cuda_backend({});
  constexpr std::uint32_t kRows = 5, kK = 256, kN = 40, kHeads = 4, kHeadDim = 16, kContext = 130;
  Inputs inputs(23);
  const auto quantized =
      backend->load_weight({"q", QType::kQ4_K, kK, kN, inputs.matrix(12, kK, kN)});
  const auto plain = backend->load_weight({"f", QType::kF16, kK, kN, inputs.matrix(1, kK, kN)});
  const auto x = buffer_of(*backend, inputs.plain(kRows * kK));
  const auto y = backend->new_buffer(kRows * kK);
  const auto cache = backend->new_kv_cache({KvType::kF16, 1, kContext, kHeads, kHeadDim});
  const std::uint64_t without = emulation::allocated_bytes();
  const PassShape shape{kRows, kContext, kK, kHeads, kHeadDim};
  backend->reserve(shape);
  const std::uint64_t reserved = emulation::allocated_bytes();
  CHECK(reserved > without);
  CHECK(reserved - without <= backend->scratch_bytes(shape));
  const MatmulTask tasks[] = {{quantized.get(), y.get()}, {plain.get(), y.get()}};
  const std::vector<std::int32_t> tokens(kRows, 1);
  for (const std::uint32_t rows : {1U, kRows}) {
    backend->embed(*plain, std::span(tokens).first(rows), *y);
    backend->matmul(tasks, *x, rows);
    for (const std::uint32_t pos : {0U, kContext - rows}) {
      backend->kv_write(*cache, 0, *x, *x, rows, pos);
      backend->attention(*x, *cache, 0, {kHeads, kHeads, kHeadDim, 0.25F}, rows, pos, *y);
    }
  }
  backend->synchronize();
  CHECK(emulation::allocated_bytes() == reserved);
}

TEST_CASE("everything that a backend allocated goes with it") {
  const std::uint64_t before = emulation::allocated_bytes();
  {
    const auto backend = make_cuda_backend({});
    const auto cache = backend->new_kv_cache({KvType::kF16, 1, 64, 1, 8});
    const auto buffer = backend->new_buffer(10);
    backend->reserve({4, 64, 64, 1, 8});
    CHECK(emulation::allocated_bytes() > before);
  }
  CHECK(emulation::allocated_bytes() == before);
}
