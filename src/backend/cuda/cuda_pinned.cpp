// See cuda_pinned.h. Settings that would change what cuBLASLt computes are refused before it is
// opened, for it reads them then.
#include "backend/cuda/cuda_pinned.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>

#include "backend/operator_errors.h"
#include "detrun/error.h"
#include "kernels/cuda/launch_rows.h"

namespace detrun {
namespace {

// What NVIDIA recommends for the largest devices; one size for all, so that it decides nothing.
constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{32} << 20U;
constexpr std::uint32_t kRowsMax = 1U << 16U;  // a ledger may not ask for more memory than that
constexpr const char* kPortable = "use --numerics portable";

[[noreturn]] void throw_inconclusive(const std::string& what, const std::string& hint) {
  throw Error(ExitCode::kInconclusive, "profile cublas: " + what, hint);
}

// Beginnings of names of environment variables, harmless when empty or 0. CUBLAS_WORKSPACE_CONFIG
// is none of them: it is of cuBLAS, which chooses its workspace itself; we give ours. Nor are those
// that decide about the heuristic: what it chose is in the plan.
constexpr std::string_view kRefused[] = {
    "CUBLAS_EMULAT",                // ..._SINGLE_PRECISION, _STRATEGY: binary32 made of bfloat16
    "CUBLAS_FIXEDPOINT_EMULATION",  // sums of integers, with bits left out
    "NVIDIA_TF32_OVERRIDE",         // F32 rounded to TF32
    "CUDA_FORCE_PTX_JIT"};          // kernels made by the driver, not of the library's version

void refuse_environment() {
  for (const std::string_view refused : kRefused) {
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      const std::size_t end = text.find('=');
      if (!text.starts_with(refused) || end == std::string_view::npos) continue;
      const std::string_view value = text.substr(end + 1);
      if (value.empty() || value == "0") continue;
      throw_usage("profile cublas: " + std::string(text) +
                      " in the environment changes what cuBLASLt computes",
                  "unset " + std::string(text.substr(0, end)) + ", or " + kPortable);
    }
  }
}

bool is_multiplied(QType type) {
  return type == QType::kF32 || type == QType::kF16 || type == QType::kBF16;
}

std::uint64_t element_bytes(QType type) { return qtype_info(type).block_bytes; }

std::string type_name(QType type) {
  const QTypeInfo* info = find_qtype(static_cast<std::uint32_t>(type));
  return info == nullptr ? "type " + std::to_string(static_cast<std::uint32_t>(type))
                         : std::string(info->name);
}

bool comes_before(const PinnedProduct& a, const PinnedProduct& b) {
  return std::tuple(a.type, a.n, a.k) < std::tuple(b.type, b.n, b.k);
}

/// The first algorithm whose bits are fixed, and that the library takes back as bytes.
PinnedProduct choose(CublasLt& library, const ProductShape& shape) {
  std::string why = "it has none";
  for (const LtAlgorithm& algorithm : library.choose(shape, kWorkspaceBytes)) {
    if (algorithm.workspace_bytes > kWorkspaceBytes) continue;
    why = algorithm.unfit;
    if (why.empty() && library.check(shape, algorithm.bytes, why)) {
      return {shape.type, shape.n, shape.k, algorithm.bytes, algorithm.description};
    }
  }
  throw_usage("profile cublas: cuBLASLt " + library.version() + " has no algorithm for " +
                  product_text(shape) + " whose bits are fixed: " + why,
              kPortable);
}

/// Error kInconclusive unless the library still takes the algorithm, and its bits are fixed.
void check_product(CublasLt& library, const ProductShape& shape, const PinnedProduct& product,
                   std::uint64_t workspace_bytes) {
  constexpr const char* kHint = "replay it on the stack that recorded it";
  std::string why;
  const auto found = library.check(shape, product.algorithm, why);
  const std::string what =
      "algorithm of " + product_text(shape) + ": recorded (" + product.description + "), here ";
  if (!found) throw_inconclusive(what + "cuBLASLt refuses it: " + why, kHint);
  if (!found->unfit.empty()) {
    throw_inconclusive(what + "(" + found->description + ") " + found->unfit, kHint);
  }
  if (found->description != product.description) {
    throw_inconclusive(what + "its bytes mean (" + found->description + ")", kHint);
  }
  if (found->workspace_bytes > workspace_bytes) {
    throw_inconclusive("workspace of " + product_text(shape) + ": recorded " +
                           std::to_string(workspace_bytes) + " bytes, here it needs " +
                           std::to_string(found->workspace_bytes),
                       kHint);
  }
}

/// Numbers of both signs from 2^-8 to 1, the same ones every time, (n_rows, k): in another order
/// their sums have other bits.
DeviceMemory test_values(CudaTransfer& transfer, const ProductShape& shape, std::uint64_t n_rows) {
  const std::uint64_t n = n_rows * shape.k;
  const std::uint64_t bytes = element_bytes(shape.type);
  std::vector<std::byte> values(n * bytes);
  std::uint64_t state = n_rows;
  for (std::uint64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's, of MMIX
    const auto random = static_cast<std::uint32_t>(state >> 32U);
    const std::uint32_t exponent = random >> 23U & 7U;
    std::uint32_t bits = (random & 0x807fffffU) | (119U + exponent) << 23U;
    if (shape.type == QType::kBF16) bits >>= 16U;
    if (shape.type == QType::kF16) {
      bits = (random >> 16U & 0x8000U) | (7U + exponent) << 10U | (random & 0x3ffU);
    }
    std::memcpy(values.data() + i * bytes, &bits, bytes);
  }
  DeviceMemory memory(values.size(), "the test of a product");
  transfer.upload(memory.data(), values.data(), values.size());
  return memory;
}

}  // namespace

