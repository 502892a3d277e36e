// The known answers: every instruction set gives them, a wrong kernel is found, and they are quick.
#include "backend/cpu_self_test.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>

#include "backend/cpu_select.h"

namespace {

using detrun::kernels::CpuOps;

void wrong_add(float* x, const float* y, std::uint64_t n) {
  detrun::kernels::scalar::kOps.add(x, y, n);
  x[n - 1] = -x[n - 1];
}

TEST_CASE("every instruction set gives the golden answers") {
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    CAPTURE(std::string(ops->name));
    const auto answers = detrun::run_self_test(*ops);
    const auto& golden = detrun::golden_answers();
    if (answers.size() != golden.size()) {
      for (const auto& a : answers) MESSAGE("{\"", a.operation, "\", \"", a.xxh3, "\"},");
    }
    REQUIRE(answers.size() == golden.size());
    for (std::size_t i = 0; i < golden.size(); ++i) {
      CHECK(answers[i].operation == golden[i].operation);
      CHECK_MESSAGE(answers[i].xxh3 == golden[i].xxh3, golden[i].operation);
    }
    CHECK(detrun::failed_self_test(*ops).empty());
  }
}

TEST_CASE("the threads of a pool share the self-test and give the same answers") {
  CpuOps broken = detrun::kernels::scalar::kOps;
  broken.add = wrong_add;
  for (std::uint32_t n_threads = 1; n_threads <= 4; ++n_threads) {
    detrun::ThreadPool pool(n_threads);
    for (const CpuOps* ops : detrun::available_cpu_ops()) {
      CHECK(detrun::failed_self_test(*ops, &pool).empty());
    }
    CHECK(detrun::failed_self_test(broken, &pool) == "add");
  }
}

TEST_CASE("no two known answers are equal") {
  std::set<std::string> hashes;
  for (const auto& answer : detrun::golden_answers()) hashes.insert(answer.xxh3);
  CHECK(hashes.size() == detrun::golden_answers().size());
}

TEST_CASE("one wrong bit of one kernel is found and its operation named") {
  CpuOps broken = detrun::kernels::scalar::kOps;
  broken.add = wrong_add;
  CHECK(detrun::failed_self_test(broken) == "add");
}

TEST_CASE("the self-test of an instruction set takes less than 5 ms of the best of ten tries") {
  for (const CpuOps* ops : detrun::available_cpu_ops()) {
    double best_ms = 1e9;
    for (int i = 0; i < 10; ++i) {
      const auto start = std::chrono::steady_clock::now();
      CHECK(detrun::failed_self_test(*ops).empty());
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      best_ms = std::min(best_ms, took.count());
    }
    MESSAGE(std::string(ops->name), ": ", best_ms, " ms");
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(best_ms < 5.0);
#endif
  }
}

}  // namespace
