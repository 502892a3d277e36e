// The use case `record --prompts`: the same bits as runs alone, nothing lost, nothing twice.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::same_steps;
using test::Scene;
using test::thrown_by;

/// Keeps what it was told; may act after a line.
class Lines final : public PromptsObserver {
 public:
  void on_bad_line(const BadLine& line) override { bad[line.line] = line.message; }
  void on_lines(std::uint64_t, std::uint64_t n_done) override { done_before = n_done; }
  bool on_line(const LineReport& line) override {
    lines.push_back(line);
    if (after_line) after_line();
    return lines.size() < close_after;
  }
  void on_progress(std::string_view, std::uint64_t, std::uint64_t, std::string_view) override {
    ++n_progress;
  }
  void on_run_started(std::int64_t, const std::string&) override {
    ++n_started;
    if (after_start) after_start();
  }

  std::map<std::uint64_t, std::string> bad;
  std::vector<LineReport> lines;
  std::uint64_t done_before = 0, n_started = 0, n_progress = 0, close_after = 1000000;
  std::function<void()> after_line, after_start;
};

class PromptsScene : public Scene {
 public:
  explicit PromptsScene(const std::string& text) { write(text); }
  void write(const std::string& text) { prompts.path = folder().write("prompts.jsonl", text); }
  PromptsReport run(Lines& lines) { return record_prompts(options, prompts, cancel, lines); }
  PromptsReport run() {
    Lines lines;
    return run(lines);
  }
  std::uint64_t n_runs() const {
    return Ledger::open_for_reading(options.ledger_path)->runs().size();
  }

  PromptsOptions prompts;
};

constexpr const char* kFour = R"({"prompt": "hello", "n": 20}
{"tokens": [1, 270, 280], "kv": "f32"}

{"prompt": "a longer one, in chunks of three", "chunk": 3, "ctx": 64, "tags": {"case": "4"}}
{"prompt": "hello"}
)";

TEST_CASE("each line has the bits of the same run alone, whatever ran before it") {
  PromptsScene many(kFour);
  Lines lines;
  const PromptsReport report = many.run(lines);
  CHECK(report.lines == 4);
  CHECK(report.recorded == 4);
  CHECK(report.bad + report.failed + report.done == 0);
  REQUIRE(lines.lines.size() == 4);
  const std::uint64_t numbers[] = {1, 2, 4, 5};
  void (*const changes[])(RecordOptions&) = {
      [](RecordOptions& o) { o.n = 20; },
      [](RecordOptions& o) {
        o.tokens = std::vector<std::int32_t>{1, 270, 280};
        o.kv = "f32";
      },
      [](RecordOptions& o) {
        o.prompt = "a longer one, in chunks of three";
        o.ctx = 64;
      },
      [](RecordOptions&) {},
  };
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    Scene alone;
    changes[i](alone.options);
    const RecordReport single = alone.record();
    CHECK(lines.lines[i].line == numbers[i]);
    CHECK(same_steps(single.run.steps, lines.lines[i].report.run.steps));
    const RunRecord run = many.read(static_cast<std::int64_t>(i + 1));
    CHECK(same_steps(single.run.steps, run.steps));
    for (const std::string_view name :
         {field::params_n, field::params_ctx, field::params_kv, field::prompt_tokens,
          field::prompt_source, field::model_sha256, field::tool_binary_sha256}) {
      CAPTURE(name);
      CHECK(run.fields.at(std::string(name)) == single.run.fields.at(std::string(name)));
    }
    CHECK(field_i64(run.fields, field::prompts_line) == static_cast<std::int64_t>(numbers[i]));
    CHECK(field_blob(run.fields, field::prompts_sha256) == to_blob(sha256(kFour)).bytes);
  }
  CHECK(field_text(many.read(3).fields, "tag.case") == "4");
  CHECK(verify(many.options.ledger_path).ok);
  many.replay_options.selectors.clear();
  many.replay_options.all = true;
  CHECK(many.replay().verdict == Verdict::kReproduced);
}

