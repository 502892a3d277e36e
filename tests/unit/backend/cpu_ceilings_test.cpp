// The measured peaks of the processor: present, positive, and of the loops that this CPU has.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "detrun/backend.h"
#include "kernels/cpu/ceilings.h"

namespace detrun {
namespace {

TEST_CASE("every ceiling is a rate above zero, of the best loops of this CPU") {
  const auto ceilings = make_cpu_ceilings(2, 1U << 20U);
  CHECK(ceilings->memory_bytes_per_s() > 1e6);
  CHECK(ceilings->memory_work() == "read");
  CHECK(ceilings->fma_flops_per_s() > 1e6);
  CHECK(ceilings->int8_ops_per_s() > 1e6);
  const std::vector<std::string> usable = available_cpu_isas();
  const bool has_avx2 = std::find(usable.begin(), usable.end(), "avx2") != usable.end();
  CHECK((ceilings->loops() == "avx2") == has_avx2);
}

std::vector<const kernels::CeilingOps*> usable_loops() {
  std::vector<const kernels::CeilingOps*> loops = {&kernels::scalar::kCeilings};
#if defined(DETRUN_HAVE_AVX2)
  const std::vector<std::string> usable = available_cpu_isas();
  if (std::find(usable.begin(), usable.end(), "avx2") != usable.end()) {
    loops.push_back(&kernels::avx2::kCeilings);
  }
#endif
#if defined(DETRUN_HAVE_NEON)
  loops.push_back(&kernels::neon::kCeilings);
#endif
  return loops;
}

TEST_CASE("the loops do the work that they are counted for: every byte, every round") {
  constexpr std::size_t kUnit = kernels::kCeilingStreams * kernels::kCeilingStreamBytes;
  struct alignas(64) Line {
    std::uint64_t words[8];
  };
  for (const kernels::CeilingOps* ops : usable_loops()) {
    CAPTURE(ops->name);
    std::vector<Line> lines(2 * kUnit / sizeof(Line));
    CHECK(ops->read(lines.data(), 2 * kUnit) == 0);
    for (const std::size_t at : {std::size_t{0}, lines.size() / 3, lines.size() - 1}) {
      for (std::uint64_t& word : lines[at].words) {
        word = 5;
        CHECK(ops->read(lines.data(), 2 * kUnit) == 5);
        word = 0;
      }
    }
    const float a_round = ops->fma(1);
    CHECK(a_round > 0);
    CHECK(ops->fma(7) == 7 * a_round);
    CHECK(ops->int8(7) == 7 * ops->int8(1));
    CHECK(ops->int8(1) != 0);
  }
}

}  // namespace
}  // namespace detrun
