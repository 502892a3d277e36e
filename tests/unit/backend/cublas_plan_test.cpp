// What profile cublas refuses, and how it tests itself, on the emulated device with an emulated
// cuBLASLt. What a fake can show here and what it cannot is said in cublas_products_test.cpp.
#include <cstring>

#include "kernels/cuda/emulated_runtime/cublas_lt_algorithm.h"
#include "tests/unit/backend/cublas_support.h"

namespace {

using namespace detrun;
using namespace detrun::test;
using emulation::LtAlgorithm;

constexpr std::uint32_t kRows = 8;

struct OneWeight {
  explicit OneWeight(QType type = QType::kF16) : matrix(type, 24, 40, 7) {}
  std::vector<float> run(std::uint32_t rows = kRows) const {
    return multiply(*backend, *weight, 24, numbers(QType::kF32, std::size_t{rows} * 40, 3), rows,
                    rows);
  }
  Matrix matrix;
  std::unique_ptr<Backend> backend = make_cuda_backend({});
  std::unique_ptr<Weight> weight = matrix.load(*backend);
};

/// The plan with the algorithm of its first product changed.
ProductPlan with(ProductPlan plan, const std::function<void(LtAlgorithm&)>& change) {
  LtAlgorithm algorithm;
  auto& bytes = plan.products.at(0).algorithm;
  std::memcpy(&algorithm, bytes.data(), sizeof(algorithm));
  change(algorithm);
  std::memcpy(bytes.data(), &algorithm, sizeof(algorithm));
  return plan;
}

void check_inconclusive(Backend& backend, const ProductPlan& plan,
                        const std::vector<std::string>& parts) {
  const Refusal found = refusal_of([&] { backend.use_products(&plan); });
  CHECK(found.kind == ExitCode::kInconclusive);
  for (const std::string& part : parts) CHECK_MESSAGE(found.has(part), found.text);
}

}  // namespace

TEST_CASE("a program without the library refuses the profile, and nothing else") {
  const Behaviour missing({.missing = true});
  const OneWeight on;
  const Refusal found = refusal_of([&] { on.backend->pin_products(kRows); });
  CHECK(found.kind == ExitCode::kUsage);
  CHECK_MESSAGE(found.has("profile cublas needs cuBLASLt"), found.text);
  CHECK(found.has("--numerics portable"));
  CHECK(refusal_of([&] { on.backend->product_library(); }).text == found.text);
  on.backend->use_products(nullptr);
  CHECK(on.run().size() == kRows * 24);
}

TEST_CASE("a library that does not start is an error with its words") {
  const Behaviour broken({.fails_to_start = true});
  const OneWeight on;
  const Refusal found = refusal_of([&] { on.backend->pin_products(kRows); });
  CHECK(found.kind == ExitCode::kInternal);
  CHECK_MESSAGE(found.has("cuBLASLt 1.2.3 does not start: CUBLAS_STATUS_NOT_INITIALIZED"),
                found.text);
  CHECK(refusal_of([&] { on.backend->product_library(); }).text == found.text);
}

TEST_CASE("the version of the library is told, and a plan of another one is inconclusive") {
  const Behaviour other({.version = 130100});
  const OneWeight on;
  CHECK(on.backend->product_library() == "13.1.0");
  ProductPlan plan = on.backend->pin_products(kRows);
  CHECK(plan.cublaslt == "13.1.0");
  plan.cublaslt = "12.8.4";
  check_inconclusive(*on.backend, plan, {"version of cuBLASLt: recorded 12.8.4, here 13.1.0"});
}

TEST_CASE("quantized weights of many rows are refused with tensor, type and remedy") {
  const Behaviour normal;
  const auto backend = make_cuda_backend({});
  const auto good = Matrix(QType::kF16, 8, 32, 1).load(*backend);
  const auto bad = QuantizedMatrix(5).load(*backend);
  const Refusal found = refusal_of([&] { backend->pin_products(kRows); });
  CHECK(found.kind == ExitCode::kUsage);
  CHECK_MESSAGE(found.has("tensor blk.0.quantized is Q8_0"), found.text);
  CHECK(found.has("--numerics portable"));
}

