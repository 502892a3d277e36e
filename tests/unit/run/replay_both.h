// A run replayed in both modes, with many chunks: they must say the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/run/scene.h"

namespace detrun::test {

inline const std::vector<std::uint32_t> kChunks = {1, 2, 3, 7, 64, 65, 512};

inline void check_same(const ReplayRun& parallel, const ReplayRun& step) {
  CHECK(parallel.verdict == step.verdict);
  CHECK(parallel.complete == step.complete);
  CHECK(parallel.steps_checked == step.steps_checked);
  CHECK(parallel.first_logits_difference == step.first_logits_difference);
  CHECK(parallel.first_token_difference == step.first_token_difference);
  CHECK(parallel.recorded_token == step.recorded_token);
  CHECK(parallel.replayed_token == step.replayed_token);
  CHECK(parallel.recorded_piece == step.recorded_piece);
  CHECK(parallel.replayed_piece == step.replayed_piece);
  CHECK(parallel.position == step.position);
  CHECK(parallel.reason == step.reason);
}

/// Replays the newest run step by step and in parallel with every chunk; what they agree on.
inline ReplayRun replay_both(Scene& scene, const std::vector<std::uint32_t>& chunks = kChunks) {
  scene.replay_options.mode = "step";
  scene.replay_options.engine.chunk = 0;
  const ReplayRun step = scene.replay_one();
  const bool failed = step.verdict == Verdict::kInternal;  // then no mode is told
  CHECK(step.mode == (failed ? "" : "step"));
  for (const std::uint32_t chunk : chunks) {
    CAPTURE(chunk);
    scene.replay_options.mode = "parallel";
    scene.replay_options.engine.chunk = chunk;
    const ReplayRun parallel = scene.replay_one();
    CHECK(parallel.mode == (failed ? "" : "parallel"));
    check_same(parallel, step);
  }
  return step;
}

/// A scene whose run has 100 steps: no end token cuts it short.
struct LongScene : Scene {
  LongScene() {
    options.prompt = "replay";
    options.n = 100;
  }
};

}  // namespace detrun::test
