// Several runs at once: the verdicts of one job, in the same order, and each model loaded once.
#include "run/replay_jobs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::Scene;

/// Good runs of two models in turn, a forged one, one of an unknown contract.
class MixedScene : public Scene {
 public:
  MixedScene() {
    options.n = 6;
    const std::string first = options.model_path;
    const std::string second = folder().write("second.gguf", test::tiny_run_model(2).bytes());
    for (int i = 0; i < 6; ++i) {
      options.model_path = i % 2 == 0 ? first : second;
      options.prompt = "prompt " + std::to_string(i);
      record();
    }
    RunRecord forged = read(2);
    forged.steps[3].logits_xxh3[0] ^= 1;
    forge(forged);
    RunRecord later = read(1);
    later.fields[std::string(field::numerics_version)] = std::int64_t{9};
    forge(later);
    options.model_path = first;
    record();
    replay_options.selectors.clear();
    replay_options.all = true;
  }
};

std::string document(const ReplayReport& report) { return replay_to_json(report).dump(); }

TEST_CASE("any number of jobs gives the document of one") {
  MixedScene scene;
  const ReplayReport one = scene.replay();
  REQUIRE(one.runs.size() == 9);
  CHECK(one.verdict == Verdict::kDiverged);
  for (std::size_t i = 0; i < one.runs.size(); ++i) {
    CHECK(one.runs[i].number == static_cast<std::int64_t>(i + 1));
  }
  for (const std::uint32_t jobs : {2U, 3U, 8U, 64U}) {
    CAPTURE(jobs);
    scene.replay_options.jobs = jobs;
    scene.replay_options.engine.threads = jobs == 3 ? 7 : 0;
    CHECK(document(scene.replay()) == document(one));
  }
}

TEST_CASE("fail-fast with several jobs ends where one job ends") {
  MixedScene scene;
  scene.replay_options.fail_fast = true;
  const ReplayReport one = scene.replay();
  CHECK(one.runs.size() == 7);
  CHECK(one.not_replayed.size() == 2);
  scene.replay_options.jobs = 4;
  for (int i = 0; i < 5; ++i) {
    const ReplayReport four = scene.replay();
    CHECK(document(four) == document(one));
    CHECK(four.not_replayed.size() == 2);
  }
}

/// Counts how often the digest of a model was begun.
class Watching final : public Observer {
 public:
  void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                   std::string_view unit) override {
    if (unit == "runs") {
      CHECK(done <= total);
      CHECK(done >= last_);
      last_ = done;
      seen.insert(total);
    } else {
      others.insert(std::string(what));
    }
  }
  std::set<std::uint64_t> seen;
  std::set<std::string> others;

 private:
  std::uint64_t last_ = 0;
};

TEST_CASE("the progress of many runs counts runs, whatever each of them reports") {
  MixedScene scene;
  for (const std::uint32_t jobs : {1U, 2U}) {
    scene.replay_options.jobs = jobs;
    Watching watching;
    replay(scene.replay_options, scene.cancel, watching);
    CHECK(watching.seen == std::set<std::uint64_t>{9});
    for (const std::string& other : watching.others) {
      CHECK((other == "hashing the model" || other == "loading the weights"));
    }
    CHECK(watching.others.contains("loading the weights") == (jobs == 1));
  }
}

TEST_CASE("a cancelled command is inconclusive and says which runs it left") {
  MixedScene scene;
  scene.cancel = true;
  for (const std::uint32_t jobs : {1U, 3U}) {
    scene.replay_options.jobs = jobs;
    const ReplayReport report = scene.replay();
    CHECK(report.verdict == Verdict::kInconclusive);
    CHECK(report.runs.size() + report.not_replayed.size() == 9);
    CHECK_FALSE(report.not_replayed.empty());
  }
}

TEST_CASE("cancelled between two runs, what was replayed is not the verdict on all") {
  MixedScene scene;
  class Cancelling final : public Observer {
   public:
    explicit Cancelling(std::atomic<bool>& cancel) : cancel_(cancel) {}
    void on_progress(std::string_view, std::uint64_t done, std::uint64_t,
                     std::string_view unit) override {
      if (unit == "runs" && done == 1) cancel_ = true;
    }

   private:
    std::atomic<bool>& cancel_;
  } observer(scene.cancel);
  const ReplayReport report = replay(scene.replay_options, scene.cancel, observer);
  REQUIRE(report.runs.size() == 1);
  CHECK(report.runs[0].verdict == Verdict::kReproduced);
  CHECK(report.verdict == Verdict::kInconclusive);
  CHECK(report.not_replayed.size() == 8);
}

}  // namespace
}  // namespace detrun
