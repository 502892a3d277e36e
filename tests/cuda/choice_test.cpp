// Argmax, margin and log probability, emulated, against a sort and S32 of the contract.
#include "kernels/cuda/choice.cuh"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/cuda/row_support.h"

namespace detrun {
namespace {

using namespace detrun::kernels;
using namespace detrun::cuda_test;

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Chosen {
  std::vector<int> ids;
  std::vector<float> largest, margins, logprobs;
  int flag = 0;

  explicit Chosen(std::size_t n_rows)
      : ids(n_rows, -1), largest(n_rows, 1e30f), margins(n_rows, 1e30f), logprobs(n_rows, 1e30f) {}
};

Chosen reference(const std::vector<float>& logits, unsigned n_rows) {
  const std::size_t n = logits.size() / n_rows;
  Chosen out(n_rows);
  for (std::size_t r = 0; r < n_rows; ++r) {
    const float* row = logits.data() + r * n;
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });
    out.ids[r] = order[0];
    out.largest[r] = row[order[0]];
    out.margins[r] = n == 1 ? kInf : row[order[0]] - row[order[1]] + 0.0f;
    std::vector<float> terms(n);
    for (std::size_t i = 0; i < n; ++i) terms[i] = exp32(row[i] - row[order[0]]);
    out.logprobs[r] = (row[order[0]] - row[order[0]]) - log32(sum32(terms.data(), n));
  }
  return out;
}

Chosen run(const std::vector<float>& logits, unsigned n_rows, emulation::LaneOrder order) {
  const unsigned n = static_cast<unsigned>(logits.size() / n_rows);
  Chosen out(n_rows);
  launch_rows(n_rows, device::kChoiceThreads, order, [&] {
    device::detrun_argmax(logits.data(), n, out.ids.data(), out.largest.data(), out.margins.data(),
                          &out.flag);
  });
  launch_rows(n_rows, device::kChoiceThreads, order, [&] {
    device::detrun_logprob(logits.data(), n, out.ids.data(), out.largest.data(),
                           out.logprobs.data());
  });
  return out;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check(const std::vector<float>& logits, unsigned n_rows) {
  const Chosen expected = reference(logits, n_rows);
  for (const auto order : kOrders) {
    const Chosen out = run(logits, n_rows, order);
    CHECK(out.flag == 0);
    CHECK(out.ids == expected.ids);
    CHECK(same(out.largest, expected.largest));
    CHECK(same(out.margins, expected.margins));
    CHECK(same(out.logprobs, expected.logprobs));
    for (const float v : out.logprobs) CHECK(f32_is_finite(v));
  }
}

}  // namespace

TEST_CASE("argmax, margin and log probability equal the reference over every size of a row") {
  std::mt19937 random(31);
  for (const unsigned n : {1u, 2u, 31u, 32u, 33u, 255u, 256u, 257u, 1023u, 1024u, 1025u, 3000u}) {
    check(random_floats(random, std::size_t{3} * n, 12.0f), 3);
  }
}

TEST_CASE("the largest logit is found at every place of a row, and the second beside it") {
  std::mt19937 random(32);
  for (const std::size_t at : {0u, 1u, 31u, 32u, 63u, 255u, 256u, 300u, 511u, 599u}) {
    std::vector<float> logits = random_floats(random, 600, 3.0f);
    logits[at] = 9.0f;
    check(logits, 1);
    logits[(at + 256) % 600] = 8.0f;  // the same thread, another pass
    check(logits, 1);
    logits[at ^ 1] = 8.5f;  // the next lane
    check(logits, 1);
  }
}

TEST_CASE("of equal largest logits the lowest id wins, and the margin is +0") {
  std::mt19937 random(33);
  for (const std::size_t at : {3u, 40u, 256u, 299u}) {
    std::vector<float> logits = random_floats(random, 700, 2.0f);
    logits[at] = logits[at + 1] = logits[at + 256] = logits[at + 32] = 5.0f;
    check(logits, 1);
    const Chosen out = run(logits, 1, emulation::LaneOrder::kDescending);
    CHECK(out.ids[0] == static_cast<int>(at));
    CHECK(f32_bits(out.margins[0]) == 0);
  }
}

TEST_CASE("-0 and +0 are equal logits") {
  std::vector<float> logits(300, -1.0f);
  logits[7] = -0.0f;
  logits[9] = 0.0f;
  logits[290] = 0.0f;
  check(logits, 1);
  CHECK(run(logits, 1, emulation::LaneOrder::kAscending).ids[0] == 7);
  logits[5] = 0.0f;
  check(logits, 1);
  CHECK(run(logits, 1, emulation::LaneOrder::kAscending).ids[0] == 5);
}

TEST_CASE("the log probability of an id that is not the largest") {
  std::mt19937 random(34);
  const std::vector<float> logits = random_floats(random, 2100, 4.0f);
  const Chosen chosen = reference(logits, 1);
  for (const int id : {0, 1024, 2099}) {
    const float expected =
        (logits[static_cast<std::size_t>(id)] - chosen.largest[0]) - (0.0f - chosen.logprobs[0]);
    float logprob = 1e30f;
    launch_rows(1, device::kChoiceThreads, emulation::LaneOrder::kAscending, [&] {
      device::detrun_logprob(logits.data(), 2100, &id, chosen.largest.data(), &logprob);
    });
    CHECK(f32_bits(logprob) == f32_bits(expected));
  }
}

TEST_CASE("a logit that is not finite is reported") {
  std::mt19937 random(35);
  for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0u, 299u, 300u, 599u}) {
      std::vector<float> logits = random_floats(random, 600, 3.0f);
      logits[at] = bad;
      for (const auto order : kOrders) CHECK(run(logits, 2, order).flag == 1);
    }
  }
}

}  // namespace detrun
