// Products of many rows under profile cublas, on the emulated device with an emulated cuBLASLt.
// What this can show: that the algorithms of the plan are used and no others, the arguments of
// every call (shapes, leading dimensions, types, alignment, workspace, stream), their order, that
// activations are rounded and filled up with zeros, that one row is our own product, what is
// refused, that a difference in a repeated product is found. What it cannot show: that NVIDIA's
// algorithms give the same bits every time, that the bytes of an algorithm restore it in another
// process, that rows are independent there, how fast any of it is. The self-test and
// scripts/gpu_acceptance.sh ask a device.
#include <algorithm>
#include <cstring>

#include "tests/unit/backend/cublas_support.h"

namespace {

using namespace detrun;
using namespace detrun::test;

constexpr QType kTypes[] = {QType::kF32, QType::kF16, QType::kBF16};
constexpr std::uint32_t kRows = 8;
constexpr std::uint64_t kWorkspace = std::uint64_t{32} << 20U;

/// The order of summation of the emulated library: for even n two halves, each from its end.
float expected_element(const Matrix& w, std::uint32_t output, std::span<const float> x) {
  const std::uint32_t parts = w.n % 2 == 0 ? 2 : 1;
  float sum = 0;
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::uint32_t first = w.k * part / parts;
    float of_part = 0;
    for (std::uint32_t i = w.k * (part + 1) / parts; i > first; --i) {
      const float product =
          kernels::f32_mul(w.values[std::size_t{output} * w.k + i - 1], rounded(w.type, x[i - 1]));
      of_part = kernels::f32_add(of_part, product);
    }
    sum = kernels::f32_add(sum, of_part);
  }
  return sum;
}

std::vector<float> expected(const Matrix& w, std::span<const float> x, std::uint32_t rows) {
  std::vector<float> y;
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t i = 0; i < w.n; ++i) {
      y.push_back(expected_element(w, i, x.subspan(std::size_t{row} * w.k, w.k)));
    }
  }
  return y;
}

/// Whether all bits are equal, of numbers that are finite and mostly not zero.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  const auto dead = std::count_if(a.begin(), a.end(), [](float value) {
    return value == 0.0F || !kernels::f32_is_finite(value);
  });
  CHECK(static_cast<std::size_t>(dead) * 10 <= a.size());
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<CublasLtCall> calls_of(const std::string& name) {
  std::vector<CublasLtCall> calls = emulation::take_cublas_lt_calls();
  std::erase_if(calls, [&](const CublasLtCall& call) { return call.name != name; });
  return calls;
}

struct OneWeight {
  OneWeight(QType type, std::uint32_t n, std::uint32_t k) : matrix(type, n, k, 7 + n) {}
  std::vector<float> run(std::span<const float> x, std::uint32_t rows, std::uint32_t room) const {
    return multiply(*backend, *weight, matrix.n, x, rows, room);
  }
  Matrix matrix;
  std::unique_ptr<Backend> backend = make_cuda_backend({});
  std::unique_ptr<Weight> weight = matrix.load(*backend);
};

}  // namespace

TEST_CASE("many rows are multiplied by the plan's algorithm, rounded, whatever room there is") {
  const Behaviour normal;
  for (const QType type : kTypes) {
    for (const auto& [n, k] : {std::pair{37U, 45U}, {64U, 96U}, {2U, 300U}}) {
      const OneWeight on(type, n, k);
      CAPTURE(on.matrix.n);
      const std::vector<float> x = numbers(QType::kF32, std::size_t{kRows} * k, 3);
      const std::vector<float> portable = on.run(x, kRows, kRows);
      const ProductPlan plan = on.backend->pin_products(kRows);
      REQUIRE(plan.products.size() == 1);
      for (const std::uint32_t rows : {2U, 3U, 4U, 7U, kRows}) {
        for (const std::uint32_t room : {rows, kRows, kRows + 1}) {
          const auto of_rows = std::span(x).first(std::size_t{rows} * k);
          CHECK(same_bits(on.run(of_rows, rows, room), expected(on.matrix, x, rows)));
        }
      }
      CHECK_FALSE(same_bits(portable, expected(on.matrix, x, kRows)));
      on.backend->use_products(nullptr);
      CHECK(same_bits(on.run(x, kRows, kRows), portable));
    }
  }
}

