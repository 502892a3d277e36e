// The smoke test of a GPU: every kernel on the device against the scalar reference of the same
// process and against the golden hashes; the host's own instruction sets too. Prints a Markdown
// report. Built twice: with the CUDA runtime, and on the host emulation, to rehearse it.
//
//   detrun_gpu_smoke --golden operators.txt [--report PATH] [--quick]
//
// PATH may be a folder: the report is then named after the GPU. --quick leaves out the large shapes
// and most golden cases. Exit 0: everything equal; 1: something differs or the device failed; 2:
// wrong use; 3: no GPU here.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "backend/cpu_select.h"
#include "backend/cpu_self_test.h"
#include "cases.h"
#include "detrun/backend.h"
#include "detrun/digest.h"
#include "detrun/error.h"
#include "device_memory.h"
#include "golden/golden_case.h"
#include "golden/golden_inputs.h"
#include "golden/golden_operators.h"
#include "kernels/contract.h"
#include "kernels_under_test.h"
#include "report.h"

namespace {

using namespace detrun;
using namespace detrun::smoke;
using kernels::CpuOps;

constexpr int kEqual = 0, kDifferent = 1, kUsage = 2, kNoDevice = 3;
constexpr std::size_t kQuickStep = 11;  // --quick runs every eleventh golden case

struct Options {
  std::string golden, report;
  bool quick = false;
};

std::vector<golden::Case> read_golden(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw_usage("cannot read '" + path + "'");
  std::vector<golden::Case> cases;
  for (std::string line; std::getline(file, line);) {
    golden::Case c;
    if (golden::parse_case(line, &c)) cases.push_back(std::move(c));
  }
  if (cases.empty()) throw_usage("no case in '" + path + "'");
  return cases;
}

std::string kernel_name(const golden::Case& c, Form form) {
  const bool vector = form == Form::kVector;
  if (c.op == "product") return (vector ? "GEMV and row " : "GEMM and row ") + c.text("type");
  if (c.op == "attention") {
    return (vector ? "attention split " : "attention one pass ") + c.text("kv");
  }
  if (c.op == "kv") return "kv_write " + c.text("kv");
  if (c.op == "rope") return "rope " + c.text("pairs");
  if (c.op == "choice") return "argmax, logprob";
  if (c.op == "elementwise") return "add, mul, scale, add_scaled";
  if (c.op == "moe") return "add_scaled of experts";
  return c.op;
}

/// Does the operator reach the device at all?
bool has_kernel(const golden::Case& c) {
  if (c.op == "sum32" || c.op == "sample" || c.op == "noise" || c.op == "hash") return false;
  if (c.op != "product") return true;
  for (std::uint32_t id = 0; id < 64; ++id) {
    const QTypeInfo* type = find_qtype(id);
    if (type != nullptr && type->name == c.text("type")) return device_has_product(id);
  }
  return false;
}

Bytes device_choice(const golden::Case& c, Kernels& device) {
  const std::uint64_t n = c.integer("n");
  const Choices choice = device.choose(golden::values(c.text("x"), c.integer("seed"), 0, n), n);
  Bytes bytes;
  append(bytes, choice.ids);
  append(bytes, choice.margins);
  append(bytes, choice.logprobs);
  return bytes;
}

std::string hash_of(const Bytes& bytes) { return to_hex(xxh3_128(bytes)); }

/// A result against the reference's bits, then against the frozen hash.
std::string judge(const golden::Case& c, const Bytes& expected, const Bytes& found) {
  std::string different = difference(expected, found, true);
  if (different.empty() && hash_of(found) != c.hash) {
    different = "hash " + hash_of(found) + ", recorded " + c.hash;
  }
  return different.empty() ? different : c.line() + ": " + different;
}

void run_golden(const std::vector<golden::Case>& cases, bool quick, Table& on_device,
                Table& on_host) {
  const std::unique_ptr<Kernels> device = make_device_kernels();
  for (std::size_t i = 0; i < cases.size(); i += quick ? kQuickStep : 1) {
    const golden::Case& c = cases[i];
    const Bytes expected = golden::run_case(c, kernels::scalar::kOps).bytes();
    for (const CpuOps* ops : available_cpu_ops()) {
      const Stopwatch watch;
      const std::string different = judge(c, expected, golden::run_case(c, *ops).bytes());
      on_host.add(ops->name, "golden cases", different, watch.milliseconds());
    }
    if (!has_kernel(c)) continue;
    for (const Form form : {Form::kVector, Form::kMatrix}) {
      if (form == Form::kMatrix && c.op != "product" && c.op != "attention") continue;
      const Stopwatch watch;
      const Bytes found = c.op == "choice" ? device_choice(c, *device)
                                           : golden::run_case(c, device_ops(form)).bytes();
      on_device.add(kernel_name(c, form), "", judge(c, expected, found), watch.milliseconds());
    }
  }
}

void run_shapes(bool quick, Table& table) {
  const std::unique_ptr<Kernels> device = make_device_kernels();
  const std::unique_ptr<Kernels> reference = make_cpu_kernels(kernels::scalar::kOps);
  for (const ShapeCase& c : shape_cases()) {
    if (quick && c.large) continue;
    const Bytes expected = c.run(*reference);
    const Stopwatch watch;
    const Bytes found = c.run(*device);
    table.add(c.kernel, c.shape, difference(expected, found, false), watch.milliseconds());
  }
}

/// The known answers that every instruction set has to give before a CPU uses it.
void run_known_answers(const CpuOps& ops, Table& table) {
  const Stopwatch watch;
  const std::vector<KnownAnswer> answers = run_self_test(ops);
  const double each = watch.milliseconds() / static_cast<double>(answers.size());
  for (const KnownAnswer& answer : answers) {
    std::string different = "no known answer of that name";
    for (const KnownAnswer& golden : golden_answers()) {
      if (golden.operation != answer.operation) continue;
      different =
          golden.xxh3 == answer.xxh3 ? "" : "hash " + answer.xxh3 + ", expected " + golden.xxh3;
    }
    table.add(ops.name, "known answers",
              different.empty() ? different : answer.operation + ": " + different, each);
  }
}

void write_report(const std::string& path, const std::string& gpu, const std::string& text) {
  std::string file_name = path;
  if (std::filesystem::is_directory(path)) {
    std::string name;
    for (const char c : gpu) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
      const bool upper = c >= 'A' && c <= 'Z';
      name += plain ? c : upper ? static_cast<char>(c - 'A' + 'a') : '-';
    }
    file_name += "/" + name + ".md";
  }
  std::ofstream file(file_name);
  file << text;
  file.close();
  if (!file) throw_usage("cannot write '" + file_name + "'");
  std::fprintf(stderr, "report: %s\n", file_name.c_str());
}

