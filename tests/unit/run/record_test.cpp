// The use case `record`: what lands in the ledger, in which order things fail, how a run ends.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/host.h"
#include "detrun/text.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::same_steps;
using test::Scene;
using test::Thrown;
using test::thrown_by;

TEST_CASE("a recorded run holds what was asked, what came out and how it was made") {
  Scene scene;
  scene.options.tags = {{"case", "A-17"}};
  const RecordReport report = scene.record();
  const RunRecord run = scene.read(1);
  CHECK(run.sealed);
  CHECK(report.seal.has_value());
  CHECK(report.steps == 12);
  CHECK(run.steps.size() == 12);
  CHECK(same_steps(run.steps, report.run.steps));
  CHECK(scene.observer.number == 1);
  CHECK(field_text(run.fields, field::id) == scene.observer.id);
  CHECK(field_text(run.fields, field::status) == "finished");
  CHECK(field_text(run.fields, field::stop_reason) == "length");
  CHECK(field_blob(run.fields, field::prompt) == "hello");
  CHECK(field_blob(run.fields, field::text) == scene.observer.text);
  CHECK(field_i64(run.fields, field::step_count) == 12);
  CHECK(field_i64(run.fields, field::params_n) == 12);
  CHECK(field_i64(run.fields, field::params_ctx) == 128);
  CHECK(field_i64(run.fields, field::params_bos) == 1);
  CHECK(field_text(run.fields, field::params_kv) == "f16");
  CHECK(field_text(run.fields, "tag.case") == "A-17");
  CHECK(field_text(run.fields, field::model_name) == "tiny");
  CHECK(field_text(run.fields, field::model_quantization) == "F32");
  CHECK(field_text(run.fields, field::model_provenance) ==
        R"({"general.author":"nobody","general.license":"mit"})");
  const Sha256Digest model = sha256_file(scene.options.model_path);
  CHECK(field_blob(run.fields, field::model_sha256) == to_blob(model).bytes);
  const auto stack = field_text(run.fields, field::stack_document);
  REQUIRE(stack.has_value());
  CHECK(field_blob(run.fields, field::stack_digest) == to_blob(sha256(*stack)).bytes);
}

TEST_CASE("the recorded digest of the program is that of its file") {
  Scene scene;
  scene.record();
  const RunRecord run = scene.read(1);
  const auto digest = field_blob(run.fields, field::tool_binary_sha256);
  CHECK(to_hex(as_bytes(digest.value())) == program_sha256());
}

TEST_CASE("every field of the list that applies to a finished run is filled") {
  Scene scene;
  scene.record();
  const RunRecord run = scene.read(1);
  for (const FieldInfo& info : run_fields()) {
    if (info.name == field::error || info.name == field::model_chat_template_sha256) continue;
    if (info.name.starts_with("prompts.")) continue;    // of a run from a file of prompts
    if (info.name == field::params_graph) continue;     // of a run on a GPU
    if (info.name == field::params_products) continue;  // of the profile cublas
    CAPTURE(info.name);
    CHECK(run.fields.count(info.name) == 1);
  }
}

TEST_CASE("a recorded ledger verifies") {
  Scene scene;
  scene.record();
  scene.record();
  const VerifyReport report = verify(scene.options.ledger_path);
  CHECK(report.ok);
  CHECK(report.runs_checked == 2);
  CHECK(report.steps_checked == 24);
}

TEST_CASE("without a ledger the same steps come out and nothing is written") {
  Scene scene;
  const RecordReport with = scene.record();
  Scene other;
  other.options.no_ledger = true;
  const RecordReport without = other.record();
  CHECK(same_steps(with.run.steps, without.run.steps));
  CHECK_FALSE(without.seal.has_value());
  CHECK(without.run.fields.count(field::number) == 0);
  CHECK(field_blob(without.run.fields, field::model_sha256) ==
        field_blob(with.run.fields, field::model_sha256));
  CHECK(field_blob(without.run.fields, field::text) == field_blob(with.run.fields, field::text));
  CHECK_FALSE(std::filesystem::exists(other.options.ledger_path));
  const Json document = show_to_json({without.run, without.seal}, true);
  CHECK(document.find("status")->as_string() == "finished");
  CHECK(document.find("seal")->is_null());
}

