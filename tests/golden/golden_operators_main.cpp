// The golden cases of every operator: checked on every instruction set of this machine, or made
// with the scalar reference.
//
//   golden_operators --check FILE     exit 1 when a hash differs or an operator has under 100 cases
//   golden_operators --write FILE     the whole list anew
//   golden_operators --show LINE      the result of one case, a line an element, to find a
//   difference
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "backend/cpu_select.h"
#include "detrun/error.h"
#include "golden_operators.h"

namespace {

using namespace golden;
using detrun::kernels::CpuOps;

constexpr std::size_t kCasesLeast = 100;

/// A NaN whose payload the machine chooses must not be frozen.
void refuse_nan(const Case& c, const Result& result) {
  if (c.op == "hash") return;
  const auto& bytes = result.bytes();
  for (std::size_t i = 0; c.op != "quantize" && i + 4 <= bytes.size(); i += 4) {
    std::uint32_t bits;
    std::memcpy(&bits, bytes.data() + i, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u && bits != 0x7fc00000u) {
      detrun::throw_usage("golden case '" + c.line() + "' gives a NaN");
    }
  }
}

int write(const char* path) {
  std::ofstream file(path);
  file << "# Frozen with version 1 of the arithmetic contract. Made by golden_operators --write;\n"
          "# never edited by hand. Inputs and layout: README.md beside this file.\n";
  for (const Case& c : all_cases()) {
    refuse_nan(c, run_case(c, detrun::kernels::scalar::kOps));
    file << c.line() << ' ' << result_hash(c, detrun::kernels::scalar::kOps) << '\n';
  }
  file.close();
  if (!file) detrun::throw_usage(std::string("cannot write ") + path);
  return 0;
}

struct Counts {
  std::size_t cases = 0;
  std::size_t wrong = 0;
};

/// The name under which cases are counted: products by type.
std::string counted_as(const Case& c) {
  return c.op == "product" ? "product " + c.text("type") : c.op;
}

int check(const char* path) {
  std::ifstream file(path);
  if (!file) detrun::throw_usage(std::string("cannot read ") + path);
  const auto list = detrun::available_cpu_ops();
  std::map<std::string, Counts> counts;
  std::vector<Case> expected = all_cases();
  std::size_t n = 0;
  bool good = true;
  for (std::string line; std::getline(file, line);) {
    Case c;
    if (!parse_case(line, &c)) continue;
    if (n >= expected.size() || expected[n].line() != c.line()) {
      std::printf("line %zu is not the case the list has there: %s\n", n, c.line().c_str());
      good = false;
    }
    ++n;
    Counts& count = counts[counted_as(c)];
    ++count.cases;
    for (const CpuOps* ops : list) {
      if (result_hash(c, *ops) == c.hash) continue;
      ++count.wrong;
      std::printf("DIFFERS on %s: %s\n", ops->name, line.c_str());
    }
  }
  if (n != expected.size()) {
    std::printf("%zu cases, expected %zu\n", n, expected.size());
    good = false;
  }
  for (const auto& [name, count] : counts) {
    const bool enough = count.cases >= kCasesLeast;
    std::printf("%-16s %4zu cases%s%s\n", name.c_str(), count.cases,
                count.wrong != 0 ? ", DIFFERS" : ", equal", enough ? "" : ": too few");
    good = good && enough && count.wrong == 0;
  }
  std::printf("instruction sets:");
  for (const CpuOps* ops : list) std::printf(" %s", ops->name);
  std::printf("\n");
  return good ? 0 : 1;
}

int show(const char* line) {
  Case c;
  parse_case(line, &c);
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    const Result result = run_case(c, *ops);
    for (std::size_t i = 0; i + 4 <= result.bytes().size(); i += 4) {
      std::uint32_t bits;
      std::memcpy(&bits, result.bytes().data() + i, sizeof bits);
      std::printf("%s %zu %08x\n", ops->name, i / 4, bits);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  try {
    if (mode == "--check") return check(argv[2]);
    if (mode == "--write") return write(argv[2]);
    if (mode == "--show") return show(argv[2]);
    std::fprintf(stderr, "usage: golden_operators --check|--write FILE, --show LINE\n");
  } catch (const detrun::Error& error) {
    std::fprintf(stderr, "golden_operators: %s\n", error.what());
  }
  return 2;
}
