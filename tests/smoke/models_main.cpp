// Whole models on the emulated CUDA kernels: the forward pass of the program with the device's
// table of operators, against the frozen hashes, in both forms (GEMV and split attention; GEMM and
// attention in one pass). Only cases of few tokens: the emulation takes seconds a model.
//
//   detrun_models_emulated LIST ROOT        exit 1 when a bit differs
#include <cstdio>
#include <fstream>
#include <string>

#include "backend/cpu_select.h"
#include "detrun/error.h"
#include "golden/golden_model.h"
#include "kernels_under_test.h"

namespace {

using namespace detrun;
using smoke::Form;

constexpr const char* kTokens = "6@";  // cases of six tokens
constexpr int kCasesLeast = 3;

int run(const std::string& list_path, const std::string& root) {
  std::ifstream list(list_path);
  if (!list) throw_usage("cannot read '" + list_path + "'");
  int cases = 0;
  int different = 0;
  for (std::string line; std::getline(list, line);) {
    golden::ModelCase c;
    if (!golden::parse_case(line, c) || !c.tokens.starts_with(kTokens)) continue;
    ++cases;
    for (const Form form : {Form::kVector, Form::kMatrix}) {
      const auto& ops = smoke::device_ops(form);
      const auto backend = make_cpu_backend_on(ops, 1);
      const bool equal = golden::hash_of(golden::run_model(c, root, *backend)) == c.hash;
      std::printf("%s %s kv %s on %s: %s\n", c.path.c_str(), c.tokens.c_str(), c.kv.c_str(),
                  ops.name, equal ? "equal" : "DIFFERS");
      different += equal ? 0 : 1;
    }
  }
  std::printf("%d cases, %d differences\n", cases, different);
  return cases >= kCasesLeast && different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3) return run(argv[1], argv[2]);
    std::fprintf(stderr, "usage: detrun_models_emulated LIST ROOT\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "detrun_models_emulated: %s\n", error.what());
  }
  return 2;
}
