// What the build knows about CUDA. The value comes from the configure step.
#include "detrun/backend.h"

namespace detrun {

std::string cuda_build_description() { return DETRUN_CUDA_DESCRIPTION; }

}  // namespace detrun
