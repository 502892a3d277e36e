// The models of a replay: one loading for all who ask, by digest; several threads may ask at once.
#include "run/model_cache.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

struct CacheScene {
  test::TempFolder folder;
  std::atomic<bool> cancel = false;
  Observer nobody;
  std::unique_ptr<Backend> backend = open_backend({.threads = 1});
  ModelCache cache{*backend, nobody, cancel};

  std::string model(unsigned seed) {
    return folder.write("m" + std::to_string(seed) + ".gguf", test::tiny_run_model(seed).bytes());
  }
};

TEST_CASE("threads that ask at once get one and the same model") {
  CacheScene scene;
  const std::string path = scene.model(1);
  const Sha256Digest digest = sha256_file(path);
  std::vector<std::shared_ptr<const LoadedModel>> found(8);
  std::vector<std::thread> threads;
  for (auto& model : found) {
    threads.emplace_back([&] { model = scene.cache.find(path, digest).model; });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(found[0] != nullptr);
  for (const auto& model : found) CHECK(model == found[0]);
}

TEST_CASE("a model is found by its digest under any path, and a wrong digest names both") {
  CacheScene scene;
  const std::string path = scene.model(1);
  const Sha256Digest digest = sha256_file(path);
  const auto first = scene.cache.find(path, digest).model;
  CHECK(scene.cache.find("/moved/away.gguf", digest).model == first);
  Sha256Digest other = digest;
  other[0] ^= 1;
  const ModelCache::Lookup wrong = scene.cache.find(path, other);
  CHECK(wrong.model == nullptr);
  CHECK(wrong.why.find(to_hex(digest)) != std::string::npos);
  CHECK(wrong.why.find(to_hex(other)) != std::string::npos);
  CHECK(scene.cache.find("/no/such.gguf", other).model == nullptr);
}

TEST_CASE("a model that the cache let go of can still be used by who has it") {
  CacheScene scene;
  const std::string path = scene.model(1);
  const auto first = scene.cache.find(path, std::nullopt).model;
  REQUIRE(first != nullptr);
  for (unsigned seed = 2; seed < 6; ++seed) {
    CHECK(scene.cache.find(scene.model(seed), std::nullopt).model != nullptr);
  }
  CHECK(first->model->spec().name == "tiny");
  const auto again = scene.cache.find(path, std::nullopt).model;
  CHECK(again != first);
}

TEST_CASE("a cancelled command hashes nothing to its end") {
  CacheScene scene;
  scene.cancel = true;
  const ModelCache::Lookup lookup = scene.cache.find(scene.model(1), std::nullopt);
  // A file as small as this may be hashed before anybody looks.
  CHECK((lookup.model != nullptr || lookup.why.find("cancelled") != std::string::npos));
}

}  // namespace
}  // namespace detrun
