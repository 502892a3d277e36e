// Libraries that are there, that are not, and functions that they lack.
#include "backend/shared_library.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace detrun {
namespace {

using OneNumber = double(double);

TEST_CASE("the first library that opens is taken, and its functions can be called") {
  const std::array names = {"libdetrun-of-nobody.so.1", "libm.so.6"};
  std::string why;
  const auto library = SharedLibrary::open(names, why);
  REQUIRE(library);
  CHECK(library->name() == "libm.so.6");
  OneNumber* floor_of = nullptr;
  REQUIRE(library->find("floor", floor_of));
  CHECK(floor_of(2.5) == 2.0);
  CHECK_FALSE(library->find("detrun_has_no_such_function", floor_of));
  const bool cleared = floor_of == nullptr;
  CHECK(cleared);
}

TEST_CASE("a library that is missing is named") {
  const std::array names = {"libdetrun-of-nobody.so.1", "libdetrun-of-nobody.so.2"};
  std::string why;
  CHECK_FALSE(SharedLibrary::open(names, why));
  CHECK(why.find("libdetrun-of-nobody.so.1") != std::string::npos);
}

}  // namespace
}  // namespace detrun
