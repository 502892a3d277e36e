// The use case `replay` on kernels of the test: one that sums in another order is found at the same
// step by both modes, and one that watches sees how many rows a mode computes at once.
#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu_select.h"
#include "run/model_cache.h"
#include "run/replay_one.h"
#include "tests/unit/run/replay_both.h"

namespace detrun {
namespace {

using test::check_same;
using test::kChunks;
using test::LongScene;

/// The best instruction set, but with two terms of the sum of squares in each other's place in rows
/// that begin with certain bits: wrong in the way of another library, and not from step 0 on.
kernels::CpuOps swapped_sums() {
  kernels::CpuOps ops = *available_cpu_ops().front();
  ops.name = "swapped";
  ops.rmsnorm = [](const float* x, const float* weight, float eps, std::uint64_t n, float* y) {
    const kernels::CpuOps& good = *available_cpu_ops().front();
    if (std::bit_cast<std::uint32_t>(x[0]) % 29 != 0) return good.rmsnorm(x, weight, eps, n, y);
    std::vector<float> swapped(x, x + n), swapped_weight(weight, weight + n);
    std::swap(swapped[0], swapped[1]);
    std::swap(swapped_weight[0], swapped_weight[1]);
    const bool finite = good.rmsnorm(swapped.data(), swapped_weight.data(), eps, n, y);
    std::swap(y[0], y[1]);
    return finite;
  };
  return ops;
}

TEST_CASE("a kernel that sums in another order is found at the same step") {
  LongScene scene;
  scene.record();
  const kernels::CpuOps ops = swapped_sums();
  const auto ledger = Ledger::open_for_reading(scene.options.ledger_path);
  const RunRef run = ledger->runs().at(0);
  const std::atomic<bool> cancel = false;
  const auto replay_with = [&](const std::string& mode, std::uint32_t chunk,
                               std::uint32_t threads) {
    ReplayOptions options = scene.replay_options;
    options.mode = mode;
    options.engine.chunk = chunk;
    const auto backend = make_cpu_backend_on(ops, threads);
    ModelCache models(*backend, scene.observer, cancel);
    TestedProducts tested;
    return detrun::replay_one({options, *ledger, *backend, models, tested, cancel, scene.observer},
                              run);
  };
  const ReplayRun step = replay_with("step", 0, 1);
  CHECK(step.verdict == Verdict::kDiverged);
  REQUIRE(step.first_logits_difference.has_value());
  CHECK(*step.first_logits_difference > 0);
  for (const std::uint32_t chunk : kChunks) {
    CAPTURE(chunk);
    check_same(replay_with("parallel", chunk, 2), step);
  }
}

std::atomic<std::uint32_t> most_rows = 0;

/// The best instruction set, noting how many rows a product is computed for at once.
struct WatchedOps {
  WatchedOps() {
    f32.matmul = [](const kernels::MatmulArgs* args, std::uint64_t g0, std::uint64_t g1) {
      std::uint32_t seen = most_rows;
      while (seen < args->n_rows && !most_rows.compare_exchange_weak(seen, args->n_rows)) {
      }
      good_f32().matmul(args, g0, g1);
    };
    ops.name = "watched";
    ops.matmuls = &list;
    ops.n_matmuls = 1;
  }
  static const kernels::MatmulOps& good_f32() {
    return *find_matmul(*available_cpu_ops().front(), test::gguf::kTensorF32);
  }

  kernels::MatmulOps f32 = good_f32();
  const kernels::MatmulOps* list = &f32;
  kernels::CpuOps ops = *available_cpu_ops().front();
};

TEST_CASE("in parallel many steps are one pass, step by step only the prompt is") {
  LongScene scene;
  scene.options.tokens = std::vector<std::int32_t>{1, 260, 261};
  REQUIRE(scene.record().steps == 100);
  const WatchedOps watched;
  const auto ledger = Ledger::open_for_reading(scene.options.ledger_path);
  const RunRef run = ledger->runs().at(0);
  const std::atomic<bool> cancel = false;
  const auto rows_with = [&](const std::string& mode, std::uint32_t chunk) {
    ReplayOptions options = scene.replay_options;
    options.mode = mode;
    options.engine.chunk = chunk;
    const auto backend = make_cpu_backend_on(watched.ops, 1);
    ModelCache models(*backend, scene.observer, cancel);
    TestedProducts tested;
    most_rows = 0;
    const ReplayRun replayed = detrun::replay_one(
        {options, *ledger, *backend, models, tested, cancel, scene.observer}, run);
    CHECK(replayed.verdict == Verdict::kReproduced);
    return most_rows.load();
  };
  CHECK(rows_with("step", 512) == 3);
  // Products of many rows may be cut between threads; the head's are handed out so many at once.
  CHECK(rows_with("parallel", 512) == kLogitRowsMax);
  CHECK(rows_with("auto", 20) == 20);
}

}  // namespace
}  // namespace detrun
