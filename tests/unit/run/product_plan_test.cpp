// Pinned products as text: what was written is read back; anything else is refused with a reason.
#include "run/product_plan.h"

#include <doctest/doctest.h>

#include <string>

namespace detrun {
namespace {

ProductPlan plan_of_two() {
  ProductPlan plan{"13.1.0", 512, 33554432, {}};
  for (std::uint32_t i = 0; i < 2; ++i) {
    PinnedProduct product{QType::kF16, 192 + 64 * i, 64, {}, "algorithm " + std::to_string(i)};
    for (std::size_t b = 0; b < product.algorithm.size(); ++b) {
      product.algorithm.at(b) = static_cast<std::byte>(3 * b + i);
    }
    plan.products.push_back(product);
  }
  return plan;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string why_not(const std::string& text) {
  std::string why;
  CHECK_FALSE(plan_from_json(text, why));
  return why;
}

TEST_CASE("a plan is read back as it was written") {
  const ProductPlan plan = plan_of_two();
  std::string why;
  const auto read = plan_from_json(plan_to_json(plan), why);
  REQUIRE_MESSAGE(read, why);
  CHECK(*read == plan);
  CHECK(plan_to_json(*read) == plan_to_json(plan));
}

TEST_CASE("the text of a plan is the one that stands in ledgers") {
  ProductPlan plan = plan_of_two();
  plan.products.resize(1);
  plan.products[0].algorithm = {};
  CHECK(plan_to_json(plan) ==
        R"({"cublaslt":"13.1.0","products":[{"algorithm":")" + std::string(128, '0') +
            R"(","description":"algorithm 0","k":64,"n":192,"type":"F16"}],)" +
            R"("rows":512,"workspace_bytes":33554432})");
}

TEST_CASE("whatever is no plan is refused and the fault is named") {
  const std::string good = plan_to_json(plan_of_two());
  CHECK(why_not("").find("params.products") != std::string::npos);
  CHECK(why_not("[]") == "params.products: 'cublaslt' is missing");
  CHECK(why_not(replaced(good, "\"rows\":512", "\"rows\":\"512\"")) ==
        "params.products: 'rows' is not from 1 to 2147483647");
  CHECK(why_not(replaced(good, "\"rows\":512", "\"rows\":18446744073709551615")) ==
        "params.products: 'rows' is not from 1 to 2147483647");
  CHECK(why_not(replaced(good, "\"rows\":512", "\"rows\":0")) ==
        "params.products: 'rows' is not from 1 to 2147483647");
  CHECK(why_not(replaced(good, "\"n\":192", "\"n\":4294967297")) ==
        "params.products: 'n' is not from 1 to 2147483647");
  CHECK(why_not(replaced(good, "F16", "F17")) ==
        "params.products: the type of a product is unknown");
  CHECK(why_not(replaced(good, "\"13.1.0\"", "13")) == "params.products: 'cublaslt' is no text");
  CHECK(why_not(replaced(good, "000306", "00030")) ==
        "params.products: an algorithm is not 64 bytes in hexadecimal digits");
  CHECK(why_not(replaced(good, "000306", "0003zz")) ==
        "params.products: an algorithm is not 64 bytes in hexadecimal digits");
  CHECK(why_not(replaced(good, "\"n\":256", "\"n\":192")) ==
        "params.products: the products are not in ascending order");
  CHECK(why_not(replaced(good, "\"rows\":512", "\"rows\": 512")) ==
        "params.products: it is not written as detrun writes it");
  CHECK(why_not(replaced(good, "\"rows\":512", "\"more\":1,\"rows\":512")) ==
        "params.products: it is not written as detrun writes it");
  CHECK(why_not(R"({"cublaslt":"1","products":{},"rows":1,"workspace_bytes":1})") ==
        "params.products: 'products' is no list");
}

}  // namespace
}  // namespace detrun
