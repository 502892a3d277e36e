// Build facts: what the generated headers say, against the sources they were made from.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "detrun/digest.h"
#include "detrun/host.h"

namespace detrun {
namespace {

std::string digest_of_kernels() {
  const std::filesystem::path root = std::filesystem::path(DETRUN_SOURCE_DIR) / "kernels";
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().lexically_relative(root).string());
  }
  std::sort(paths.begin(), paths.end());
  std::string manifest;
  for (const std::string& path : paths) {
    manifest += to_hex(sha256_file((root / path).string())) + "  " + path + "\n";
  }
  return to_hex(sha256(manifest));
}

TEST_CASE("the kernel digest is that of the list of digests of all files under kernels/") {
  CHECK(build_info().kernel_sha256 == digest_of_kernels());
}

TEST_CASE("build facts are filled and name the flags that decide about bits") {
  const BuildInfo& info = build_info();
  CHECK_FALSE(info.version.empty());
  CHECK(info.compiler.find("++ ") != std::string::npos);
  CHECK(info.flags.find("-ffp-contract=off") != std::string::npos);
  CHECK(info.flags.find(';') == std::string::npos);
  CHECK_FALSE(info.build_type.empty());
  CHECK_FALSE(info.cuda.empty());
}

}  // namespace
}  // namespace detrun
