// Facts of the build for `--version`, gathered from the rooms that own them.
#include "detrun/backend.h"
#include "detrun/host.h"
#include "detrun/ledger.h"
#include "detrun/run.h"

namespace detrun {

VersionReport version_report() {
  const BuildInfo& build = build_info();
  const CudaSupport cuda = cuda_support();
  VersionReport report;
  report.version = build.version;
  report.build_type = build.build_type;
  report.compiler = build.compiler;
  report.cpu_isas = available_cpu_isas();
  report.cuda = cuda_build_description();
  if (const std::string name = cuda_backend_name(); !name.empty()) report.cuda_backend = name;
  report.cuda_usable = cuda.usable;
  report.cuda_device = cuda.text;
  report.numerics_profile = kPortable;
  report.numerics_version = kNumericsVersion;
  report.ledger_schema = kLedgerSchemaVersion;
  report.seal_version = kSealVersion;
  return report;
}

}  // namespace detrun
