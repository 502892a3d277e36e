// The table of tensor types: how each lies in an image and which launchers read it. No kernels
// here.
#include <cstring>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/launch_rows.h"
#include "kernels/cuda/pack_planes.h"
#include "kernels/cuda/products.h"
#include "kernels/quant/synthetic.h"

namespace detrun::cuda {

namespace {

using kernels::InputForm;

// ---- F32, F16, BF16: rows as in the file; gemm makes panels of them ----------------------------

template <class Element>
using FloatGemv = cudaError_t (*)(const GemvMatrix<const Element*>*, unsigned, const float*,
                                  unsigned, int*, cudaStream_t);
template <class Element>
using FloatGemm = cudaError_t (*)(const Element*, const float*, void*, float*, unsigned, unsigned,
                                  unsigned, int*, cudaStream_t);
template <class Element>
using FloatEmbed = cudaError_t (*)(const Element*, const int*, unsigned, unsigned, float*,
                                   cudaStream_t);
using FloatFill = cudaError_t (*)(void*, std::size_t, std::uint64_t, cudaStream_t);

template <class Element, FloatGemv<Element> kGemv, FloatGemm<Element> kGemm,
          FloatEmbed<Element> kEmbed, FloatFill kFill>
struct FloatProduct {
  static const Element* rows(DeviceMatrix weight) {
    return static_cast<const Element*>(weight.image);
  }
  static std::size_t image_bytes(std::size_t n, std::size_t k) { return n * k * sizeof(Element); }
  static void pack(const void* rows, std::size_t /*n*/, std::size_t k, std::size_t first,
                   std::size_t last, void* image) {
    const std::size_t at = first * k * sizeof(Element);
    std::memcpy(static_cast<char*>(image) + at, static_cast<const char*>(rows) + at,
                (last - first) * k * sizeof(Element));
  }
  static cudaError_t gemv(const GemvProduct* products, unsigned n, const Activations& x,
                          cudaStream_t stream) {
    GemvMatrix<const Element*> matrices[kGemvMatrices];
    for (unsigned i = 0; i < n; ++i) {
      matrices[i] = {rows(products[i].weight), products[i].y, products[i].weight.n};
    }
    return kGemv(matrices, n, x.x, products[0].weight.k, x.not_finite, stream);
  }
  static std::size_t workspace_bytes(std::size_t m, std::size_t n, std::size_t k) {
    return gemm_float_workspace(m, n, k, sizeof(Element));
  }
  static cudaError_t gemm(DeviceMatrix weight, const Activations& x, void* workspace, float* y,
                          cudaStream_t stream) {
    return kGemm(rows(weight), x.x, workspace, y, x.m, weight.n, weight.k, x.not_finite, stream);
  }
  static cudaError_t embed(DeviceMatrix matrix, const int* tokens, unsigned n_tokens, float* out,
                           cudaStream_t stream) {
    return kEmbed(rows(matrix), tokens, n_tokens, matrix.k, out, stream);
  }
  static cudaError_t fill(void* image, std::size_t n, std::size_t k, std::uint64_t key,
                          cudaStream_t stream) {
    return kFill(image, n * k, key, stream);
  }
  static constexpr ProductOps ops(std::uint32_t gguf_id) {
    return {gguf_id, InputForm::kFloat, image_bytes, pack, gemv, workspace_bytes, gemm, embed,
            fill};
  }
};

using ProductF32 = FloatProduct<float, gemv_f32, gemm_f32, embed_f32, fill_f32>;
using ProductF16 = FloatProduct<std::uint16_t, gemv_f16, gemm_f16, embed_f16, fill_f16>;
using ProductBf16 = FloatProduct<std::uint16_t, gemv_bf16, gemm_bf16, embed_bf16, fill_bf16>;

// ---- quantized types: planes one after another --------------------------------------------------

template <class Type>
struct QuantProduct {
  using Layout = QuantLayout<Type>;
  static std::size_t groups(std::size_t n, std::size_t k) { return n * (k / Type::kBlockElems); }
  static Planes planes(DeviceMatrix weight) {
    return Layout::planes(weight.image, groups(weight.n, weight.k));
  }
  static std::size_t image_bytes(std::size_t n, std::size_t k) {
    return Layout::image_bytes(groups(n, k));
  }
  static void pack(const void* rows, std::size_t n, std::size_t k, std::size_t first,
                   std::size_t last, void* image) {
    pack_groups<Type>(rows, groups(first, k), groups(last, k), Layout::planes(image, groups(n, k)));
  }
  static cudaError_t gemv(const GemvProduct* products, unsigned n, const Activations& x,
                          cudaStream_t stream) {
    GemvMatrix<Planes> matrices[kGemvMatrices];
    for (unsigned i = 0; i < n; ++i) {
      matrices[i] = {planes(products[i].weight), products[i].y, products[i].weight.n};
    }
    return gemv_quant<Type>(matrices, n, x.quantized, products[0].weight.k / Type::kBlockElems,
                            stream);
  }
  static std::size_t workspace_bytes(std::size_t, std::size_t, std::size_t) { return 0; }
  static cudaError_t gemm(DeviceMatrix weight, const Activations& x, void* /*workspace*/, float* y,
                          cudaStream_t stream) {
    return gemm_quant<Type>(planes(weight), x.quantized, y, x.m, weight.n,
                            weight.k / Type::kBlockElems, stream);
  }
  static cudaError_t embed(DeviceMatrix matrix, const int* tokens, unsigned n_tokens, float* out,
                           cudaStream_t stream) {
    return embed_quant<Type>(planes(matrix), tokens, n_tokens, matrix.k, out, stream);
  }
  static cudaError_t fill(void* image, std::size_t n, std::size_t k, std::uint64_t key,
                          cudaStream_t stream) {
    return fill_quant<Type>(Layout::planes(image, groups(n, k)), groups(n, k), key, stream);
  }
  static constexpr auto fill_or_null() {
    if constexpr (kernels::synthetic_block_of(Type::kGgufId).scale_at >= 0) {
      return fill;
    } else {
      return nullptr;
    }
  }
  static constexpr ProductOps ops() {
    return {Type::kGgufId, InputForm::kQuantized, image_bytes, pack, gemv, workspace_bytes, gemm,
            embed,         fill_or_null()};
  }
};

#define DETRUN_ROW(name) QuantProduct<kernels::Type##name>::ops(),
constexpr ProductOps kProducts[] = {ProductF32::ops(0), ProductF16::ops(1), ProductBf16::ops(30),
                                    DETRUN_QUANT_TYPES(DETRUN_ROW)};
#undef DETRUN_ROW

}  // namespace

const ProductOps* find_product(std::uint32_t gguf_id) {
  for (const ProductOps& row : kProducts) {
    if (row.gguf_id == gguf_id) return &row;
  }
  return nullptr;
}

}  // namespace detrun::cuda
