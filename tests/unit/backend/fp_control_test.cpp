// The control register: set for the scope, restored after it, found value reported.
#include <doctest/doctest.h>

#include "detrun/backend.h"
#include "fp_control_support.h"

namespace {

using namespace detrun;

float quarter_of_smallest_normal() {
  volatile float x = 0x1p-126f;
  return x * 0.25f;
}

TEST_CASE("inside a scope subnormals are kept and rounding is to nearest, afterwards all is back") {
#if defined(__x86_64__)
  const unsigned before = _mm_getcsr();
  for (const unsigned foreign : {0x9fc0u, 0x9f80u, 0x1fc0u, 0x7f80u, 0x3f80u}) {
    support::ForeignFpControl control(foreign);
    {
      const FpControlScope scope;
      CHECK(scope.found() == foreign);
      CHECK(_mm_getcsr() == 0x1f80u);
      CHECK(quarter_of_smallest_normal() == 0x1p-128f);
      const FpControlScope inner;
      CHECK(inner.found() == 0x1f80u);
    }
    CHECK((_mm_getcsr() & ~0x3fu) == foreign);
    if ((foreign & 0x8000u) != 0) CHECK(quarter_of_smallest_normal() == 0.0f);
  }
  CHECK((_mm_getcsr() & ~0x3fu) == (before & ~0x3fu));
#else
  MESSAGE("not x86-64: the foreign registers of this test do not exist here");
#endif
}

TEST_CASE("sticky flags of earlier operations are not part of what was found") {
#if defined(__x86_64__)
  support::ForeignFpControl control(0x1fbf);
  CHECK(FpControlScope().found() == 0x1f80u);
#endif
}

}  // namespace
