// The binary64 functions of the RoPE tables against the C library.
#include "kernels/math64.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace {

using namespace detrun::kernels;

TEST_CASE("pow is good to 4e-15 over the bases and exponents of rope") {
  // The relative error of exp(y log x) is the absolute error of y log x: it grows with |log x|.
  double worst = 0;
  for (const double base : {1.0, 100.0, 10000.0, 500000.0, 1e6, 1e7, 5e8}) {
    for (int i = 0; i <= 128; ++i) {
      const double exponent = -i / 128.0;
      const double expected = std::pow(base, exponent);
      worst = std::max(worst, std::fabs(pow64(base, exponent) / expected - 1.0));
    }
  }
  MESSAGE("pow: relative error ", worst);
  CHECK(worst < 4e-15);
  CHECK(pow64(10000.0, -0.0) == 1.0);
  CHECK(pow64(1.0, -0.5) == 1.0);
}

TEST_CASE("log and exp are each other's inverse to a few units") {
  for (const double x : {1e-300, 0.5, 0.70710678, 1.0, 1.41421356, 3.0, 1e300}) {
    CHECK(std::fabs(log64(x) - std::log(x)) <= 4e-16 * std::max(1.0, std::fabs(std::log(x))));
  }
  for (double x = -690; x < 690; x += 7.3) {
    CHECK(std::fabs(exp64(x) / std::exp(x) - 1.0) < 1e-15);
  }
  CHECK(log64(1.0) == 0.0);
  CHECK(exp64(0.0) == 1.0);
}

TEST_CASE("sin and cos are good to 2e-16 up to large angles") {
  double worst = 0;
  for (const double limit : {1.0, 100.0, 131072.0, 1e7, 4e9}) {
    for (int i = 0; i < 20000; ++i) {
      const double x = limit * (i / 20000.0);
      double s;
      double c;
      sincos64(x, &s, &c);
      worst = std::max({worst, std::fabs(s - std::sin(x)), std::fabs(c - std::cos(x))});
    }
  }
  MESSAGE("sin, cos: absolute error ", worst);
  CHECK(worst < 2e-16);
  double s;
  double c;
  sincos64(0.0, &s, &c);
  CHECK(s == 0.0);
  CHECK(c == 1.0);
}

}  // namespace