CublasLt& CudaPinned::library() {
  refuse_environment();
  if (!library_) library_ = open_cublas_lt();
  return *library_;
}

std::string CudaPinned::cublaslt_version() { return library().version(); }

ProductShape CudaPinned::shape_of(const PinnedProduct& product) const {
  return {product.type, plan_->rows, product.n, product.k};
}

const ProductPlan& CudaPinned::pin(std::span<const PinnedWeights> weights, std::uint32_t rows) {
  DETRUN_CHECK(rows >= 1);
  if (rows > kRowsMax) {
    throw_usage("profile cublas: " + std::to_string(rows) + " rows at once are more than " +
                    std::to_string(kRowsMax),
                "use a smaller --chunk");
  }
  for (const PinnedWeights& weight : weights) {
    if (is_multiplied(weight.type)) continue;
    throw_usage("profile cublas multiplies F32, F16 and BF16; tensor " + weight.name + " is " +
                    type_name(weight.type),
                kPortable);
  }
  ProductPlan plan{library().version(), rows, kWorkspaceBytes, {}};
  for (const PinnedWeights& weight : weights) {
    plan.products.push_back({weight.type, weight.n, weight.k, {}, {}});
  }
  std::sort(plan.products.begin(), plan.products.end(), comes_before);
  plan.products.erase(std::unique(plan.products.begin(), plan.products.end()), plan.products.end());
  if (rows == 1) plan.products.clear();  // there is nothing to multiply at once
  for (PinnedProduct& product : plan.products) {
    product = choose(*library_, {product.type, rows, product.n, product.k});
  }
  plan_ = std::move(plan);
  return *plan_;
}

void CudaPinned::use(const ProductPlan& plan) {
  CublasLt& lt = library();
  if (plan.cublaslt != lt.version()) {
    throw_inconclusive("version of cuBLASLt: recorded " + plan.cublaslt + ", here " + lt.version(),
                       "replay it with cuBLASLt " + plan.cublaslt);
  }
  if (plan.rows == 0 || plan.rows > kRowsMax) {
    throw_inconclusive("rows of a product: recorded " + std::to_string(plan.rows) + ", here 1 to " +
                           std::to_string(kRowsMax) + " are possible",
                       {});
  }
  if (plan.workspace_bytes > kWorkspaceBytes) {
    throw_inconclusive("workspace of a product: recorded " + std::to_string(plan.workspace_bytes) +
                           " bytes, here at most " + std::to_string(kWorkspaceBytes) +
                           " are possible",
                       {});
  }
  for (const PinnedProduct& product : plan.products) {
    if (!is_multiplied(product.type)) {
      throw_inconclusive("type of a product: recorded " + type_name(product.type) +
                             ", here F32, F16 and BF16 are multiplied",
                         {});
    }
    if (product.n == 0 || product.k == 0) {
      throw_inconclusive("size of a product: recorded " + std::to_string(product.n) + "x" +
                             std::to_string(product.k) + ", here none is empty",
                         {});
    }
    check_product(lt, {product.type, plan.rows, product.n, product.k}, product,
                  plan.workspace_bytes);
  }
  plan_ = plan;
  std::sort(plan_->products.begin(), plan_->products.end(), comes_before);
}

std::uint64_t CudaPinned::rounded_bytes() const {
  std::uint64_t most = 0;
  for (const PinnedProduct& product : plan_->products) {
    most = std::max(most, std::uint64_t{plan_->rows} * product.k * element_bytes(product.type));
  }
  return most;
}

/// Outputs have room for the rows of a pass; when these are fewer than the plan's, others are
/// needed.
std::uint64_t CudaPinned::padded_bytes(const PassShape& shape) const {
  std::uint64_t most = 0;
  if (shape.rows >= plan_->rows) return most;
  for (const PinnedProduct& product : plan_->products) {
    most = std::max(most, std::uint64_t{plan_->rows} * product.n * sizeof(float));
  }
  return most;
}

std::uint64_t CudaPinned::scratch_bytes(const PassShape& shape) const {
  if (!plan_ || shape.rows == 1) return 0;
  return workspace_.missing(plan_->workspace_bytes) + rounded_.missing(rounded_bytes()) +
         padded_.missing(padded_bytes(shape));
}

