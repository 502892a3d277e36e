// exp, log, tanh and erf over all 2^32 inputs: every instruction set against the scalar reference,
// bit for bit, NaNs included. Minutes; label `sweep`. Not doctest: it counts progress on two
// threads.
//
//   detrun_sweep [FIRST COUNT]    blocks of 2^20 patterns, default 0 4096
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "backend/cpu_select.h"
#include "detrun/backend.h"
#include "kernels/contract.h"

namespace {

using namespace detrun::kernels;

constexpr std::uint32_t kBlock = 1u << 20;
constexpr std::uint32_t kBlocks = 4096;
constexpr std::uint32_t kSlice = 4096;  // what a thread computes at a time: stays in its cache
constexpr std::uint32_t kThreads = 2;
constexpr Function kSwept[] = {Function::kExp, Function::kLog, Function::kTanh, Function::kErf};
constexpr const char* kNames[] = {"exp", "log", "tanh", "erf"};

struct Sweep {
  std::vector<const CpuOps*> candidates;
  std::atomic<std::uint32_t> next;
  std::uint32_t end;
  std::atomic<std::uint64_t> n_compared = 0;
  std::atomic<std::uint64_t> n_different = 0;
};

void compare(const std::vector<float>& x, const std::vector<float>& expected,
             const std::vector<float>& found, const char* what, const char* isa, Sweep& sweep) {
  sweep.n_compared += x.size();
  if (std::memcmp(expected.data(), found.data(), x.size() * sizeof(float)) == 0) return;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (f32_bits(expected[i]) == f32_bits(found[i])) continue;
    if (sweep.n_different++ < 10) {
      std::printf("%s of 0x%08x: %s gives 0x%08x, the reference 0x%08x\n", what, f32_bits(x[i]),
                  isa, f32_bits(found[i]), f32_bits(expected[i]));
    }
  }
}

void work(Sweep& sweep) {
  const detrun::FpControlScope fp_control;
  std::vector<float> x(kSlice);
  std::vector<float> expected(kSlice);
  std::vector<float> found(kSlice);
  for (std::uint32_t block = sweep.next++; block < sweep.end; block = sweep.next++) {
    for (std::uint32_t first = 0; first < kBlock; first += kSlice) {
      for (std::uint32_t i = 0; i < kSlice; ++i) x[i] = f32_from_bits(block * kBlock + first + i);
      for (std::size_t f = 0; f < std::size(kSwept); ++f) {
        const auto which = static_cast<std::size_t>(kSwept[f]);
        scalar::kOps.functions[which](x.data(), kSlice, expected.data());
        for (const CpuOps* ops : sweep.candidates) {
          ops->functions[which](x.data(), kSlice, found.data());
          compare(x, expected, found, kNames[f], ops->name, sweep);
        }
      }
    }
  }
}

bool parse(const char* text, std::uint32_t* value) {
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), *value);
  return error == std::errc() && end == view.data() + view.size();
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t first = 0;
  std::uint32_t count = kBlocks;
  const bool good_arguments =
      argc == 1 || (argc == 3 && parse(argv[1], &first) && parse(argv[2], &count));
  if (!good_arguments || first >= kBlocks || count > kBlocks - first) {
    std::fprintf(stderr, "usage: detrun_sweep [FIRST COUNT], blocks of 2^20 out of 4096\n");
    return 2;
  }
  Sweep sweep{.candidates = {}, .next = first, .end = first + count};
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    if (ops != &scalar::kOps) sweep.candidates.push_back(ops);
  }
  if (sweep.candidates.empty()) {
    std::printf("skipped: this CPU has no instruction set beside the scalar reference\n");
    return 0;
  }
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([&sweep] { work(sweep); });
  for (std::thread& thread : threads) thread.join();
  std::printf("%llu results compared, %llu differ\n",
              static_cast<unsigned long long>(sweep.n_compared),
              static_cast<unsigned long long>(sweep.n_different));
  return sweep.n_different == 0 ? 0 : 1;
}
