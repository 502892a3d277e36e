// Mapped objects of this very process.
#include "host/objects.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "detrun/digest.h"
#include "detrun/host.h"
#include "host/system.h"

namespace detrun {
namespace {

TEST_CASE("the program and the C library are listed with their build ids") {
  const std::vector<LoadedObject> objects = loaded_objects();
  REQUIRE_FALSE(objects.empty());
  const auto program = std::find_if(objects.begin(), objects.end(),
                                    [](const LoadedObject& o) { return o.path.empty(); });
  REQUIRE(program != objects.end());
  CHECK(program->build_id.size() == 40);  // --build-id=sha1
  const bool has_libc = std::any_of(objects.begin(), objects.end(), [](const LoadedObject& o) {
    return o.path.find("libc.so") != std::string::npos && !o.build_id.empty();
  });
  CHECK(has_libc);
}

TEST_CASE("the program's digest is that of its file") {
  CHECK(program_sha256() == to_hex(sha256_file(program_path())));
}

TEST_CASE("digests cover the program and every object that has a file") {
  const Json digests = digest_loaded_objects();
  const Json* program = digests.find(ascii_only(program_path()));
  REQUIRE(program != nullptr);
  CHECK(program->as_string() == program_sha256());
  for (const auto& member : digests.as_object()) {
    CAPTURE(member.first);
    CHECK(member.second.as_string().size() == 64);
  }
  CHECK(digests.as_object().size() > 2);
  CHECK_FALSE(digests.canonical().empty());
}

}  // namespace
}  // namespace detrun
