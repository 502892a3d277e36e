// The golden hashes, checked on every instruction set of this build: the known answers of every
// kernel, then the logits of whole models. Also their maker. Needs no library beyond the rooms, so
// it runs wherever a cross compiler and an emulator are; a machine that lacks a model says so.
//
//   detrun_golden --check LIST    compares; exit 1 when a bit differs
//   detrun_golden --make LIST     prints LIST with the hashes of the scalar reference
//   options: --root DIR (what LIST's paths are relative to, default "."), --isa NAME (only this
//   one)
//
// LIST, a line a case: PATH TOKENS KV HASH, separated by one space; # opens a comment.
//   TOKENS  N@SEED: N tokens, splitmix64 from SEED, each modulo the vocabulary
//   KV      f16 or f32
//   HASH    XXH3-128 of the logits of all N positions, (N, vocabulary) little-endian binary32
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "backend/cpu_select.h"
#include "backend/cpu_self_test.h"
#include "detrun/backend.h"
#include "detrun/error.h"
#include "golden_model.h"

namespace {

using namespace detrun;
using golden::ModelCase;

struct Options {
  std::string list;
  std::string root = ".";
  std::string isa;
  std::string logits;
  bool make = false;
};

bool check_self_tests(const Options& options) {
  bool good = true;
  bool any = false;
  for (const kernels::CpuOps* ops : available_cpu_ops()) {
    if (!options.isa.empty() && options.isa != ops->name) continue;
    any = true;
    const std::string failed = failed_self_test(*ops);
    std::printf("self-test %s %s\n", ops->name,
                failed.empty() ? "equal" : ("DIFFERS at " + failed).c_str());
    good = good && failed.empty();
  }
  if (!any) throw_usage("the instruction set '" + options.isa + "' is not here");
  return good;
}

bool check_case(const Options& options, const ModelCase& c) {
  const std::string path = options.root + "/" + c.path;
  if (!std::filesystem::exists(path) && c.path.starts_with("../")) {
    std::printf("skipped: %s is not here\n", c.path.c_str());
    return true;
  }
  bool good = true;
  for (const std::string& isa : available_cpu_isas()) {
    if (!options.isa.empty() && options.isa != isa) continue;
    const auto backend = make_cpu_backend({.n_threads = 0, .isa = isa});
    const std::string hash = golden::hash_of(golden::run_model(c, options.root, *backend));
    std::printf("%s %s %s %s %s%s\n", c.path.c_str(), c.tokens.c_str(), c.kv.c_str(), isa.c_str(),
                hash.c_str(), hash == c.hash ? "" : (" DIFFERS from " + c.hash).c_str());
    std::fflush(stdout);
    good = good && hash == c.hash;
  }
  return good;
}

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw_usage("cannot read '" + path + "'");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool run(const Options& options) {
  const std::vector<std::string> lines = read_lines(options.list);
  std::ofstream file(options.logits.empty() ? "/dev/null" : options.logits, std::ios::binary);
  bool good = options.make || check_self_tests(options);
  std::size_t n_cases = 0;
  for (const std::string& line : lines) {
    ModelCase c;
    const bool is_case = golden::parse_case(line, c);
    n_cases += is_case ? 1 : 0;
    if (!options.make) {
      if (is_case) good = check_case(options, c) && good;
    } else if (is_case) {
      const auto backend = make_cpu_backend({.n_threads = 0, .isa = "scalar"});
      const std::vector<float> logits = golden::run_model(c, options.root, *backend);
      c.hash = golden::hash_of(logits);
      file.write(reinterpret_cast<const char*>(logits.data()),
                 static_cast<std::streamsize>(logits.size() * sizeof(float)));
      std::printf("%s %s %s %s\n", c.path.c_str(), c.tokens.c_str(), c.kv.c_str(), c.hash.c_str());
    } else {
      std::printf("%s\n", line.c_str());
    }
  }
  if (n_cases == 0) throw_usage("'" + options.list + "' names no case");
  file.close();
  if (!file) throw_usage("cannot write '" + options.logits + "'");
  return good;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) throw_usage("'" + std::string(name) + "' lacks its value");
    const char* value = argv[++i];
    if (name == "--check" || name == "--make") {
      options.list = value;
      options.make = name == "--make";
    } else if (name == "--root") {
      options.root = value;
    } else if (name == "--isa") {
      options.isa = value;
    } else if (name == "--logits") {
      options.logits = value;
    } else {
      throw_usage("unknown option '" + std::string(name) + "'");
    }
  }
  if (options.list.empty()) throw_usage("usage: detrun_golden --check|--make LIST [--root DIR]");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse_options(argc, argv)) ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "detrun_golden: %s\n", error.what());
    if (!error.hint().empty()) std::fprintf(stderr, "  %s\n", error.hint().c_str());
    return static_cast<int>(error.kind());
  }
}
