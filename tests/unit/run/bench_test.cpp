// The use case `bench` on a tiny model: what is measured, what is refused, how it ends.
#include <doctest/doctest.h>

#include <algorithm>

#include "detrun/model.h"
#include "detrun/model_file.h"
#include "run/bench_trace.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::Scene;
using test::Thrown;
using test::thrown_by;

BenchOptions tiny_options(const Scene& scene) {
  BenchOptions options;
  options.model_path = scene.options.model_path;
  options.engine.threads = 2;
  options.repeat = 2;
  options.n = 3;
  return options;
}

BenchReport bench_of(const BenchOptions& options) {
  const std::atomic<bool> cancel = false;
  Observer observer;
  return bench(options, cancel, observer);
}

ExitCode refusal_of(const BenchOptions& options) {
  return thrown_by([&] { bench_of(options); }).kind;
}

TEST_CASE("every result is measured as often as asked, beside its ceiling") {
  const Scene scene;
  const BenchReport report = bench_of(tiny_options(scene));
  std::vector<std::string> names;
  for (const BenchResult& result : report.results) {
    CAPTURE(result.name);
    names.push_back(result.name);
    CHECK(result.tokens_per_s.size() == 2);
    CHECK(result.ceiling_tokens_per_s.size() == 2);
    CHECK(*std::min_element(result.tokens_per_s.begin(), result.tokens_per_s.end()) > 0);
    CHECK(ceiling_ratio(result) > 0);
    CHECK(result.macs > 0);
  }
  CHECK(names == bench_names());
  CHECK(report.results[1].rows == 512);
  CHECK(report.results[2].rows == 128);
  CHECK(report.results[5].rows == 512);
  CHECK(report.results[3].no_ledger_tokens_per_s.size() == 2);
  CHECK(report.fma_flops_per_s.size() == 2);
  CHECK(report.threads == 2);
  CHECK(report.load_s > 0);
  CHECK(report.file_bytes == std::filesystem::file_size(scene.options.model_path));
}

TEST_CASE("a step of decode reads every matrix of the model once, and the cache") {
  const Scene scene;
  BenchOptions options = tiny_options(scene);
  options.only = {"decode"};
  const BenchReport report = bench_of(options);
  REQUIRE(report.results.size() == 1);
  const auto file = ModelFile::open(options.model_path);
  const bool tied = file->find_tensor("output.weight") == nullptr;
  std::uint64_t weights = 0;
  for (const TensorInfo& tensor : file->tensors()) {
    const bool is_table = tensor.name == "token_embd.weight" && !tied;
    if (tensor.n_rows() > 1 && !is_table) weights += tensor.data.size();
  }
  const ModelSpec spec = read_model_spec(*file);
  const std::uint64_t cache = 2 * 2 * spec.n_layers * (8 + 3 / 2) * spec.n_kv_heads * spec.head_dim;
  CHECK(report.bytes_per_token == weights + cache);
  CHECK(report.results[0].rows == 3);
}

TEST_CASE("the products of a trace are those of the work, on every repetition") {
  MatmulTrace trace;
  TracingBackend backend(make_cpu_backend({.n_threads = 1, .isa = {}}));
  const std::vector<float> values(6, 1.0F);
  const auto weight =
      backend.load_weight({"w", QType::kF32, 3, 2, std::as_bytes(std::span<const float>(values))});
  const auto x = backend.new_buffer(6);
  const auto y = backend.new_buffer(4);
  backend.upload(*x, values);
  const MatmulTask task{weight.get(), y.get()};
  backend.matmul({&task, 1}, *x, 2);  // before: not noted
  backend.note_in(&trace);
  backend.matmul({&task, 1}, *x, 2);
  backend.note_in(nullptr);
  CHECK(trace.macs() == 12);
  CHECK(trace.weight_bytes() == 24);
  backend.upload(*y, std::vector<float>(4, 0.0F));
  trace.repeat(backend);
  std::vector<float> out(4);
  backend.download(*y, 0, out);
  CHECK(out == std::vector<float>(4, 3.0F));
  CHECK(trace.macs() == 12);
}

TEST_CASE("what bench cannot do is refused before anything is loaded") {
  const Scene scene;
  BenchOptions options = tiny_options(scene);
  options.only = {"decode", "speed"};
  CHECK(refusal_of(options) == ExitCode::kUsage);
  options = tiny_options(scene);
  options.shape = "135m";
  CHECK(refusal_of(options) == ExitCode::kUsage);  // a model and a shape
  options.model_path.clear();
  CHECK(refusal_of(options) == ExitCode::kUsage);  // a shape without a type
  options.type = "q9";
  CHECK(refusal_of(options) == ExitCode::kUsage);
  options.type = "q8_0";
  options.shape = "7m";
  CHECK(refusal_of(options) == ExitCode::kUsage);
  CHECK(refusal_of({}) == ExitCode::kUsage);
  options = tiny_options(scene);
  options.ctx = 64;  // prefill needs 512
  const Thrown thrown = thrown_by([&] { bench_of(options); });
  CHECK(thrown.kind == ExitCode::kUsage);
  CHECK(thrown.message.find("512") != std::string::npos);
}

TEST_CASE("a cancelled bench says so and has no figures of what was not measured") {
  const Scene scene;
  const std::atomic<bool> cancel = true;
  Observer observer;
  const BenchReport report = bench(tiny_options(scene), cancel, observer);
  CHECK(report.cancelled);
  CHECK(report.results.empty());
}

TEST_CASE("nothing of a bench stays behind") {
  const Scene scene;
  const auto count = [] {
    std::size_t n = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
      n += entry.path().filename().string().starts_with("detrun-bench-") ? 1U : 0U;
    }
    return n;
  };
  const std::string own = scene.folder().file("tmp");
  std::filesystem::create_directory(own);
  REQUIRE(setenv("TMPDIR", own.c_str(), 1) == 0);
  BenchOptions options = tiny_options(scene);
  options.only = {"record"};
  bench_of(options);
  CHECK(count() == 0);
  unsetenv("TMPDIR");
}

}  // namespace
}  // namespace detrun
