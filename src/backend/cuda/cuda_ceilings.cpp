// See cuda_ceilings.h. One launch is one measurement, long enough that neither the launch nor the
// host's clock counts.
#include "backend/cuda/cuda_ceilings.h"

#include <chrono>

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_handles.h"
#include "detrun/error.h"
#include "kernels/cuda/ceilings.h"

namespace detrun {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsWanted = 0.04;
constexpr unsigned kBlocksEach = 8;  // of a multiprocessor: 2048 threads, all that any can hold
// Larger GPUs have more of both: far more than the second-level cache of any.
constexpr std::uint64_t kBufferBytesEach = std::uint64_t{2} << 20U;
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 30U;

class CudaCeilings final : public Ceilings {
 public:
  explicit CudaCeilings(const DeviceInfo& device)
      : device_(device),
        loops_(cuda_isa(device)),
        n_blocks_(kBlocksEach * device.n_multiprocessors),
        from_(buffer_bytes(), "the buffer that bandwidth is measured with"),
        to_(buffer_bytes(), "the buffer that bandwidth is measured with"),
        results_(n_threads() * sizeof(float), "the results of the ceilings") {
    check_cuda(cudaMemsetAsync(from_.data(), 1, from_.size(), stream_.get()), "cudaMemset");
    stream_.synchronize();
  }

  std::string_view loops() const override { return loops_; }
  std::string_view memory_work() const override { return "copy"; }

  double memory_bytes_per_s() override {
    constexpr double kReadAndWritten = 2;
    return kReadAndWritten * static_cast<double>(from_.size()) *
           rate(copies_, [&](unsigned copies) {
             for (unsigned i = 0; i < copies; ++i) {
               check_cuda(cuda::ceiling_copy(from_.data(), from_.size(), to_.data(), n_blocks_,
                                             stream_.get()),
                          "ceiling_copy");
             }
           });
  }

  double fma_flops_per_s() override {
    return static_cast<double>(n_threads() * cuda::kCeilingFmaFlops) *
           rate(fma_rounds_, [&](unsigned rounds) {
             check_cuda(cuda::ceiling_fma(rounds, results_.as<float>(), n_blocks_, stream_.get()),
                        "ceiling_fma");
           });
  }

  double int8_ops_per_s() override {
    return static_cast<double>(n_threads() * cuda::kCeilingInt8Ops) *
           rate(int8_rounds_, [&](unsigned rounds) {
             check_cuda(cuda::ceiling_int8(rounds, results_.as<int>(), n_blocks_, stream_.get()),
                        "ceiling_int8");
           });
  }

 private:
  std::uint64_t buffer_bytes() const { return kBufferBytesEach * device_.n_multiprocessors; }
  std::uint64_t n_threads() const { return std::uint64_t{n_blocks_} * cuda::kCeilingThreads; }

  /// How often a second `work(1)` would be done. `count` grows until one measurement is long
  /// enough, and stays so.
  template <class Work>
  double rate(unsigned& count, Work&& work) {
    check_cuda(cudaSetDevice(static_cast<int>(device_.index)), "cudaSetDevice");
    for (;;) {
      const Clock::time_point start = Clock::now();
      work(count);
      stream_.synchronize();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (seconds >= kSecondsWanted || count >= kCountMax) {
        return static_cast<double>(count) / seconds;
      }
      count *= 2;
    }
  }

  DeviceInfo device_;
  std::string loops_;
  unsigned n_blocks_;
  CudaStream stream_;
  DeviceMemory from_, to_, results_;
  unsigned copies_ = 1, fma_rounds_ = 1, int8_rounds_ = 1;
};

}  // namespace

std::unique_ptr<Ceilings> make_cuda_ceilings(const DeviceInfo& device) {
  return std::make_unique<CudaCeilings>(device);
}

}  // namespace detrun
