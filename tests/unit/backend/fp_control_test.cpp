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
#if defined(DETRUN_KNOWN_FP_CONTROL)
  const unsigned before = support::fp_control();
  for (const unsigned foreign : support::kForeignControls) {
    CAPTURE(foreign);
    support::ForeignFpControl control(foreign);
    {
      const FpControlScope scope;
      CHECK(scope.found() == foreign);
      CHECK(support::fp_control() == support::kContractControl);
      CHECK(quarter_of_smallest_normal() == 0x1p-128f);
      const FpControlScope inner;
      CHECK(inner.found() == support::kContractControl);
    }
    CHECK(support::fp_control() == foreign);
    if (support::flushes_results(foreign)) CHECK(quarter_of_smallest_normal() == 0.0f);
  }
  CHECK(support::fp_control() == before);
#else
  MESSAGE("skipped: the control register of this processor is not known to this test");
#endif
}

TEST_CASE("sticky flags of earlier operations are not part of what was found") {
#if defined(__x86_64__)  // AArch64 keeps them in another register
  support::ForeignFpControl control(0x1fbf);
  CHECK(FpControlScope().found() == 0x1f80u);
#endif
}

}  // namespace
