// `bench` with made-up weights where a device computes, on the emulated GPU.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include "run/bench_work.h"

namespace detrun {
namespace {

BenchOptions shape_options() {
  BenchOptions options;
  options.shape = "135m";
  options.type = "q4_0";
  options.engine.backend = cuda_backend_name();
  options.n = 2;
  return options;
}

}  // namespace

TEST_CASE("a device makes the weights of a shape, and nobody hashes a file that is none") {
  const std::atomic<bool> cancel = false;
  Observer observer;
  BenchReport report;
  const BenchOptions options = shape_options();
  const std::uint64_t launches = emulation::launches_executed();
  const BenchWork work(options, cancel, observer, report);
  CHECK(report.synthetic);
  CHECK(report.made_on_device);
  CHECK(report.sha256_s == 0);
  CHECK(report.load_s > 0);
  CHECK(report.file_bytes > 80'000'000);
  CHECK(report.model_name == "synthetic 135m q4_0");
  // The table, which is also the head, and seven matrices a layer, each by one launch.
  CHECK(emulation::launches_executed() - launches == 1 + 7 * 30);
}

TEST_CASE("a device takes the most tokens at once, whatever caches the processor has") {
  ModelSpec wide;
  wide.n_ff = 1U << 24U;  // a row of it fills any cache
  BackendInfo backend;
  CHECK(chunk_rows(0, wide, 4096, backend) == 64);
  backend.device.emplace();
  CHECK(chunk_rows(0, wide, 4096, backend) == 512);
  CHECK(chunk_rows(0, wide, 100, backend) == 100);
  CHECK(chunk_rows(48, wide, 4096, backend) == 48);
}

TEST_CASE("the processor's weights are made by the processor") {
  const std::atomic<bool> cancel = false;
  Observer observer;
  BenchReport report;
  BenchOptions options = shape_options();
  options.engine.backend = "cpu";
  const BenchWork work(options, cancel, observer, report);
  CHECK(report.synthetic);
  CHECK(!report.made_on_device);
  CHECK(report.sha256_s > 0);
}

}  // namespace detrun