struct Tables {
  Table hosts{"Instruction sets: known answers and golden cases"};
  Table golden{"Golden cases on the device"};
  Table shapes{"Shapes of models on the device, against the scalar reference of this process"};

  std::size_t cases() const { return hosts.cases() + golden.cases() + shapes.cases(); }
  std::size_t different() const {
    return hosts.different() + golden.different() + shapes.different();
  }
};

/// Empty, or why the device failed; then the tables hold what came before.
std::string run_all(const Options& options, Tables& tables) {
  const std::vector<golden::Case> cases = read_golden(options.golden);
  try {
    for (const CpuOps* ops : available_cpu_ops()) run_known_answers(*ops, tables.hosts);
    run_known_answers(device_ops(Form::kVector), tables.hosts);
    run_known_answers(device_ops(Form::kMatrix), tables.hosts);
    run_golden(cases, options.quick, tables.golden, tables.hosts);
    run_shapes(options.quick, tables.shapes);
  } catch (const DeviceFailure& error) {
    return error.what();
  }
  return {};
}

int run(const Options& options) {
  DeviceDescription gpu;
  std::string why;
  if (!find_device(&gpu, &why)) {
    std::fprintf(stderr, "detrun_gpu_smoke: no GPU can be used here: %s\n", why.c_str());
    return kNoDevice;
  }
  const FpControlScope fp_control;
  const Stopwatch watch;
  Tables tables;
  const std::string failure = run_all(options, tables);
  const bool equal = tables.different() == 0 && failure.empty();
  std::string text =
      "# detrun on " + gpu.name + ": " + (equal ? "everything equal" : "**not equal**") + "\n\n";
  text += "- device: " + gpu.name + ", " + gpu.details + "\n- host: " + describe_host() +
          "\n- contract: portable version " + std::to_string(kernels::kPortableVersion) + "\n- " +
          std::to_string(tables.cases()) + " comparisons, " + std::to_string(tables.different()) +
          " different, " + std::to_string(static_cast<int>(watch.milliseconds() / 1000)) + " s\n";
  if (!failure.empty()) text += "- **the device failed: " + failure + "**\n";
  text += "\n" + tables.hosts.markdown() + tables.golden.markdown() + tables.shapes.markdown();
  std::fputs(text.c_str(), stdout);
  if (!options.report.empty()) write_report(options.report, gpu.name, text);
  return equal ? kEqual : kDifferent;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--golden" && i + 1 < argc) {
      options.golden = argv[++i];
    } else if (argument == "--report" && i + 1 < argc) {
      options.report = argv[++i];
    } else {
      std::fprintf(stderr, "usage: detrun_gpu_smoke --golden FILE [--report PATH] [--quick]\n");
      return kUsage;
    }
  }
  try {
    return run(options);
  } catch (const Error& error) {
    std::fprintf(stderr, "detrun_gpu_smoke: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "detrun_gpu_smoke: %s\n", error.what());
  }
  return kUsage;
}
