// The stress test of a tiny model: one output on sound machines, every planted fault found with its
// configuration and step, a plan that the seed alone decides, errors that name the run.
#include "run/stress.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "backend/cpu_select.h"
#include "kernels/cpu/ops.h"
#include "tests/unit/run/scene.h"

using namespace detrun;
using namespace detrun::test;

namespace {

/// The norm with its sum taken from the last element to the first: a sound sum, other bits.
bool rmsnorm_backwards(const float* x, const float* weight, float eps, std::uint64_t n, float* y) {
  std::vector<float> turned(x, x + n), turned_weight(weight, weight + n), out(n);
  std::reverse(turned.begin(), turned.end());
  std::reverse(turned_weight.begin(), turned_weight.end());
  const bool finite =
      kernels::scalar::kOps.rmsnorm(turned.data(), turned_weight.data(), eps, n, out.data());
  std::copy(out.rbegin(), out.rend(), y);
  return finite;
}

const kernels::CpuOps& faulty_ops() {
  static const kernels::CpuOps ops = [] {
    kernels::CpuOps copy = kernels::scalar::kOps;
    copy.rmsnorm = rmsnorm_backwards;
    return copy;
  }();
  return ops;
}

/// Sound machines, but the one with `threads` threads sums in another order.
BackendFactory faulty_with(std::uint32_t threads) {
  return [threads](const CpuOptions& options) {
    return options.n_threads == threads
               ? make_cpu_backend_on(faulty_ops(), threads)
               : make_cpu_backend_on(kernels::scalar::kOps, options.n_threads);
  };
}

class StressScene : public Scene {
 public:
  StressScene() {
    stress_options.model_path = options.model_path;
    stress_options.prompt = "claim seventeen water damage";
    stress_options.n = 6;
    stress_options.runs = 40;
    stress_options.threads = {1, 2, 3};
    stress_options.chunks = {1, 3, 64};
  }
  StressReport run() { return stress(stress_options, cancel, observer); }
  StressReport run_on(BackendFactory factory) {
    return stress_on(stress_options, std::move(factory), cancel, observer);
  }
  std::string error() {
    try {
      run();
    } catch (const Error& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return "no error";
  }

  StressOptions stress_options;
};

}  // namespace

TEST_CASE("a sound machine gives one output in every configuration") {
  StressScene scene;
  scene.stress_options.runs =
      1 + 3 * 3 * 2 * 2 * static_cast<std::uint64_t>(available_cpu_isas().size());
  const StressReport report = scene.run();
  REQUIRE(report.outputs.size() == 1);
  CHECK(report.runs == scene.stress_options.runs);
  CHECK(report.configurations == scene.stress_options.runs - 1);  // run 0's comes twice
  CHECK(report.steps == 6);
  CHECK(report.outputs[0].runs == report.runs);
  CHECK(report.outputs[0].first_run == 0);
  CHECK(report.outputs[0].difference.empty());
  CHECK(report.outputs[0].config == StressConfig{available_cpu_isas()[0], 1, 1, "fresh", "step"});
}

TEST_CASE("the chain is that of the steps which record writes") {
  StressScene scene;
  scene.options.prompt = scene.stress_options.prompt;
  scene.options.n = scene.stress_options.n;
  const RecordReport recorded = scene.record();
  StepChain chain;
  for (const StepRecord& step : recorded.run.steps) chain.add(step);
  scene.stress_options.runs = 1;
  CHECK(scene.run().outputs[0].chain == chain.finish());
}

TEST_CASE("a machine that sums in another order is found, with its configuration and its step") {
  StressScene scene;
  scene.stress_options.isas = {"scalar"};
  scene.stress_options.runs = 1 + 3 * 3 * 2 * 2;
  const StressReport report = scene.run_on(faulty_with(3));
  REQUIRE(report.outputs.size() == 2);
  CHECK(report.outputs[0].runs == 1 + 2 * 3 * 2 * 2);
  CHECK(report.outputs[1].runs == 3 * 2 * 2);  // both modes and both states give the same bits
  CHECK(report.outputs[1].config.threads == 3);
  REQUIRE(report.outputs[1].first_logits_difference);
  CHECK(*report.outputs[1].first_logits_difference == 0);
  CHECK(report.outputs[1].difference.find("logits differ at step 0") == 0);
  CHECK(report.outputs[0].chain != report.outputs[1].chain);
}

TEST_CASE("one bit of a step gives another chain") {
  StepRecord step{};
  step.token = 7;
  const auto chain = [](const StepRecord& one) {
    StepChain one_step;
    one_step.add(one);
    return one_step.finish();
  };
  const Sha256Digest plain = chain(step);
  StepRecord other = step;
  other.token = 6;
  CHECK(chain(other) != plain);
  other = step;
  other.logits_xxh3[15] = 1;
  CHECK(chain(other) != plain);
  other = step;
  other.margin_bits = 0x80000000U;
  CHECK(chain(other) != plain);
  other = step;
  other.logprob_bits = 1;
  CHECK(chain(other) != plain);
  step.margin_bits = 2;
  step.logprob_bits = 3;
  other = step;
  std::swap(other.margin_bits, other.logprob_bits);
  CHECK(chain(other) != chain(step));
}

TEST_CASE("the plan holds every combination once, in an order that the seed alone decides") {
  StressOptions options;
  options.isas = {"avx2", "scalar"};
  options.threads = {1, 2, 3, 3};
  options.chunks = {1, 5};
  options.states = {"fresh", "reused"};
  options.modes = {"step", "parallel"};
  const std::vector<StressConfig> plan = stress_plan(options);
  CHECK(plan.size() == 2 * 3 * 2 * 2 * 2);
  std::set<std::string> seen;
  for (const StressConfig& c : plan) {
    seen.insert(c.isa + "/" + std::to_string(c.threads) + "/" + std::to_string(c.chunk) + "/" +
                c.state + "/" + c.mode);
  }
  CHECK(seen.size() == plan.size());
  CHECK(stress_plan(options) == plan);
  options.seed = 1;
  const std::vector<StressConfig> other = stress_plan(options);
  CHECK(other != plan);
  CHECK(std::is_permutation(other.begin(), other.end(), plan.begin(), plan.end()));
}

TEST_CASE("what cannot be varied is refused by name") {
  StressScene scene;
  scene.stress_options.states = {"fresh", "cold"};
  CHECK(scene.error() == "unknown state 'cold' | known are fresh, reused");
  scene.stress_options.states.clear();
  scene.stress_options.modes = {"sideways"};
  CHECK(scene.error() == "unknown mode 'sideways' | known are step, parallel");
  scene.stress_options.modes.clear();
  scene.stress_options.chunks = {0};
  CHECK(scene.error().find("a chunk of 0 tokens") == 0);
  scene.stress_options.chunks.clear();
  scene.stress_options.runs = 0;
  CHECK(scene.error().find("0 runs") == 0);
  scene.stress_options.runs = 2;
  scene.stress_options.isas = {"mmx"};
  CHECK(scene.error().find("mmx") != std::string::npos);
  scene.stress_options.isas.clear();
  scene.stress_options.ctx = 4;
  CHECK(scene.error().find("the context holds 4") != std::string::npos);
}

TEST_CASE("an error out of a run names the run and its configuration") {
  StressScene scene;
  scene.stress_options.isas = {"scalar"};
  scene.stress_options.threads = {1, 2};
  try {
    scene.run_on([](const CpuOptions& options) -> std::unique_ptr<Backend> {
      if (options.n_threads == 2) throw Error(ExitCode::kInternal, "no more threads", "wait");
      return make_cpu_backend_on(kernels::scalar::kOps, options.n_threads);
    });
    FAIL("the error was swallowed");
  } catch (const Error& error) {
    const std::string what = error.what();
    CHECK(what.find("run ") == 0);
    CHECK(what.find("scalar, 2 threads, chunk ") != std::string::npos);
    CHECK(what.find(": no more threads") != std::string::npos);
    CHECK(error.kind() == ExitCode::kInternal);
    CHECK(error.hint() == "wait");
  }
}

TEST_CASE("a cancelled stress test reports what it saw") {
  StressScene scene;
  scene.cancel = true;
  const StressReport report = scene.run();
  CHECK(report.runs == 0);
  CHECK(report.configurations == 0);
  CHECK(report.outputs.empty());
}

TEST_CASE("the document of a stress test names every output") {
  StressScene scene;
  scene.stress_options.isas = {"scalar"};
  const Json json = stress_to_json(scene.run_on(faulty_with(3)));
  CHECK(json.find("schema")->as_string() == "detrun.stress/1");
  CHECK(json.find("distinct_outputs")->as_i64() == 2);
  const JsonArray& outputs = json.find("outputs")->as_array();
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].find("first_logits_difference")->is_null());
  CHECK(outputs[1].find("first_logits_difference")->as_i64() == 0);
  CHECK(outputs[1].find("config")->find("threads")->as_i64() == 3);
  CHECK(outputs[1].find("chain")->as_string().size() == 64);
}
