// The fingerprint of this machine, process and build. Reads files of /proc and /sys; prints
// nothing.
#pragma once

#include <string>

#include "detrun/backend.h"
#include "detrun/json.h"

namespace detrun {

/// Facts fixed at build time.
struct BuildInfo {
  std::string version;        ///< "0.1.0"
  std::string compiler;       ///< "g++ 12.2.0"
  std::string flags;          ///< compile flags of the engine
  std::string build_type;     ///< "Release"
  std::string kernel_sha256;  ///< digest of every file under kernels/ at build time
  std::string cuda;           ///< "none", or toolkit version and architectures
};
const BuildInfo& build_info();

/// The arithmetic profiles: the contract's own products everywhere, or cuBLASLt's for many rows.
/// Everything else in both of them is this version of the contract.
inline constexpr const char* kPortable = "portable";
inline constexpr const char* kCublas = "cublas";
inline constexpr int kNumericsVersion = 1;

/// What a replay is bound to: {"numerics": {...}} for portable; with {"products": {...}}, a GPU's
/// architecture and multiprocessors and the versions of CUDA and of `library`, for cublas.
/// `library`: version of cuBLASLt, empty for portable.
Json binding_of(const BackendInfo& backend, const std::string& profile, const std::string& library);
/// The stack document of detrun(1) section "fingerprint": {"binding": {...}, "informational":
/// {...}}, integers and strings only. Fast: build ids, no digests of whole files.
Json collect_fingerprint(const BackendInfo& backend, const std::string& profile = kPortable,
                         const std::string& library = {});

/// {"path": "sha256", ...} of the program's file and of every shared object mapped into this
/// process. Slow (reads them): for a side thread. A file that cannot be read is listed with its
/// reason.
Json digest_loaded_objects();
/// SHA-256 of the running program's file, lower-case hex; empty when it cannot be read.
std::string program_sha256();

/// The user's name by the password database, or the numeric id in decimal.
std::string operator_name();

}  // namespace detrun
