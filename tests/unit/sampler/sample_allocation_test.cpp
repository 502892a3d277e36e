// A choice allocates nothing: every operator new of this program is counted. A program of its own,
// because it replaces the global allocation functions.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "detrun/sampler.h"

namespace {
std::atomic<std::uint64_t> allocations = 0;
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {  // given by malloc above
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {  // given by malloc above
  std::free(p);
}

TEST_CASE("after its construction a sampler allocates nothing") {
  detrun::SamplerParams params;
  params.temperature = 1.1f;
  params.typical_p = 0.9f;
  params.top_p = 0.9f;
  params.min_p = 0.01f;
  params.repeat_penalty = 1.1f;
  params.presence_penalty = 0.1f;
  std::vector<float> logits(5000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i * 7919 % 5000) * 0.001f;
  }
  const std::vector<std::int32_t> history = {1, 2, 3, 1};
  const std::uint64_t at_start = allocations;
  CHECK(at_start > 0);
  detrun::Sampler sampler(params, 5000);
  const std::uint64_t before = allocations;
  CHECK(before > at_start);
  std::int64_t sum = 0;
  for (std::uint64_t step = 0; step < 5; ++step) sum += sampler.choose(logits, step, history).token;
  const std::uint64_t after = allocations;
  CHECK(after == before);
  CHECK(sum > 0);
}