TEST_CASE("a line without a chunk does not get the chunk of the line before it") {
  const std::string text = R"("a prompt of many tokens, one pass or many", "n": 1)";
  PromptsScene scene("{\"prompt\": " + text + ", \"chunk\": 1}\n{\"prompt\": " + text + "}\n");
  Lines lines;
  std::vector<std::uint64_t> passes;
  lines.after_line = [&] { passes.push_back(std::exchange(lines.n_progress, 0)); };
  CHECK(scene.run(lines).recorded == 2);
  REQUIRE(passes.size() == 2);
  CHECK(passes[0] > passes[1] + 20);  // each pass of the prompt is told
}

TEST_CASE("a run alone has no line, and its document says nothing of one") {
  PromptsScene scene(kFour);
  scene.record();
  CHECK_FALSE(scene.read(1).fields.contains(field::prompts_line));
  CHECK(run_to_json(scene.read(1), false).find("prompts") == nullptr);
  scene.run();
  const Json document = run_to_json(scene.read(2), false);
  REQUIRE(document.find("prompts") != nullptr);
  CHECK(document.find("prompts")->find("line")->as_i64() == 1);
  CHECK(document.find("prompts")->find("sha256")->as_string() == to_hex(sha256(kFour)));
}

TEST_CASE("bad lines are named, all of them before the first run, and the others are recorded") {
  PromptsScene scene(R"({"prompt": "a"}
{"prompt": "b", "n": "x"}
{"tokens": [99999]}
{"prompt": "too long for nine", "ctx": 9}
not json
{"prompt": "c"}
{"tokens": []}
)");
  Lines lines;
  lines.after_start = [&] { CHECK(lines.bad.size() == 5); };
  const PromptsReport report = scene.run(lines);
  CHECK(report.bad == 5);
  CHECK(report.recorded == 2);
  CHECK(lines.bad.at(2).find("'n'") != std::string::npos);
  CHECK(lines.bad.at(3).find("99999") != std::string::npos);
  CHECK(lines.bad.at(4).find("the context holds 9") != std::string::npos);
  CHECK(lines.bad.at(5).find("JSON") != std::string::npos);
  CHECK(lines.bad.at(7).find("empty") != std::string::npos);
  CHECK(scene.n_runs() == 2);
  // Again: the good ones are done, the bad ones still bad.
  Lines again;
  const PromptsReport second = scene.run(again);
  CHECK(second.done == 2);
  CHECK(second.bad == 5);
  CHECK(again.bad == lines.bad);
  CHECK(scene.n_runs() == 2);
}

TEST_CASE("strict stops at a bad line before anything is recorded") {
  PromptsScene scene("{\"prompt\": \"a\"}\n{\"tokens\": [99999]}\n");
  scene.prompts.strict = true;
  const test::Thrown error = thrown_by([&] { scene.run(); });
  CHECK(error.kind == ExitCode::kUsage);
  CHECK(error.says("line 2"));
  CHECK(scene.n_runs() == 0);
  scene.write("{\"prompt\": \"a\"}\n");
  CHECK(scene.run().recorded == 1);
}

TEST_CASE("the command goes on where it was ended, and a done file needs no model") {
  PromptsScene scene(kFour);
  Lines lines;
  lines.after_start = [&] {
    if (lines.n_started == 3) scene.cancel = true;
  };
  const PromptsReport ended = scene.run(lines);
  CHECK(ended.cancelled);
  CHECK(ended.recorded == 2);
  CHECK(field_text(scene.read(3).fields, field::status) == "cancelled");
  scene.cancel = false;
  Lines rest;
  const PromptsReport second = scene.run(rest);
  CHECK_FALSE(second.cancelled);
  CHECK(rest.done_before == 2);
  CHECK(second.done == 2);
  CHECK(second.recorded == 2);
  REQUIRE(rest.lines.size() == 2);
  CHECK(rest.lines[0].line == 4);
  CHECK(rest.lines[1].line == 5);
  std::filesystem::rename(scene.options.model_path, scene.options.model_path + ".gone");
  CHECK(scene.run().done == 4);
  CHECK(scene.n_runs() == 5);
}

TEST_CASE("a file with another byte is another file, and so is another ledger") {
  PromptsScene scene("{\"prompt\": \"a\"}\n");
  CHECK(scene.run().recorded == 1);
  scene.write("{\"prompt\": \"a\"}\n\n");
  CHECK(scene.run().recorded == 1);
  scene.options.ledger_path = scene.folder().file("other.db");
  CHECK(scene.run().recorded == 1);
}

