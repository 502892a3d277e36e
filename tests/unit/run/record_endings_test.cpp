// The use case `record`: how a run can end before its time, and what the ledger says then.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/text.h"
#include "run/ledger_sink.h"
#include "run/recording.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::same_steps;
using test::Scene;
using test::Thrown;
using test::thrown_by;

TEST_CASE("a run that is cancelled in the middle is sealed as cancelled and replays") {
  Scene scene;
  scene.options.n.reset();
  scene.observer.after_text = [&] {
    if (scene.observer.n_texts == 5) scene.cancel = true;
  };
  const RecordReport report = scene.record();
  CHECK(report.stop_reason == "cancelled");
  CHECK(report.seal.has_value());
  const RunRecord run = scene.read(1);
  CHECK(field_text(run.fields, field::status) == "cancelled");
  CHECK(run.steps.size() == report.steps);
  CHECK(run.steps.size() >= 5);
  scene.cancel = false;
  scene.observer.after_text = nullptr;
  const ReplayRun replayed = scene.replay_one();
  CHECK(replayed.verdict == Verdict::kReproduced);
  CHECK(replayed.complete);
}

TEST_CASE("a reader that closes its pipe ends the run as cancelled, reason closed") {
  Scene scene;
  scene.observer.close_after = 3;
  const RecordReport report = scene.record();
  CHECK(report.stop_reason == "closed");
  CHECK(report.seal.has_value());
  CHECK(field_text(scene.read(1).fields, field::status) == "cancelled");
  CHECK(scene.replay_one().verdict == Verdict::kReproduced);
}

TEST_CASE("an error in mid-run is sealed as failed with its message and thrown on") {
  Scene scene;
  scene.observer.after_text = [&] {
    if (scene.observer.n_texts == 4) throw Error(ExitCode::kInternal, "the screen is on fire");
  };
  const Thrown error = thrown_by([&] { scene.record(); });
  CHECK(error.kind == ExitCode::kInternal);
  CHECK(error.message == "the screen is on fire");
  const RunRecord run = scene.read(1);
  CHECK(run.sealed);
  CHECK(field_text(run.fields, field::status) == "failed");
  CHECK(field_text(run.fields, field::stop_reason) == "error");
  CHECK(field_text(run.fields, field::error) == "the screen is on fire");
  CHECK(run.steps.size() >= 4);
  scene.observer.after_text = nullptr;
  CHECK(scene.replay_one().verdict == Verdict::kReproduced);
}

TEST_CASE("logits that are not finite end the run as failed, naming the step") {
  Scene scene;
  test::TinyFile file = test::tiny_run_model();
  std::string& norm = file.tensor("output_norm.weight").data;
  for (std::size_t i = 0; i < norm.size(); i += 4) test::patch_le(norm, i, 3e38F);
  scene.options.model_path = scene.folder().write("hot.gguf", file.bytes());
  const Thrown error = thrown_by([&] { scene.record(); });
  CHECK(error.kind == ExitCode::kInternal);
  const RunRecord run = scene.read(1);
  CHECK(run.sealed);
  CHECK(field_text(run.fields, field::status) == "failed");
  CHECK(field_text(run.fields, field::error) == error.message);
  CHECK(run.steps.empty());
}

/// Files of this process may not grow beyond a size while it lives: the disk is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes_max) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes_max, before_.rlim_max};
    signal_ = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int) = nullptr;
};

TEST_CASE("a full disk in mid-run is an internal error, and what was committed stays") {
  Scene scene;
  scene.options.n = 100;
  std::optional<FullDisk> full;
  scene.observer.after_text = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (scene.observer.n_texts != 30) return;
    const std::uintmax_t wal = std::filesystem::file_size(scene.options.ledger_path + "-wal");
    full.emplace(static_cast<rlim_t>(std::max<std::uintmax_t>(wal, 32768)));
  };
  const Thrown error = thrown_by([&] { scene.record(); });
  full.reset();
  CAPTURE(error.message);
  CHECK(error.kind == ExitCode::kInternal);
  CHECK(scene.observer.n_texts < 100);
  const RunRecord run = scene.read(1);
  CHECK_FALSE(run.sealed);
  CHECK(run.steps.size() >= 10);
  CHECK(verify(scene.options.ledger_path).ok);
  scene.observer.after_text = nullptr;
  const ReplayRun prefix = scene.replay_one();
  CHECK(prefix.verdict == Verdict::kReproduced);
  CHECK_FALSE(prefix.complete);
  CHECK(prefix.steps_checked == run.steps.size());
  CHECK(scene.record().seal.has_value());
}

TEST_CASE("a failure between a run's entry and its first step is sealed as failed too") {
  for (const char* where : {"start", "prompt"}) {
    CAPTURE(where);
    Scene scene;
    scene.observer.on_begin = [&](std::string_view what) {
      if (what == where) throw Error(ExitCode::kInternal, "the screen is on fire");
    };
    CHECK(thrown_by([&] { scene.record(); }).message == "the screen is on fire");
    const RunRecord run = scene.read(1);
    CHECK(run.sealed);
    CHECK(field_text(run.fields, field::status) == "failed");
    CHECK(field_text(run.fields, field::error) == "the screen is on fire");
    CHECK(run.fields.contains(field::model_sha256));
    CHECK(run.steps.empty());
  }
}

TEST_CASE("a model that changed before its digest was known leaves no digest in the failed run") {
  Scene scene;
  {
    const std::unique_ptr<Ledger> ledger = Ledger::open_for_recording(scene.options.ledger_path);
    Observer nobody;
    const RecordEngine engine(scene.options, nobody);
    std::filesystem::last_write_time(scene.options.model_path, {});  // nobody took the digest yet
    const Model& model = *engine.model.model;
    const std::unique_ptr<Context> context =
        open_context(model, *engine.backend, 8, KvType::kF32, 0);
    LedgerSink sink(*ledger, ledger->begin_run({}));
    Recording recording(sink, *engine.late, scene.observer);
    const std::atomic<bool> cancel = false;
    const Thrown error = thrown_by([&] {
      recording.run(*context, engine.model, {{3}, 4}, cancel);
    });
    CHECK(error.says("changed while in use"));
  }
  const RunRecord run = scene.read(1);
  CHECK(run.sealed);
  CHECK(field_text(run.fields, field::status) == "failed");
  CHECK_FALSE(run.fields.contains(field::model_sha256));
  CHECK(run.fields.contains(field::tool_binary_sha256));
  CHECK(verify(scene.options.ledger_path).ok);
}

TEST_CASE("a long prompt waits for the run's entry: who ends the run then has no step") {
  Scene scene;
  scene.options.model_path = DETRUN_SOURCE_DIR "/fixtures/models/detrun-decisions-q8_0.gguf";
  scene.options.tokens = std::vector<std::int32_t>(100, 5);
  scene.observer.on_begin = [&](std::string_view what) {
    if (what == "start") scene.cancel = true;
  };
  scene.record();
  const RunRecord run = scene.read(1);
  CHECK(field_text(run.fields, field::status) == "cancelled");
  CHECK(run.steps.empty());
}

TEST_CASE("a model that is changed while it runs makes the run fail") {
  Scene scene;
  scene.observer.after_text = [&] {
    if (scene.observer.n_texts != 3) return;
    std::ofstream out(scene.options.model_path, std::ios::binary | std::ios::app);
    out << "more";
  };
  const Thrown error = thrown_by([&] { scene.record(); });
  CHECK(error.kind == ExitCode::kUsage);
  CHECK(field_text(scene.read(1).fields, field::status) == "failed");
}

}  // namespace
}  // namespace detrun