void CudaPinned::reserve(const PassShape& shape) {
  if (!plan_ || shape.rows == 1) return;
  workspace_.room(plan_->workspace_bytes);
  rounded_.room(rounded_bytes());
  padded_.room(padded_bytes(shape));
}

const void* CudaPinned::round(const CudaWeight& reader, const float* x, std::uint32_t rows) {
  if (rows > plan_->rows) {
    throw_inconclusive("rows of a product: recorded at most " + std::to_string(plan_->rows) +
                           ", here " + std::to_string(rows),
                       "use --chunk " + std::to_string(plan_->rows));
  }
  const std::uint64_t k = reader.k;
  std::byte* to = rounded_.room(plan_->rows * k * element_bytes(reader.type));
  const auto launch = [&](std::uint32_t first, std::uint32_t count) {
    const float* from = x + first * k;
    const std::uint64_t n = count * k;
    // The last rows bring the zeros behind them.
    const std::uint64_t n_all = first + count == rows ? (plan_->rows - first) * k : n;
    void* out = to + first * k * element_bytes(reader.type);
    switch (reader.type) {
      case QType::kF16:
        return cuda::round_f16(from, n, n_all, static_cast<std::uint16_t*>(out), flag_.get(),
                               stream_.get());
      case QType::kBF16:
        return cuda::round_bf16(from, n, n_all, static_cast<std::uint16_t*>(out), flag_.get(),
                                stream_.get());
      default:
        return cuda::round_f32(from, n, n_all, static_cast<float*>(out), flag_.get(),
                               stream_.get());
    }
  };
  flag_.launch_rows(
      rows,
      [&](std::uint32_t first, std::uint32_t count) { check_cuda(launch(first, count), "matmul"); },
      [&](std::uint32_t row) {
        throw_activation_does_not_fit(reader.name, reader.type, row, rows);
      });
  return to;
}

void CudaPinned::multiply(const CudaProduct& product, const void* rounded, std::uint32_t rows) {
  const CudaWeight& weight = *product.weight;
  const PinnedProduct wanted{weight.type, weight.n, weight.k, {}, {}};
  const auto found =
      std::lower_bound(plan_->products.begin(), plan_->products.end(), wanted, comes_before);
  if (found == plan_->products.end() || comes_before(wanted, *found)) {
    throw_inconclusive("products: the recorded ones lack " + product_text(shape_of(wanted)) +
                           ", needed for tensor " + weight.name,
                       "replay it with the model that it was recorded with");
  }
  const std::uint64_t y_bytes = std::uint64_t{rows} * weight.n * sizeof(float);
  const std::uint64_t n_all = std::uint64_t{plan_->rows} * weight.n;
  const bool fits = product.y_floats >= n_all;
  float* y = fits ? product.y : padded_.room_for<float>(n_all);
  library_->multiply(shape_of(*found), found->algorithm,
                     {weight.image.data(), rounded, y, workspace_.room(plan_->workspace_bytes),
                      plan_->workspace_bytes},
                     stream_.get());
  if (fits) return;
  check_cuda(cudaMemcpyAsync(product.y, y, y_bytes, cudaMemcpyDeviceToDevice, stream_.get()),
             "copy on the device");
}

/// Every time into memory with other contents than before: nothing but the inputs may be seen in
/// the outputs.
void CudaPinned::test_one(const PinnedProduct& product, std::uint32_t times) {
  const ProductShape shape = shape_of(product);
  const DeviceMemory weight = test_values(transfer_, shape, shape.n);
  const DeviceMemory x = test_values(transfer_, shape, shape.rows);
  const std::uint64_t n_outputs = std::uint64_t{shape.rows} * shape.n;
  const DeviceMemory y(n_outputs * sizeof(float), "the test of a product");
  const LtOperands operands{weight.data(), x.data(), y.as<float>(),
                            workspace_.room(plan_->workspace_bytes), plan_->workspace_bytes};
  std::vector<std::uint32_t> first(n_outputs);
  std::vector<std::uint32_t> again(n_outputs);
  for (std::uint32_t time = 0; time < times; ++time) {
    const int before = time % 2 == 0 ? 0 : 0xff;
    check_cuda(cudaMemsetAsync(y.data(), before, y.size(), stream_.get()), "cudaMemset");
    library_->multiply(shape, product.algorithm, operands, stream_.get());
    std::vector<std::uint32_t>& out = time == 0 ? first : again;
    transfer_.download(out.data(), y.data(), y.size());
    if (time == 0) continue;
    const auto [a, b] = std::mismatch(first.begin(), first.end(), again.begin());
    if (a == first.end()) continue;
    throw_internal("profile cublas: " + product_text(shape) + " (" + product.description +
                       ") is not repeatable on this device: time " + std::to_string(time + 1) +
                       " of " + std::to_string(times) + " gave other bits at element " +
                       std::to_string(a - first.begin()),
                   kPortable);
  }
}

void CudaPinned::test(std::uint32_t times) {
  DETRUN_CHECK(plan_.has_value());
  for (const PinnedProduct& product : plan_->products) test_one(product, times);
}

}  // namespace detrun
