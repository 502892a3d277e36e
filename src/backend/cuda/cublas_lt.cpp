// See cublas_lt.h. Every call is checked; what describes a product is kept, one description a
// shape.
#include "backend/cuda/cublas_lt.h"

#include <cstring>
#include <map>
#include <span>

#include "backend/cuda/cublas_lt_problem.h"
#include "detrun/error.h"

namespace detrun {
namespace {

constexpr int kCandidates = 16;

std::string version_text(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

class CublasLtLibrary final : public CublasLt {
 public:
  explicit CublasLtLibrary(CublasLtCalls calls)
      : calls_(std::move(calls)), handle_(nullptr, calls_.destroy) {
    cublasLtHandle_t handle = nullptr;
    const cublasStatus_t status = calls_.create(&handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
      throw_internal("profile cublas: cuBLASLt " + version_text(calls_.version()) +
                         " does not start: " + calls_.status_text(status),
                     "it needs an NVIDIA GPU that its driver can use; or use --numerics portable");
    }
    handle_.reset(handle);
  }

  std::string version() const override { return version_text(calls_.version()); }
  std::vector<LtAlgorithm> choose(const ProductShape& shape,
                                  std::uint64_t workspace_bytes) override;
  std::optional<LtAlgorithm> check(const ProductShape& shape, const LtAlgorithmBytes& bytes,
                                   std::string& why) override;
  void multiply(const ProductShape& shape, const LtAlgorithmBytes& bytes,
                const LtOperands& operands, cudaStream_t stream) override;

 private:
  const LtProblem& problem(const ProductShape& shape);
  LtAlgorithm describe(QType type, const cublasLtMatmulAlgo_t& algorithm,
                       std::uint64_t workspace_bytes) const;
  template <class T>
  std::optional<T> configuration(const cublasLtMatmulAlgo_t& algorithm,
                                 cublasLtMatmulAlgoConfigAttributes_t attribute) const;

  CublasLtCalls calls_;  ///< first: it outlives what the library made
  LtOwner<cublasLtHandle_t> handle_;
  std::map<ProductShape, LtProblem> problems_;
};

const LtProblem& CublasLtLibrary::problem(const ProductShape& shape) {
  const auto found = problems_.find(shape);
  if (found != problems_.end()) return found->second;
  return problems_.emplace(shape, make_lt_problem(calls_, shape)).first->second;
}

template <class T>
std::optional<T> CublasLtLibrary::configuration(
    const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) const {
  T value{};
  std::size_t written = 0;
  const cublasStatus_t status =
      calls_.configuration(&algorithm, attribute, &value, sizeof(value), &written);
  if (status != CUBLAS_STATUS_SUCCESS || written != sizeof(value)) return std::nullopt;
  return value;
}

LtAlgorithm CublasLtLibrary::describe(QType type, const cublasLtMatmulAlgo_t& algorithm,
                                      std::uint64_t workspace_bytes) const {
  LtAlgorithm out{{}, workspace_bytes, {}, {}};
  std::memcpy(out.bytes.data(), &algorithm, out.bytes.size());
  const auto add = [&](const char* name, const auto& value) {
    out.description += std::string(out.description.empty() ? "" : ", ") + name + " " +
                       (value ? std::to_string(*value) : "unknown");
  };
  const auto parts = configuration<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  const auto reduction =
      configuration<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  add("algorithm", configuration<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID));
  add("tile", configuration<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID));
  add("stages", configuration<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID));
  add("split-K", parts);
  add("reduction scheme", reduction);
  add("swizzle", configuration<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING));
  add("custom option", configuration<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION));
  add("inner shape", configuration<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID));
  add("cluster", configuration<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));

  std::uint64_t numerics = 0;
  std::size_t written = 0;
  const bool known =
      calls_.capability(&algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &numerics,
                        sizeof(numerics), &written) == CUBLAS_STATUS_SUCCESS;
  if (!known || !parts || !reduction) {
    out.unfit = "it does not say how it sums";
  } else if ((*reduction & ~kLtFixedOrders) != 0) {
    out.unfit = "it adds parts of a sum in the order in which they get ready";
  } else if ((numerics & forbidden_numerics(type)) != 0) {
    out.unfit = "it rounds inputs or sums to another type";
  }
  return out;
}

std::vector<LtAlgorithm> CublasLtLibrary::choose(const ProductShape& shape,
                                                 std::uint64_t workspace_bytes) {
  const LtProblem& of = problem(shape);
  const auto wanted = make_lt_preference(calls_, shape.type, workspace_bytes);
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results{};
  int found = 0;
  const cublasStatus_t status =
      calls_.heuristic(handle_.get(), of.operation.get(), of.weight.get(), of.x.get(), of.y.get(),
                       of.y.get(), wanted.get(), kCandidates, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  expect_lt(calls_, status, "cublasLtMatmulAlgoGetHeuristic for " + product_text(shape));
  std::vector<LtAlgorithm> algorithms;
  for (const auto& result : std::span(results).first(static_cast<std::size_t>(found))) {
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms.push_back(describe(shape.type, result.algo, result.workspaceSize));
  }
  return algorithms;
}

std::optional<LtAlgorithm> CublasLtLibrary::check(const ProductShape& shape,
                                                  const LtAlgorithmBytes& bytes, std::string& why) {
  const LtProblem& of = problem(shape);
  cublasLtMatmulAlgo_t algorithm;
  static_assert(sizeof(algorithm) == sizeof(bytes));
  std::memcpy(&algorithm, bytes.data(), sizeof(algorithm));
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      calls_.check(handle_.get(), of.operation.get(), of.weight.get(), of.x.get(), of.y.get(),
                   of.y.get(), &algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS) {
    why = calls_.status_text(status);
    return std::nullopt;
  }
  return describe(shape.type, algorithm, result.workspaceSize);
}

void CublasLtLibrary::multiply(const ProductShape& shape, const LtAlgorithmBytes& bytes,
                               const LtOperands& operands, cudaStream_t stream) {
  const LtProblem& of = problem(shape);
  cublasLtMatmulAlgo_t algorithm;
  std::memcpy(&algorithm, bytes.data(), sizeof(algorithm));
  const float one = 1;
  const float zero = 0;
  expect_lt(
      calls_,
      calls_.matmul(handle_.get(), of.operation.get(), &one, operands.weight, of.weight.get(),
                    operands.x, of.x.get(), &zero, operands.y, of.y.get(), operands.y, of.y.get(),
                    &algorithm, operands.workspace, operands.workspace_bytes, stream),
      "cublasLtMatmul for " + product_text(shape));
}

}  // namespace

std::unique_ptr<CublasLt> open_cublas_lt() {
  return std::make_unique<CublasLtLibrary>(load_cublas_lt());
}

}  // namespace detrun