TEST_CASE("a row has the same bits whatever the other rows are and how many there are") {
  const Behaviour normal;
  for (const QType type : kTypes) {
    const OneWeight on(type, 24, 40);
    on.backend->pin_products(kRows);
    std::vector<float> first = numbers(QType::kF32, std::size_t{kRows} * 40, 1);
    const std::vector<float> all = on.run(first, kRows, kRows);
    for (std::uint32_t rows = 2; rows <= kRows; ++rows) {
      std::vector<float> others = numbers(QType::kF32, std::size_t{rows} * 40, 100 + rows);
      const std::uint32_t kept = rows - 1;
      std::copy_n(first.begin() + kept * 40, 40, others.begin() + kept * 40);
      const std::vector<float> found = on.run(others, rows, rows);
      CHECK(same_bits({found.begin() + kept * 24, found.end()},
                      {all.begin() + kept * 24, all.begin() + rows * 24}));
    }
  }
}

TEST_CASE("one row is our own product, and so is every product of a weight that is not for many") {
  const Behaviour normal;
  const auto cpu = make_cpu_backend({1, "scalar"});
  for (const QType type : kTypes) {
    const OneWeight on(type, 24, 40);
    const auto head = on.matrix.load(*on.backend, /*many_rows=*/false);
    const auto on_cpu = on.matrix.load(*cpu);
    on.backend->pin_products(kRows);
    const std::vector<float> x = numbers(QType::kF32, std::size_t{5} * 40, 2);
    const auto row = std::span(x).first(40);
    CHECK(same_bits(on.run(row, 1, 1), multiply(*cpu, *on_cpu, 24, row, 1, 1)));
    CHECK(
        same_bits(multiply(*on.backend, *head, 24, x, 5, 5), multiply(*cpu, *on_cpu, 24, x, 5, 5)));
  }
  CHECK(calls_of("matmul").empty());
}

TEST_CASE("rows that are missing are zeros, also where other rows were before") {
  const Behaviour normal;
  for (const QType type : kTypes) {
    const OneWeight on(type, 6, 40);
    on.backend->pin_products(kRows);
    on.run(numbers(QType::kF32, std::size_t{kRows} * 40, 1), kRows, kRows);
    const auto x = on.backend->new_buffer(std::size_t{3} * 40);
    on.backend->upload(*x, numbers(QType::kF32, std::size_t{3} * 40, 2));
    const auto y = on.backend->new_buffer(std::size_t{kRows} * 6);
    const MatmulTask task{on.weight.get(), y.get()};
    on.backend->matmul({&task, 1}, *x, 3);
    std::vector<float> padding(std::size_t{kRows - 3} * 6);
    on.backend->download(*y, std::size_t{3} * 6, padding);
    CHECK(std::all_of(padding.begin(), padding.end(), [](float v) { return v == 0.0F; }));
  }
}