TEST_CASE("settings that change the arithmetic of the library are refused by name") {
  const Behaviour normal;
  const OneWeight on;
  const ProductPlan plan = on.backend->pin_products(kRows);
  for (const char* name :
       {"CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION",
        "CUBLAS_EMULATION_STRATEGY", "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT",
        "NVIDIA_TF32_OVERRIDE", "CUDA_FORCE_PTX_JIT"}) {
    for (const char* harmless : {"", "0"}) {
      const Variable variable(name, harmless);
      CHECK(on.backend->pin_products(kRows) == plan);
      on.backend->use_products(&plan);
    }
    const Variable variable(name, "1");
    for (const bool recording : {true, false}) {
      const Refusal found = refusal_of([&] {
        recording ? static_cast<void>(on.backend->pin_products(kRows))
                  : on.backend->use_products(&plan);
      });
      CHECK(found.kind == ExitCode::kUsage);
      CHECK_MESSAGE(found.has(std::string(name) + "=1 in the environment"), found.text);
      CHECK(found.has(std::string("unset ") + name));
      CHECK(refusal_of([&] { on.backend->product_library(); }).text == found.text);
    }
    on.backend->use_products(nullptr);
  }
  const Variable other("CUBLAS_WORKSPACE_CONFIG", ":4096:8");
  on.backend->use_products(&plan);
}

TEST_CASE("algorithms without a fixed order of sums, or that round more, are passed over") {
  const Behaviour careless({.ignores_masks = true});
  for (const QType type : {QType::kF32, QType::kF16, QType::kBF16}) {
    const OneWeight on(type);
    const ProductPlan plan = on.backend->pin_products(kRows);
    CHECK_MESSAGE(plan.products.at(0).description.starts_with("algorithm 2, "),
                  plan.products.at(0).description);
    check_inconclusive(*on.backend,
                       with(plan,
                            [](LtAlgorithm& a) {
                              a.id = emulation::kInPlace;
                              a.reduction = CUBLASLT_REDUCTION_SCHEME_INPLACE;
                            }),
                       {"24x40 with 8 rows: recorded (algorithm 2,", "here (algorithm 3,",
                        "in the order in which they get ready"});
    for (const std::uint32_t id : {emulation::kHalfSums, emulation::kOtherInputs}) {
      check_inconclusive(*on.backend, with(plan, [=](LtAlgorithm& a) { a.id = id; }),
                         {"rounds inputs or sums to another type"});
    }
  }
}

TEST_CASE("a shape that no algorithm is good for is refused when it is pinned") {
  const Behaviour refusing({.refused_outputs = 24});
  const OneWeight on;
  const Refusal found = refusal_of([&] { on.backend->pin_products(kRows); });
  CHECK(found.kind == ExitCode::kUsage);
  CHECK_MESSAGE(found.has("no algorithm for F16 24x40 with 8 rows"), found.text);
}

TEST_CASE("algorithms that the library does not take back are inconclusive") {
  const Behaviour normal;
  const OneWeight on;
  const ProductPlan plan = on.backend->pin_products(kRows);
  const std::vector<std::string> parts = {
      "algorithm of F16 24x40 with 8 rows: recorded (" + plan.products[0].description + ")",
      "here cuBLASLt refuses it: CUBLAS_STATUS_NOT_SUPPORTED"};
  check_inconclusive(*on.backend, with(plan, [](LtAlgorithm& a) { ++a.n; }), parts);
  check_inconclusive(*on.backend, with(plan, [](LtAlgorithm& a) { ++a.version; }), parts);
  ProductPlan of_other_rows = plan;
  of_other_rows.rows = 16;
  check_inconclusive(*on.backend, of_other_rows, {"24x40 with 16 rows", "refuses it"});
  emulation::set_cublas_lt({.refused_outputs = 24});
  check_inconclusive(*on.backend, plan, parts);
}

TEST_CASE("a plan that cannot be of ours is inconclusive, with the field and both values") {
  const Behaviour normal;
  const OneWeight on;
  const ProductPlan plan = on.backend->pin_products(kRows);
  ProductPlan wrong = plan;
  wrong.rows = 0;
  check_inconclusive(*on.backend, wrong, {"rows of a product: recorded 0, here 1 to"});
  wrong.rows = 0xffffffffU;
  check_inconclusive(*on.backend, wrong, {"rows of a product: recorded 4294967295"});
  wrong = plan;
  wrong.workspace_bytes = std::uint64_t{1} << 30U;
  check_inconclusive(*on.backend, wrong,
                     {"workspace of a product: recorded 1073741824 bytes, here at most 33554432"});
  wrong.workspace_bytes = 100;
  check_inconclusive(
      *on.backend, wrong,
      {"workspace of F16 24x40 with 8 rows: recorded 100 bytes, here it needs 1536"});
  wrong = plan;
  wrong.products[0].type = QType::kQ8_0;
  check_inconclusive(*on.backend, wrong, {"type of a product: recorded Q8_0"});
  wrong.products[0].type = static_cast<QType>(777);
  check_inconclusive(*on.backend, wrong, {"type of a product: recorded type 777"});
  wrong = plan;
  wrong.products[0].n = 0;
  check_inconclusive(*on.backend, wrong, {"size of a product: recorded 0x40"});
}