TEST_CASE("threads and instruction sets change no step") {
  Scene scene;
  std::string prompt(40, 'x');
  scene.options.prompt = prompt + " and some more";
  scene.options.n = 30;
  const RecordReport one = scene.record();
  scene.options.engine.threads = 2;
  const RecordReport two = scene.record();
  CHECK(same_steps(one.run.steps, two.run.steps));
  for (const std::string& isa : available_cpu_isas()) {
    CAPTURE(isa);
    setenv("DETRUN_CPU_ISA", isa.c_str(), 1);
    const RecordReport report = scene.record();
    CHECK(field_text(report.run.fields, field::params_isa) == isa);
    CHECK(same_steps(one.run.steps, report.run.steps));
  }
  unsetenv("DETRUN_CPU_ISA");
}

TEST_CASE("without -n a run goes on until the context is full or an end token comes") {
  Scene scene;
  scene.options.n.reset();
  scene.options.ctx = 20;
  const RecordReport report = scene.record();
  CHECK((report.stop_reason == "context" || report.stop_reason == "end"));
  CHECK(scene.read(1).fields.count(field::params_n) == 0);
  CHECK(scene.replay_one().verdict == Verdict::kReproduced);
}

TEST_CASE("a context longer than the model's is used as asked") {
  Scene scene;
  scene.options.ctx = 300;
  scene.record();
  CHECK(field_i64(scene.read(1).fields, field::params_ctx) == 300);
}

TEST_CASE("bad options are refused by name before anything is opened") {
  struct Row {
    const char* part;
    void (*change)(RecordOptions&);
  };
  for (const Row& row : {
           Row{"no model", [](RecordOptions& o) { o.model_path = ""; }},
           Row{"'f64'", [](RecordOptions& o) { o.kv = "f64"; }},
           Row{"cublas needs a GPU",
               [](RecordOptions& o) {
                 o.numerics = "cublas";
                 o.engine.backend = "cpu";
               }},
           Row{"'fast'", [](RecordOptions& o) { o.numerics = "fast"; }},
           Row{"backend cuda: ",
               [](RecordOptions& o) {
                 o.engine.backend = "cuda";
                 o.engine.device = "no such";
               }},
           Row{"--device names a GPU",
               [](RecordOptions& o) {
                 o.engine.backend = "cpu";
                 o.engine.device = "0";
               }},
           Row{"'tpu'", [](RecordOptions& o) { o.engine.backend = "tpu"; }},
           Row{"too large", [](RecordOptions& o) { o.n = std::uint64_t{1} << 63; }},
           Row{"no name",
               [](RecordOptions& o) {
                 o.tags = {{"", "x"}};
               }},
           Row{"'a=b'",
               [](RecordOptions& o) {
                 o.tags = {{"a=b", "x"}};
               }},
           Row{"'\\xff'",
               [](RecordOptions& o) {
                 o.tags = {{"\xff", "x"}};
               }},
           Row{"printable",
               [](RecordOptions& o) {
                 o.tags = {{"a\nb", "x"}};
               }},
           Row{"value of tag 'k'",
               [](RecordOptions& o) {
                 o.tags = {{"k", "\xc0"}};
               }},
           Row{"value of tag 'k'",
               [](RecordOptions& o) {
                 o.tags = {{"k", std::string(1, '\0')}};
               }},
           Row{"given twice",
               [](RecordOptions& o) {
                 o.tags = {{"k", "1"}, {"k", "2"}};
               }},
       }) {
    CAPTURE(row.part);
    Scene scene;
    row.change(scene.options);
    const Thrown error = thrown_by([&] { scene.record(); });
    CHECK(error.kind == ExitCode::kUsage);
    CAPTURE(error.message);
    CHECK(error.says(row.part));
    CHECK_FALSE(std::filesystem::exists(scene.options.ledger_path));
  }
}