TEST_CASE("the heuristic is asked once a type and shape, ascending, for what has fixed bits") {
  const Behaviour normal;
  const auto backend = make_cuda_backend({});
  std::vector<std::unique_ptr<Weight>> weights;
  const Matrix matrices[] = {{QType::kBF16, 8, 24, 1}, {QType::kF16, 16, 24, 2},
                             {QType::kF16, 8, 40, 3},  {QType::kF16, 16, 24, 4},
                             {QType::kF32, 9, 10, 5},  {QType::kF16, 8, 24, 6}};
  for (const Matrix& matrix : matrices) weights.push_back(matrix.load(*backend));
  weights.push_back(Matrix(QType::kF16, 99, 24, 7).load(*backend, /*many_rows=*/false));
  weights.push_back(QuantizedMatrix(5).load(*backend, /*many_rows=*/false));
  const ProductPlan plan = backend->pin_products(kRows);
  CHECK(plan.cublaslt == "1.2.3");
  CHECK(plan.rows == kRows);
  CHECK(plan.workspace_bytes == kWorkspace);
  std::string order;
  for (const CublasLtCall& call : emulation::take_cublas_lt_calls()) {
    if (call.name == "heuristic")
      order += " " + std::to_string(call.m) + "x" + std::to_string(call.k);
    if (call.name == "create") order += " create";
  }
  CHECK(order == " create 9x10 8x24 8x40 16x24 8x24");
  const auto text = [](const PinnedProduct& product) {
    return std::string(qtype_info(product.type).name) + " " + std::to_string(product.n) + "x" +
           std::to_string(product.k);
  };
  std::string found;
  for (const PinnedProduct& product : plan.products) found += text(product) + ", ";
  CHECK(found == "F32 9x10, F16 8x24, F16 8x40, F16 16x24, BF16 8x24, ");
  CHECK(plan.products[0].description ==
        "algorithm 1, tile 7, stages 7, split-K 1, reduction scheme 0, swizzle 7, custom option 7, "
        "inner shape 6, cluster 6");
  CHECK(plan.products[1].description.find("algorithm 2, tile 7, stages 7, split-K 2, reduction "
                                          "scheme 2,") == 0);
}

