// The peaks of this processor, measured with its loops in kernels/cpu/ceilings.h on a thread pool
// of its own. Not part of the backend: no operator uses it and no result depends on it.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "backend/thread_pool.h"
#include "detrun/backend.h"
#include "kernels/cpu/ceilings.h"

namespace detrun {
namespace {

using Clock = std::chrono::steady_clock;
using kernels::CeilingOps;

constexpr std::uint64_t kReadUnit = kernels::kCeilingStreams * kernels::kCeilingStreamBytes;
constexpr double kSecondsWanted = 0.04;

struct CeilingRow {
  std::string_view isa;  ///< as in available_cpu_isas
  const CeilingOps* ops;
};
constexpr CeilingRow kRows[] = {
#ifdef DETRUN_HAVE_AVX2
    {"avx2", &kernels::avx2::kCeilings},
#endif
#ifdef DETRUN_HAVE_NEON
    {"neon", &kernels::neon::kCeilings},
#endif
    {"scalar", &kernels::scalar::kCeilings},
};

const CeilingOps& best_ceilings() {
  const std::vector<std::string> usable = available_cpu_isas();
  for (const CeilingRow& row : kRows) {
    if (std::find(usable.begin(), usable.end(), row.isa) != usable.end()) return *row.ops;
  }
  return kernels::scalar::kCeilings;
}

std::uint32_t thread_count(std::uint32_t asked) {
  return asked != 0 ? asked : static_cast<std::uint32_t>(allowed_cpus().size());
}

class CpuCeilings final : public Ceilings {
 public:
  CpuCeilings(std::uint32_t n_threads, std::uint64_t buffer_bytes)
      : ops_(best_ceilings()), pool_(thread_count(n_threads)) {
    share_bytes_ =
        std::max(buffer_bytes / pool_.n_threads() / kReadUnit, std::uint64_t{1}) * kReadUnit;
    buffer_ = CpuMemory(share_bytes_ * pool_.n_threads(), "the buffer that bandwidth is read from");
    results_.resize(pool_.n_threads());
    on_all_threads([&](std::uint32_t share) {  // real pages: zero pages of a fresh map are one
      std::memset(buffer_.data() + share * share_bytes_, 1, share_bytes_);
      return std::uint64_t{0};
    });
  }

  std::string_view loops() const override { return ops_.name; }
  std::string_view memory_work() const override { return "read"; }

  double memory_bytes_per_s() override {
    double seconds = 0;
    std::uint64_t passes = 0;
    while (seconds < kSecondsWanted) {
      seconds += on_all_threads([&](std::uint32_t share) {
        return ops_.read(buffer_.data() + share * share_bytes_, share_bytes_);
      });
      ++passes;
    }
    return static_cast<double>(buffer_.size() * passes) / seconds;
  }

  double fma_flops_per_s() override {
    return rate(fma_rounds_, ops_.fma_flops,
                [&](std::uint64_t rounds) { return static_cast<std::uint64_t>(ops_.fma(rounds)); });
  }

  double int8_ops_per_s() override {
    return rate(int8_rounds_, ops_.int8_ops, [&](std::uint64_t rounds) {
      return static_cast<std::uint64_t>(ops_.int8(rounds));
    });
  }

 private:
  /// One share a thread; the seconds until the last one is done. What they return is kept, so that
  /// no compiler may leave the work out.
  template <class Share>
  double on_all_threads(Share&& share) {
    const Clock::time_point start = Clock::now();
    pool_.run(pool_.n_threads(),
              [&](std::uint32_t item, std::uint32_t) { results_[item] = share(item); });
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// Operations a second. `rounds` grows until one measurement is long enough, and stays so.
  template <class Work>
  double rate(std::uint64_t& rounds, std::uint64_t ops_a_round, Work&& work) {
    for (;;) {
      const double seconds = on_all_threads([&](std::uint32_t) { return work(rounds); });
      if (seconds >= kSecondsWanted) {
        return static_cast<double>(rounds) * static_cast<double>(ops_a_round) * pool_.n_threads() /
               seconds;
      }
      rounds *= 2;
    }
  }

  const CeilingOps& ops_;
  ThreadPool pool_;
  std::uint64_t share_bytes_ = 0;
  CpuMemory buffer_;
  std::vector<std::uint64_t> results_;
  std::uint64_t fma_rounds_ = 1 << 16, int8_rounds_ = 1 << 16;
};

}  // namespace

std::unique_ptr<Ceilings> make_cpu_ceilings(std::uint32_t n_threads, std::uint64_t buffer_bytes) {
  return std::make_unique<CpuCeilings>(n_threads, buffer_bytes);
}

}  // namespace detrun
