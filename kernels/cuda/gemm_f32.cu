// Launchers of the fp32 GEMM: rows of both operands to panels in the workspace, then the product. A
// large weight goes through the workspace in strips of rows, so that the workspace stays small
// beside it.
#include "kernels/cuda/gemm_f32.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/launch.h"

namespace detrun::cuda {

using namespace detrun::device;

namespace {

// Rows of weight whose panels lie in the workspace at once: enough thread blocks for any device.
constexpr std::size_t kStripRows = 64 * kPanelOutputs;

dim3 pack_grid(std::size_t n_rows, unsigned k, unsigned width) {
  return dim3(blocks_for(k, 32), blocks_for(n_rows, width));
}
dim3 gemm_grid(unsigned m, std::size_t n) {
  return dim3(blocks_for(n, kPanelOutputs), blocks_for(m, kPanelRows));
}

std::size_t x_bytes(std::size_t m, std::size_t k) {
  return image_part(panel_elements(m, k, kPanelRows) * sizeof(float));
}

cudaError_t pack_x(const float* x, unsigned m, unsigned k, void* workspace, int* not_finite,
                   cudaStream_t stream) {
  detrun_pack_x<<<pack_grid(m, k, kPanelRows), kPackThreads, 0, stream>>>(
      x, m, k, static_cast<float*>(workspace), not_finite);
  return cudaGetLastError();
}

// The strips of a weight one after another; `launch(first, count, panels)` does one.
template <class Element, class Launch>
cudaError_t in_strips(const float* x, void* workspace, unsigned m, unsigned n, unsigned k,
                      int* not_finite, cudaStream_t stream, Launch launch) {
  cudaError_t status = pack_x(x, m, k, workspace, not_finite, stream);
  auto* panels = reinterpret_cast<Element*>(static_cast<char*>(workspace) + x_bytes(m, k));
  for (std::size_t first = 0; first < n && status == cudaSuccess; first += kStripRows) {
    const std::size_t left = n - first;
    launch(first, static_cast<unsigned>(left < kStripRows ? left : kStripRows), panels);
    status = cudaGetLastError();
  }
  return status;
}

}  // namespace

std::size_t gemm_float_workspace(std::size_t m, std::size_t n, std::size_t k,
                                 std::size_t element_bytes) {
  const std::size_t rows = n < kStripRows ? n : kStripRows;
  return x_bytes(m, k) + image_part(panel_elements(rows, k, kPanelOutputs) * element_bytes);
}

cudaError_t gemm_f32(const float* weight, const float* x, void* workspace, float* y, unsigned m,
                     unsigned n, unsigned k, int* not_finite, cudaStream_t stream) {
  return in_strips<float>(
      x, workspace, m, n, k, not_finite, stream,
      [=](std::size_t first, unsigned count, float* panels) {
        detrun_pack_weight_32<<<pack_grid(count, k, kPanelOutputs), kPackThreads, 0, stream>>>(
            weight + first * k, count, k, panels);
        detrun_gemm_f32<<<gemm_grid(m, count), kGemmF32Threads, 0, stream>>>(
            panels, static_cast<const float*>(workspace), y + first, m, count, k, n);
      });
}

cudaError_t gemm_f16(const std::uint16_t* weight, const float* x, void* workspace, float* y,
                     unsigned m, unsigned n, unsigned k, int* not_finite, cudaStream_t stream) {
  return in_strips<std::uint16_t>(
      x, workspace, m, n, k, not_finite, stream,
      [=](std::size_t first, unsigned count, std::uint16_t* panels) {
        detrun_pack_weight_16<<<pack_grid(count, k, kPanelOutputs), kPackThreads, 0, stream>>>(
            weight + first * k, count, k, panels);
        detrun_gemm_f16<<<gemm_grid(m, count), kGemmF32Threads, 0, stream>>>(
            panels, static_cast<const float*>(workspace), y + first, m, count, k, n);
      });
}

cudaError_t gemm_bf16(const std::uint16_t* weight, const float* x, void* workspace, float* y,
                      unsigned m, unsigned n, unsigned k, int* not_finite, cudaStream_t stream) {
  return in_strips<std::uint16_t>(
      x, workspace, m, n, k, not_finite, stream,
      [=](std::size_t first, unsigned count, std::uint16_t* panels) {
        detrun_pack_weight_16<<<pack_grid(count, k, kPanelOutputs), kPackThreads, 0, stream>>>(
            weight + first * k, count, k, panels);
        detrun_gemm_bf16<<<gemm_grid(m, count), kGemmF32Threads, 0, stream>>>(
            panels, static_cast<const float*>(workspace), y + first, m, count, k, n);
      });
}

}  // namespace detrun::cuda
