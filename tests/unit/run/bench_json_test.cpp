// Figures of a bench: medians, ratios, and the shape of its document.
#include <doctest/doctest.h>

#include "detrun/run.h"

namespace detrun {
namespace {

BenchReport report_of_two() {
  BenchReport report;
  report.machine = Json::object();
  report.quantization = "Q8_0";
  report.file_bytes = 1000;
  report.peak_rss_bytes = 1300;
  report.kv_bytes = 200;
  report.load_s = 3;
  report.sha256_s = 2;
  report.memory_work = "read";
  report.memory_bytes_per_s = {10e9, 30e9, 20e9};
  report.bytes_per_token = 500'000'000;
  report.fma_flops_per_s = {100e9};
  report.int8_ops_per_s = {400e9};
  BenchResult decode;
  decode.name = "decode";
  decode.rows = 64;
  decode.ceiling = "read";
  decode.tokens_per_s = {10, 30, 20};
  decode.ceiling_tokens_per_s = {20, 40, 25};
  decode.macs = 64'000'000'000;
  decode.cpu_share = {1, 1, 0.5};
  BenchResult record = decode;
  record.name = "record";
  record.no_ledger_tokens_per_s = {11, 30, 21};
  BenchResult nothing;
  nothing.name = "replay_step";
  report.results = {decode, record, nothing};
  return report;
}

double number_at(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  REQUIRE(member != nullptr);
  return std::stod(member->dump());
}

TEST_CASE("a median is the middle, or between the two in the middle") {
  CHECK(median({}) == 0);
  CHECK(median({7}) == 7);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
}

TEST_CASE("a ceiling ratio is the median of ratios, each with the ceiling measured beside it") {
  const BenchReport report = report_of_two();
  CHECK(ceiling_ratio(report.results[0]) == 0.75);  // of 0.5, 0.75, 0.8; medians give 20 / 25
}

TEST_CASE("the cost of the ledger compares each run with the one beside it") {
  const BenchReport report = report_of_two();
  CHECK(*ledger_overhead(report.results[1]) == doctest::Approx(0.05));  // of 1.1, 1, 1.05
  CHECK_FALSE(ledger_overhead(report.results[0]).has_value());
}

TEST_CASE("the document has the fields that the manual lists") {
  const Json json = bench_to_json(report_of_two());
  CHECK(json.find("schema")->as_string() == "detrun.bench/1");
  CHECK(json.find("machine")->is_object());
  const JsonArray& results = json.find("results")->as_array();
  REQUIRE(results.size() == 2);  // what was not measured is absent
  const Json& decode = results[0];
  CHECK(decode.find("name")->as_string() == "decode");
  CHECK(number_at(decode, "tokens_per_s") == 20);
  CHECK(number_at(decode, "ceiling_ratio") == 0.75);
  CHECK(decode.find("runs")->as_i64() == 3);
  CHECK(decode.find("rows")->as_i64() == 64);
  CHECK(number_at(decode, "ceiling_tokens_per_s") == 25);
  CHECK(number_at(decode, "matmul_gops") == 40);  // 2 GOP a token, 20 tokens a second
  CHECK(number_at(decode, "matmul_peak_ratio") == doctest::Approx(0.1));
  CHECK(number_at(decode, "gb_per_s") == 10);
  CHECK(decode.find("all_tokens_per_s")->as_array().size() == 3);
  CHECK(decode.find("ledger_overhead_percent") == nullptr);
  CHECK(number_at(results[1], "ledger_overhead_percent") == doctest::Approx(5).epsilon(0.001));
  const Json& load = *json.find("load");
  CHECK(number_at(load, "load_ratio") == 1.5);
  CHECK(number_at(load, "peak_rss_ratio") == doctest::Approx(1.1));
  CHECK(number_at(*json.find("ceilings"), "read_gb_per_s") == 20);
}

TEST_CASE("on a GPU the document names it, and the copies that its memory was measured with") {
  BenchReport report = report_of_two();
  CHECK(bench_to_json(report).find("device") == nullptr);
  report.backend = "cuda";
  report.device = "NVIDIA H200";
  report.memory_work = "copy";
  report.synthetic = true;
  const Json json = bench_to_json(report);
  CHECK(json.find("backend")->as_string() == "cuda");
  CHECK(json.find("device")->as_string() == "NVIDIA H200");
  CHECK(number_at(*json.find("ceilings"), "copy_gb_per_s") == 20);
  CHECK(json.find("ceilings")->find("read_gb_per_s") == nullptr);
  CHECK(json.find("model")->find("weights_made_on")->as_string() == "host");
}

TEST_CASE("of weights made on the device the document says so, and names no time of hashing") {
  BenchReport report = report_of_two();
  CHECK(number_at(*bench_to_json(report).find("load"), "sha256_s") == 2);
  report.synthetic = true;
  report.made_on_device = true;
  report.sha256_s = 0;
  const Json json = bench_to_json(report);
  CHECK(json.find("model")->find("weights_made_on")->as_string() == "device");
  CHECK(number_at(*json.find("load"), "load_s") == 3);
  CHECK(json.find("load")->find("sha256_s") == nullptr);
  CHECK(json.find("load")->find("load_ratio") == nullptr);
}

TEST_CASE("the peak that products are compared with follows the type of the weights") {
  BenchReport report = report_of_two();
  report.quantization = "F16";
  const Json json = bench_to_json(report);
  CHECK(number_at(json.find("results")->as_array()[0], "matmul_peak_ratio") ==
        doctest::Approx(0.4));
}

}  // namespace
}  // namespace detrun