TEST_CASE("an unwritable ledger is said before a missing model") {
  Scene scene;
  scene.options.ledger_path = scene.folder().file("no/such/folder/ledger.db");
  scene.options.model_path = scene.folder().file("no-model.gguf");
  const Thrown error = thrown_by([&] { scene.record(); });
  CHECK(error.kind == ExitCode::kUsage);
  CAPTURE(error.message);
  CHECK(error.says("ledger.db"));
}

TEST_CASE("a missing model is a usage error and leaves an empty, valid ledger") {
  Scene scene;
  scene.options.model_path = scene.folder().file("no-model.gguf");
  CHECK(thrown_by([&] { scene.record(); }).kind == ExitCode::kUsage);
  CHECK(verify(scene.options.ledger_path).ok);
}

TEST_CASE("a run of no steps is recorded, and its replay says that there was nothing to check") {
  Scene scene;
  scene.options.n = 0;
  CHECK(scene.record().steps == 0);
  const ReplayRun run = scene.replay_one();
  CHECK(run.verdict == Verdict::kReproduced);
  CHECK(run.steps_checked == 0);
  CHECK(run.reason.find("no step") != std::string::npos);
}

TEST_CASE("a model name that is not UTF-8 is kept as bytes") {
  Scene scene;
  test::TinyFile file = test::tiny_run_model();
  file.string("general.name", "\xff\x1b[2J");
  scene.options.model_path = scene.folder().write("odd.gguf", file.bytes());
  scene.record();
  const RunRecord run = scene.read(1);
  CHECK(field_blob(run.fields, field::model_name) == "\xff\x1b[2J");
  CHECK_FALSE(run_to_json(run, true).dump().empty());
  CHECK(verify(scene.options.ledger_path).ok);
}

TEST_CASE("a recording tells how many bytes of the weights are loaded") {
  class Watching final : public Observer {
   public:
    void on_progress(std::string_view what, std::uint64_t done, std::uint64_t total,
                     std::string_view unit) override {
      if (what != "loading the weights") return;
      CHECK(unit == "bytes");
      CHECK(total > 0);
      finished = done == total;
    }
    bool finished = false;
  };
  Scene scene;
  Watching watching;
  detrun::record(scene.options, scene.cancel, watching);
  CHECK(watching.finished);
}

TEST_CASE("every model in fixtures/models runs and replays") {
  const std::filesystem::path models = std::string(DETRUN_SOURCE_DIR) + "/fixtures/models";
  std::uint64_t n_models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (entry.path().extension() != ".gguf") continue;
    ++n_models;
    CAPTURE(entry.path().string());
    Scene scene;
    scene.options.model_path = entry.path().string();
    scene.options.n = 8;
    CHECK(scene.record().steps >= 1);
    CHECK(scene.replay_one().verdict == Verdict::kReproduced);
  }
  CHECK(n_models >= 1);
}

TEST_CASE("a model of others tells of a girl named Lily, and replays") {
  for (const char* name : {"stories260K-f32.gguf", "stories260K-f16.gguf", "stories260K-q8_0.gguf",
                           "stories260K-q4_0.gguf"}) {
    Scene scene;
    scene.options.model_path = test::shared_model(name);
    if (scene.options.model_path.empty()) continue;
    CAPTURE(name);
    scene.options.prompt = "";
    scene.options.n = 60;
    scene.record();
    CAPTURE(scene.observer.text);
    CHECK(scene.observer.text.find("Lily") != std::string::npos);
    CHECK(scene.replay_one().verdict == Verdict::kReproduced);
  }
}

}  // namespace
}  // namespace detrun
