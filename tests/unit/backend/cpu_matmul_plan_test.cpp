// The cut of a product into items: every output once, enough items for all threads.
#include "backend/cpu_matmul_plan.h"

#include <doctest/doctest.h>

#include <vector>

#include "backend/cpu_select.h"

namespace {

using detrun::CpuWeight;
using detrun::MatmulPlan;

CpuWeight weight_of(std::uint64_t n) {
  CpuWeight weight;
  weight.ops = detrun::find_matmul(*detrun::available_cpu_ops().back(), 8);  // Q8_0
  weight.k = 64;
  weight.n = n;
  return weight;
}

TEST_CASE("the items of a plan cover every group and row exactly once") {
  for (const std::uint64_t n : {1U, 7U, 8U, 33U, 200U, 5000U}) {
    const CpuWeight weight = weight_of(n);
    for (const std::uint32_t rows : {1U, 2U, 12U, 47U, 48U, 95U, 96U, 97U, 128U, 512U}) {
      for (const std::uint32_t threads : {1U, 2U, 3U, 64U}) {
        const MatmulPlan plan(weight, rows, 128, threads);
        std::vector<std::uint32_t> seen(weight.n_groups() * rows);
        for (std::uint32_t i = 0; i < plan.n_items(); ++i) {
          const MatmulPlan::Item item = plan.item(i);
          CHECK(item.n_rows != 0);
          REQUIRE(item.group1 <= weight.n_groups());
          REQUIRE(item.row0 + item.n_rows <= rows);
          for (std::uint64_t g = item.group0; g < item.group1; ++g) {
            for (std::uint32_t r = 0; r < item.n_rows; ++r) ++seen[g * rows + item.row0 + r];
          }
        }
        CAPTURE(n);
        CAPTURE(rows);
        CAPTURE(threads);
        CHECK(std::vector<std::uint32_t>(seen.size(), 1) == seen);
      }
    }
  }
}

TEST_CASE("rows are split only where groups give the threads too few items") {
  const CpuWeight wide = weight_of(8 * 4 * 64);
  CHECK(MatmulPlan(wide, 512, 128, 2).n_items() == 64 * 8 / wide.ops->group);
  const CpuWeight narrow = weight_of(wide.ops->group * 4);
  CHECK(MatmulPlan(narrow, 1, 128, 2).n_items() == 1);
  CHECK(MatmulPlan(narrow, 95, 128, 2).n_items() == 1);
  CHECK(MatmulPlan(narrow, 128, 128, 2).n_items() == 2);
  CHECK(MatmulPlan(narrow, 4096, 128, 2).n_items() >= 30);
}

TEST_CASE("a product of no rows has no items") {
  CHECK(MatmulPlan(weight_of(100), 0, 128, 2).n_items() == 0);
}

}  // namespace
