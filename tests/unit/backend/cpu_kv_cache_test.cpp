// Addresses of the KV cache do not overlap, the snapshot is what was stored, sizes cannot wrap.
#include "backend/cpu_kv_cache.h"

#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "detrun/error.h"

namespace {

using namespace detrun;
using Part = CpuKvCache::Part;

TEST_CASE("every vector of the cache has its own place and the snapshot shows it") {
  for (const KvType type : {KvType::kF16, KvType::kF32}) {
    CpuKvCache cache({type, 2, 5, 3, 6});
    const std::size_t head_bytes = type == KvType::kF16 ? 12 : 24;
    std::set<const std::byte*> places;
    unsigned char mark = 1;
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      for (std::uint32_t position = 0; position < 5; ++position) {
        for (const Part part : {Part::kK, Part::kV}) {
          for (std::uint32_t head = 0; head < 3; ++head) {
            std::byte* p = cache.at(part, layer, head, position);
            places.insert(p);
            std::memset(p, mark++, head_bytes);
          }
        }
      }
    }
    CHECK(places.size() == 60);
    mark = 1;
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      for (std::uint32_t position = 0; position < 5; ++position) {
        const auto bytes = cache.snapshot(layer, position);
        CHECK(bytes.size() == 6 * head_bytes);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          CHECK(bytes[i] == static_cast<std::byte>(mark + i / head_bytes));
        }
        mark = static_cast<unsigned char>(mark + 6);
      }
    }
  }
}

TEST_CASE("a cache larger than any memory is refused before anything is reserved") {
  constexpr std::uint32_t kBig = 0xffffffffu;
  for (const KvShape& shape :
       {KvShape{KvType::kF16, kBig, kBig, 8, 128}, KvShape{KvType::kF32, 32, kBig, kBig, 128}}) {
    try {
      CpuKvCache cache(shape);
      FAIL("expected an Error");
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kUsage);
      CHECK(error.hint().find("--ctx") != std::string::npos);
    }
  }
}

}  // namespace
