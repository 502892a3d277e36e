// A bench's figures: medians, ratios and the document detrun.bench/1.
#include <algorithm>
#include <string_view>

#include "detrun/run.h"

namespace detrun {
namespace {

/// Significant digits of a measurement that a reader can use; more would be noise.
double rounded(double value) {
  constexpr double kScale = 1e4;
  double unit = 1;
  while (value * unit < kScale && value > 0 && unit < 1e9) unit *= 10;
  return static_cast<double>(static_cast<std::int64_t>(value * unit + 0.5)) / unit;
}

Json list_of(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(rounded(value));
  return list;
}

std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) out.push_back(a[i] / b[i]);
  return out;
}

/// Which peak of the processor the products of a model's main type are up against.
bool is_float(std::string_view quantization) {
  return quantization == "F32" || quantization == "F16" || quantization == "BF16";
}

Json result_json(const BenchResult& result, const BenchReport& report) {
  Json json = Json::object();
  const double rate = median(result.tokens_per_s);
  json.set("name", result.name);
  json.set("tokens_per_s", rounded(rate));
  json.set("ceiling_ratio", rounded(ceiling_ratio(result)));
  json.set("runs", std::uint64_t{result.tokens_per_s.size()});
  json.set("rows", result.rows);
  json.set("ceiling", result.ceiling);
  json.set("ceiling_tokens_per_s", rounded(median(result.ceiling_tokens_per_s)));
  if (result.ceiling == report.memory_work) {
    json.set("gb_per_s", rounded(rate * static_cast<double>(report.bytes_per_token) / 1e9));
  }
  if (result.rows > 0) {
    const double ops = 2.0 * static_cast<double>(result.macs) / static_cast<double>(result.rows);
    const double peak =
        median(is_float(report.quantization) ? report.fma_flops_per_s : report.int8_ops_per_s);
    json.set("matmul_gops", rounded(ops * rate / 1e9));
    if (peak > 0) json.set("matmul_peak_ratio", rounded(ops * rate / peak));
  }
  if (const auto overhead = ledger_overhead(result)) {
    json.set("no_ledger_tokens_per_s", rounded(median(result.no_ledger_tokens_per_s)));
    json.set("ledger_overhead_percent", static_cast<double>(std::int64_t(*overhead * 1e5)) / 1e3);
  }
  json.set("all_tokens_per_s", list_of(result.tokens_per_s));
  json.set("all_ceiling_tokens_per_s", list_of(result.ceiling_tokens_per_s));
  json.set("cpu_share", rounded(median(result.cpu_share)));
  return json;
}

Json load_json(const BenchReport& report) {
  Json json = Json::object();
  json.set("load_s", rounded(report.load_s));
  if (report.sha256_s > 0) {
    json.set("sha256_s", rounded(report.sha256_s));
    json.set("load_ratio", rounded(report.load_s / report.sha256_s));
  }
  json.set("peak_rss_bytes", report.peak_rss_bytes);
  json.set("kv_bytes", report.kv_bytes);
  if (report.peak_rss_bytes > report.kv_bytes && report.file_bytes > 0) {
    json.set("peak_rss_ratio",
             rounded(static_cast<double>(report.peak_rss_bytes - report.kv_bytes) /
                     static_cast<double>(report.file_bytes)));
  }
  return json;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double ceiling_ratio(const BenchResult& result) {
  return median(ratios(result.tokens_per_s, result.ceiling_tokens_per_s));
}

std::optional<double> ledger_overhead(const BenchResult& result) {
  if (result.no_ledger_tokens_per_s.empty()) return std::nullopt;
  return median(ratios(result.no_ledger_tokens_per_s, result.tokens_per_s)) - 1;
}

Json bench_to_json(const BenchReport& report) {
  Json model = Json::object();
  model.set("name", Json::bytes(report.model_name));
  model.set("arch", report.arch);
  model.set("quantization", report.quantization);
  model.set("synthetic", report.synthetic);
  if (report.synthetic) model.set("weights_made_on", report.made_on_device ? "device" : "host");
  model.set("file_bytes", report.file_bytes);
  model.set("params", report.n_params);
  model.set("bytes_per_token", report.bytes_per_token);

  Json ceilings = Json::object();
  ceilings.set("loops", report.ceilings_loops);
  ceilings.set(report.memory_work + "_gb_per_s", rounded(median(report.memory_bytes_per_s) / 1e9));
  ceilings.set("fma_gflops", rounded(median(report.fma_flops_per_s) / 1e9));
  ceilings.set("int8_gops", rounded(median(report.int8_ops_per_s) / 1e9));

  Json results = Json::array();
  for (const BenchResult& result : report.results) {
    if (!result.tokens_per_s.empty()) results.push_back(result_json(result, report));
  }

  Json json = Json::object();
  json.set("schema", "detrun.bench/1");
  json.set("machine", report.machine);
  if (report.file_bytes > 0) {
    json.set("model", std::move(model));
    json.set("numerics", report.numerics);
  }
  json.set("backend", report.backend);
  if (!report.device.empty()) json.set("device", report.device);
  json.set("threads", std::uint64_t{report.threads});
  if (report.file_bytes > 0) {
    json.set("ctx", std::uint64_t{report.ctx});
    json.set("chunk", std::uint64_t{report.chunk});
  }
  json.set("ceilings", std::move(ceilings));
  if (report.file_bytes > 0) json.set("load", load_json(report));
  json.set("results", std::move(results));
  return json;
}

}  // namespace detrun
