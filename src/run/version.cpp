// Facts of the build for `--version`, gathered from the rooms that own them.
#include "detrun/backend.h"
#include "detrun/host.h"
#include "detrun/ledger.h"
#include "detrun/run.h"

namespace detrun {

VersionReport version_report() {
  const BuildInfo& build = build_info();
  return {build.version,        build.build_type,         build.compiler,
          available_cpu_isas(), cuda_build_description(), kNumericsProfile,
          kNumericsVersion,     kLedgerSchemaVersion,     kSealVersion};
}

}  // namespace detrun
