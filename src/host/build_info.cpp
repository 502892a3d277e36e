// Facts fixed at build time, from two generated headers. Reads nothing at run time.
#include "detrun/backend.h"
#include "detrun/host.h"
#include "host/build_facts.h"
#include "host/kernel_digest.h"

namespace detrun {

const BuildInfo& build_info() {
  static const BuildInfo info = [] {
    const std::string cuda = cuda_build_description();
    return BuildInfo{kBuildVersion, kBuildCompiler, kBuildFlags,
                     kBuildType,    kKernelSha256,  cuda.empty() ? "none" : cuda};
  }();
  return info;
}

}  // namespace detrun