TEST_CASE("a failed run is sealed and named, the rest goes on, and its line is not done") {
  PromptsScene scene("{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n{\"prompt\": \"c\"}\n");
  test::TinyFile file = test::tiny_run_model();
  // The row of 'b' alone overflows.
  std::string& rows = file.tensor("token_embd.weight").data;
  const std::size_t row_bytes = rows.size() / test::tiny_vocab().size();
  for (std::size_t i = 0; i < row_bytes; i += 4) {
    test::patch_le(rows, (3 + 256 + 1 + 1) * row_bytes + i, 3e38F);
  }
  scene.options.model_path = scene.folder().write("hot.gguf", file.bytes());
  scene.options.n = 1;
  Lines lines;
  const PromptsReport report = scene.run(lines);
  CHECK(report.recorded == 2);
  CHECK(report.failed == 1);
  REQUIRE(lines.lines.size() == 3);
  CHECK(lines.lines[1].error.find("finite") != std::string::npos);
  CHECK(field_text(lines.lines[1].report.run.fields, field::status) == "failed");
  CHECK(field_text(scene.read(2).fields, field::status) == "failed");
  CHECK(field_text(scene.read(3).fields, field::status) == "finished");
  CHECK(verify(scene.options.ledger_path).ok);
  const PromptsReport again = scene.run();
  CHECK(again.done == 2);
  CHECK(again.failed == 1);
}

TEST_CASE("a context that no memory holds is the fault of its line alone") {
  PromptsScene scene("{\"prompt\": \"a\", \"ctx\": 2147483647}\n{\"prompt\": \"b\"}\n");
  Lines lines;
  const PromptsReport report = scene.run(lines);
  CHECK(report.recorded == 1);
  CHECK(report.bad + report.failed == 1);
}

TEST_CASE("a model that changes while lines are recorded ends it all") {
  PromptsScene scene(kFour);
  Lines lines;
  lines.after_line = [&] {
    std::ofstream(scene.options.model_path, std::ios::binary | std::ios::app) << "more";
  };
  const test::Thrown error = thrown_by([&] { scene.run(lines); });
  CHECK(error.kind == ExitCode::kUsage);
  CHECK(error.says("changed"));
  CHECK(lines.lines.size() == 1);
}

TEST_CASE("a reader that has gone ends the recording after its line") {
  PromptsScene scene(kFour);
  Lines lines;
  lines.close_after = 2;
  const PromptsReport report = scene.run(lines);
  CHECK(report.closed);
  CHECK(report.recorded == 2);
  CHECK(scene.n_runs() == 2);
}

TEST_CASE("without a ledger every line is run, each time") {
  PromptsScene scene(kFour);
  scene.options.no_ledger = true;
  CHECK(scene.run().recorded == 4);
  CHECK(scene.run().recorded == 4);
  CHECK_FALSE(std::filesystem::exists(scene.options.ledger_path));
}

TEST_CASE("two recorders of one file share the lines: each is recorded once") {
  std::string text;
  for (int i = 0; i < 12; ++i) text += "{\"prompt\": \"line " + std::to_string(i) + "\"}\n";
  PromptsScene scene(text);
  PromptsReport reports[2];
  std::thread other([&] { reports[1] = scene.run(); });
  reports[0] = scene.run();
  other.join();
  CHECK(reports[0].recorded + reports[1].recorded == 12);
  CHECK(reports[0].recorded + reports[0].done == 12);
  CHECK(reports[1].recorded + reports[1].done == 12);
  CHECK(scene.n_runs() == 12);
  CHECK(verify(scene.options.ledger_path).ok);
}

TEST_CASE("a line that another process dies over is recorded here") {
  PromptsScene scene("{\"prompt\": \"a\"}\n");
  auto ledger = Ledger::open_for_recording(scene.options.ledger_path);
  FieldMap fields;
  fields.emplace(field::prompts_sha256, to_blob(sha256("{\"prompt\": \"a\"}\n")));
  fields.emplace(field::prompts_line, std::int64_t{1});
  std::unique_ptr<RunWriter> writer = ledger->begin_run(fields);
  std::thread death([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    writer.reset();
  });
  const PromptsReport report = scene.run();
  death.join();
  CHECK(report.recorded == 1);
  CHECK(scene.n_runs() == 2);
  CHECK(field_text(scene.read(1).fields, field::status) == "interrupted");
}

}  // namespace
}  // namespace detrun