TEST_CASE("a plan that is refused leaves the one before in use") {
  const Behaviour normal;
  const OneWeight on;
  const ProductPlan plan = on.backend->pin_products(kRows);
  const std::vector<float> before = on.run();
  ProductPlan wrong = plan;
  wrong.cublaslt = "0.0.1";
  refusal_of([&] { on.backend->use_products(&wrong); });
  CHECK(on.run() == before);
}

TEST_CASE("the plan decides about the algorithm, whatever the heuristic would choose") {
  const Behaviour normal;
  const OneWeight on;
  const ProductPlan plan = on.backend->pin_products(kRows);
  const std::vector<float> before = on.run();
  ProductPlan other = with(plan, [](LtAlgorithm& a) {
    a.id = emulation::kOnePart;
    a.parts = 1;
    a.reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
  });
  check_inconclusive(*on.backend, other,
                     {"recorded (algorithm 2, ", "its bytes mean (algorithm 1, "});
  std::string& words = other.products.at(0).description;
  words.replace(0, words.find(", swizzle"),
                "algorithm 1, tile 7, stages 7, split-K 1, reduction scheme 0");
  on.backend->use_products(&other);
  CHECK(on.run() != before);
  emulation::take_cublas_lt_calls();
  on.run();
  CHECK(emulation::take_cublas_lt_calls().at(0).algorithm == emulation::kOnePart);
}

TEST_CASE("a product that the plan lacks is inconclusive when it is needed, naming the tensor") {
  const Behaviour normal;
  const OneWeight on;
  const Matrix others[] = {{QType::kF16, 26, 40, 1},
                           {QType::kF16, 24, 42, 1},
                           {QType::kF16, 22, 38, 1},
                           {QType::kBF16, 24, 40, 1},
                           {QType::kF32, 24, 40, 1}};
  for (const Matrix& matrix : others) {
    const auto other = make_cuda_backend({});
    const auto weight = matrix.load(*other);
    const ProductPlan plan = other->pin_products(kRows);
    on.backend->use_products(&plan);
    CHECK(on.run(1).size() == 24);
    const Refusal found = refusal_of([&] { on.run(); });
    CHECK(found.kind == ExitCode::kInconclusive);
    CHECK_MESSAGE(found.has("lack F16 24x40 with 8 rows, needed for tensor w"), found.text);
  }
}

TEST_CASE("more rows than the plan's are inconclusive, and name --chunk") {
  const Behaviour normal;
  const OneWeight on;
  on.backend->pin_products(kRows);
  const Refusal found = refusal_of([&] { on.run(kRows + 1); });
  CHECK(found.kind == ExitCode::kInconclusive);
  CHECK_MESSAGE(found.has("recorded at most 8, here 9"), found.text);
  CHECK(found.has("--chunk 8"));
}

TEST_CASE("one row at a time needs no products") {
  const Behaviour normal;
  const OneWeight on;
  const ProductPlan plan = on.backend->pin_products(1);
  CHECK(plan.products.empty());
  CHECK(plan.rows == 1);
  on.backend->use_products(&plan);
  CHECK(on.run(1).size() == 24);
}

TEST_CASE("the self-test computes every product as often as told and passes where bits repeat") {
  const Behaviour normal;
  for (const QType type : {QType::kF32, QType::kF16, QType::kBF16}) {
    const OneWeight on(type);
    const auto second = Matrix(QType::kF16, 7, 40, 1).load(*on.backend);
    on.backend->pin_products(kRows);
    emulation::take_cublas_lt_calls();
    on.backend->test_products(20);
    const auto calls = emulation::take_cublas_lt_calls();
    CHECK(calls.size() == 40);
    const std::uint64_t before = emulation::allocated_bytes();
    on.backend->test_products(2);
    CHECK(emulation::allocated_bytes() == before);
  }
}

TEST_CASE("the self-test finds one bit that differs once, and names the product and the time") {
  for (const std::uint64_t flipped : {1U, 2U, 7U, 20U}) {
    const Behaviour unsteady({.flipped_call = flipped});
    const OneWeight on;
    on.backend->pin_products(kRows);
    const Refusal found = refusal_of([&] { on.backend->test_products(20); });
    CHECK(found.kind == ExitCode::kInternal);
    CHECK_MESSAGE(found.has("F16 24x40 with 8 rows (algorithm 2,"), found.text);
    CHECK(found.has("time " + std::to_string(std::max<std::uint64_t>(flipped, 2)) + " of 20"));
    CHECK(found.has("element 0"));
    CHECK(found.has("--numerics portable"));
  }
}
