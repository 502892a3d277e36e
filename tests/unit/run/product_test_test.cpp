// When the products of profile cublas are tested, what is remembered of it, and what is not.
#include "run/product_test.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/run/pinning_backend.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using Calls = std::vector<std::string>;

const std::vector<std::string> kLoad = {"/bin/sh", "-c",
                                        "echo measured the ceilings >&2; exec sleep 600"};
const std::vector<std::string> kNoLoad = {"/bin/sh", "-c", "echo no GPU >&2"};

struct Fixture {
  test::TempFolder folder;
  std::string cache = folder.file("a/b");
  test::PinningBackend backend;
  ProductPlan plan = backend.pin_products(512);

  Fixture() { backend.calls.clear(); }
  void require(const std::vector<std::string>& load = kLoad) {
    TestedProducts().require(backend, plan, cache, load);
  }
};

TEST_CASE_FIXTURE(Fixture, "products are tested once a stack and plan") {
  require();
  CHECK(backend.calls == Calls{"test 20"});
  require();
  require(kNoLoad);
  CHECK(backend.calls == Calls{"test 20"});
  plan.products[0].algorithm[63] = std::byte{1};
  require();
  CHECK(backend.calls == Calls{"test 20", "test 20"});
  backend.changeable_info().device->driver = "13.1";
  require();
  CHECK(backend.calls.size() == 3);
  backend.changeable_info().device->uuid = "GPU-2";
  require();
  CHECK(backend.calls.size() == 4);
  CHECK(std::distance(std::filesystem::directory_iterator(cache), {}) == 4);
}

TEST_CASE_FIXTURE(Fixture, "a stack whose products differ is refused, again and again") {
  backend.differs = true;
  for (int i = 0; i < 2; ++i) {
    const test::Thrown thrown = test::thrown_by([&] { require(); });
    CHECK(thrown.kind == ExitCode::kInternal);
    CHECK(thrown.says("two results differ"));
  }
  CHECK(backend.calls == Calls{"test 20", "test 20"});
}

TEST_CASE_FIXTURE(Fixture, "without another process nothing counts as tested") {
  CHECK(test::thrown_by([&] { require(kNoLoad); }).says("no GPU"));
  CHECK(backend.calls.empty());
  CHECK_FALSE(std::filesystem::exists(cache));
}

/// Whether a child of this process has ended and was not waited for.
bool is_ended(const std::string& number) {
  std::ifstream file("/proc/" + number + "/status");
  std::string word;
  while (file >> word) {
    if (word == "State:" && file >> word) return word == "Z";
  }
  return true;
}

TEST_CASE_FIXTURE(Fixture, "what was compared after the other process ended counts for nothing") {
  const std::string path = folder.file("pid");
  backend.while_testing = [&] {
    std::string number;
    std::ifstream(path) >> number;
    for (int i = 0; i < 1000 && !is_ended(number); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  const std::vector<std::string> brief = {"/bin/sh", "-c",
                                          "echo $$ > " + path + "; echo measured the ceilings >&2"};
  CHECK(test::thrown_by([&] { require(brief); }).says("ended before"));
  CHECK_FALSE(std::filesystem::exists(cache));
}

TEST_CASE_FIXTURE(Fixture, "what somebody else wrote into the memory is not believed") {
  require();
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    std::ofstream(entry.path()) << "tested";
  }
  require();
  CHECK(backend.calls.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "a memory that cannot be written means testing in every process") {
  cache = folder.write("file", "") + "/below";
  require();
  require();
  cache.clear();
  require();
  CHECK(backend.calls.size() == 3);
  TestedProducts of_process;
  of_process.require(backend, plan, cache, kLoad);
  of_process.require(backend, plan, cache, kNoLoad);
  CHECK(backend.calls.size() == 4);
  plan.rows = 256;
  of_process.require(backend, plan, cache, kLoad);
  CHECK(backend.calls.size() == 5);
}

TEST_CASE_FIXTURE(Fixture, "another driver is another stack, and the memory is the user's alone") {
  require();
  backend.changeable_info().device->facts = {{"driver_version", std::string("580.95.05")}};
  require();
  backend.changeable_info().device->facts = {{"driver_version", std::string("580.65.06")}};
  require();
  CHECK(backend.calls.size() == 3);
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    CHECK(entry.status().permissions() ==
          (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  }
}

TEST_CASE("the memory lies where the user's caches lie") {
  const auto folder_with = [](const char* cache, const char* home) {
    cache == nullptr ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", cache, 1);
    home == nullptr ? unsetenv("HOME") : setenv("HOME", home, 1);
    return products_cache_folder();
  };
  const std::string cache = getenv("XDG_CACHE_HOME") == nullptr ? "" : getenv("XDG_CACHE_HOME");
  const std::string home = getenv("HOME") == nullptr ? "" : getenv("HOME");
  CHECK(folder_with("/c", "/h") == "/c/detrun/products");
  CHECK(folder_with("relative", "/h") == "/h/.cache/detrun/products");
  CHECK(folder_with(nullptr, "/h") == "/h/.cache/detrun/products");
  CHECK(folder_with(nullptr, nullptr).empty());
  folder_with(cache.empty() ? nullptr : cache.c_str(), home.empty() ? nullptr : home.c_str());
}

TEST_CASE("the load is this program on the same GPU") {
  const test::PinningBackend backend;
  const std::vector<std::string> command = load_command(backend.info());
  CHECK(command.front() == "/proc/self/exe");
  CHECK(command[command.size() - 2] == "--device");
  CHECK(command.back() == "GPU-1");
}

}  // namespace
}  // namespace detrun