TEST_CASE("the heuristic is told types, layout, alignment, workspace and what is not wanted") {
  const Behaviour normal;
  for (const QType type : kTypes) {
    const OneWeight on(type, 24, 40);
    on.backend->pin_products(kRows);
    const auto calls = calls_of("heuristic");
    REQUIRE(calls.size() == 1);
    const CublasLtCall& call = calls[0];
    const cudaDataType_t data = type == QType::kF32   ? CUDA_R_32F
                                : type == QType::kF16 ? CUDA_R_16F
                                                      : CUDA_R_16BF;
    CHECK(call.compute == (type == QType::kF32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F));
    CHECK(call.a_type == data);
    CHECK(call.b_type == data);
    CHECK(call.d_type == CUDA_R_32F);
    CHECK(call.a_op == CUBLAS_OP_T);
    CHECK(call.b_op == CUBLAS_OP_N);
    CHECK(call.m == 24);
    CHECK(call.n == kRows);
    CHECK(call.k == 40);
    CHECK(call.a_ld == 40);
    CHECK(call.b_ld == 40);
    CHECK(call.d_ld == 24);
    CHECK(call.reduction_mask ==
          (CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
    CHECK(call.workspace_bytes == kWorkspace);
    for (const std::uint32_t alignment : call.alignments) CHECK(alignment == 256);
    CHECK((call.impl_mask & CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F) == 0);
    CHECK((call.impl_mask & CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F) != 0);
    const bool tensor_cores = (call.impl_mask & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0;
    CHECK(tensor_cores == (type != QType::kF32));
    const bool tf32 = (call.impl_mask & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32) != 0;
    CHECK(tf32 == (type != QType::kF32));
    const bool f16 = (call.impl_mask & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F) != 0;
    CHECK(f16 == (type == QType::kF16));
    const bool bf16 = (call.impl_mask & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF) != 0;
    CHECK(bf16 == (type == QType::kBF16));
  }
}

TEST_CASE("every product has the plan's algorithm, one workspace and one stream") {
  const Behaviour normal;
  const OneWeight on(QType::kF16, 24, 40);
  on.backend->pin_products(kRows);
  const std::vector<float> x = numbers(QType::kF32, std::size_t{kRows} * 40, 2);
  on.run(x, kRows, kRows);
  on.run(std::span(x).first(80), 2, 2);
  const auto calls = calls_of("matmul");
  REQUIRE(calls.size() == 2);
  for (const CublasLtCall& call : calls) {
    CHECK(call.n == kRows);
    CHECK(call.alpha == 1.0F);
    CHECK(call.beta == 0.0F);
    CHECK(call.c == call.d);
    CHECK(call.algorithm == 2);
    CHECK(call.workspace_bytes == kWorkspace);
    CHECK(call.workspace == calls[0].workspace);
    CHECK(call.stream == calls[0].stream);
    CHECK(call.a == calls[0].a);
    for (const void* memory : {call.a, call.b, call.c, call.workspace}) {
      CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);
    }
  }
}

TEST_CASE("weights that share their input round it once") {
  const Behaviour normal;
  const auto backend = make_cuda_backend({});
  const Matrix a(QType::kF16, 24, 40, 1);
  const Matrix b(QType::kF16, 7, 40, 2);
  const Matrix c(QType::kF32, 10, 40, 3);
  const auto wa = a.load(*backend);
  const auto wb = b.load(*backend);
  const auto wc = c.load(*backend);
  backend->pin_products(kRows);
  const std::vector<float> x = numbers(QType::kF32, std::size_t{5} * 40, 2);
  const auto in = backend->new_buffer(x.size());
  backend->upload(*in, x);
  const auto ya = backend->new_buffer(std::size_t{5} * 24);
  const auto yb = backend->new_buffer(std::size_t{5} * 7);
  const auto yc = backend->new_buffer(std::size_t{5} * 10);
  const MatmulTask tasks[] = {{wa.get(), ya.get()}, {wb.get(), yb.get()}, {wc.get(), yc.get()}};
  backend->synchronize();
  const std::uint64_t before = emulation::launches_executed();
  backend->matmul(tasks, *in, 5);
  backend->synchronize();
  CHECK(emulation::launches_executed() - before == 2);
  const auto check = [&](const Matrix& matrix, const Buffer& y) {
    std::vector<float> out(y.n_floats());
    backend->download(y, 0, out);
    CHECK(same_bits(out, expected(matrix, x, 5)));
  };
  check(a, *ya);
  check(b, *yb);
  check(c, *yc);
}

TEST_CASE("a recorded plan gives the same bits in another process, without the heuristic") {
  const Behaviour normal;
  for (const QType type : kTypes) {
    const std::vector<float> x = numbers(QType::kF32, std::size_t{kRows} * 40, 2);
    const OneWeight recorded(type, 24, 40);
    const ProductPlan plan = recorded.backend->pin_products(kRows);
    const std::vector<float> before = recorded.run(x, kRows, kRows);
    emulation::set_cublas_lt({});
    const OneWeight replayed(type, 24, 40);
    replayed.backend->use_products(&plan);
    CHECK(same_bits(replayed.run(x, kRows, kRows), before));
    CHECK(replayed.backend->pin_products(kRows) == plan);
    std::string names;
    for (const CublasLtCall& call : emulation::take_cublas_lt_calls()) names += call.name + " ";
    CHECK(names == "create check matmul heuristic check ");
  }
}

TEST_CASE("memory that products take is counted and reserved before the first pass") {
  const Behaviour normal;
  for (const std::uint32_t rows : {2U, kRows, 20U}) {
    CAPTURE(rows);
    const OneWeight on(QType::kF16, 240, 400);
    on.backend->pin_products(kRows);
    const PassShape shape{rows, 32, 400, 2, 16};
    const std::uint64_t counted = on.backend->scratch_bytes(shape);
    CHECK(counted >= kWorkspace + kRows * 400 * 2 + (rows < kRows ? kRows * 240 * 4 : 0));
    CHECK(counted < kWorkspace + (std::uint64_t{1} << 18U));
    const std::uint64_t before = emulation::allocated_bytes();
    on.backend->reserve(shape);
    const std::uint64_t reserved = emulation::allocated_bytes();
    CHECK(reserved - before <= counted);
    CHECK(reserved - before > kWorkspace);
    const std::uint32_t used = std::min(rows, kRows);
    const auto x = on.backend->new_buffer(std::uint64_t{used} * 400);
    const auto y = on.backend->new_buffer(std::uint64_t{rows} * 240);
    const std::uint64_t with_buffers = emulation::allocated_bytes();
    const MatmulTask task{on.weight.get(), y.get()};
    on.backend->matmul({&task, 1}, *x, used);
    on.backend->matmul({&task, 1}, *x, 1);
    on.backend->synchronize();
    CHECK(emulation::allocated_bytes() == with_buffers);
  }
}
