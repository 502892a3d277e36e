// THE list of shapes that the smoke test runs beside the golden cases: sizes as models have them,
// several rows, grouped heads. Written once, run on the CPU and on the device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels_under_test.h"
#include "report.h"

namespace detrun::smoke {

struct ShapeCase {
  std::string kernel;  ///< as the report calls it
  std::string shape;
  bool large;  ///< too slow for the emulation
  std::function<Bytes(Kernels&)> run;
};

std::vector<ShapeCase> shape_cases();

}  // namespace detrun::smoke
