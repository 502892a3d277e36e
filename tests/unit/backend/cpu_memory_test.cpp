// Memory blocks: zeroed, aligned, movable, refused with a message.
#include "backend/cpu_memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "detrun/error.h"

namespace {

using detrun::CpuMemory;

TEST_CASE("blocks of every size are zeroed and aligned to 64 bytes") {
  for (const std::uint64_t n :
       {1ull, 63ull, 64ull, 65ull, 100000ull, 1ull << 20, (3ull << 20) + 7}) {
    CpuMemory memory(n, "test");
    CHECK(memory.size() == n);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 64 == 0);
    bool zero = true;
    for (std::uint64_t i = 0; i < n; ++i) zero &= memory.data()[i] == std::byte{0};
    CHECK(zero);
    memory.data()[n - 1] = std::byte{1};
  }
  CHECK(CpuMemory(0, "test").data() == nullptr);
}

TEST_CASE("a moved block keeps its bytes") {
  CpuMemory a(100, "test");
  a.data()[7] = std::byte{42};
  CpuMemory b(std::move(a));
  CHECK(b.data()[7] == std::byte{42});
  CpuMemory c(2u << 20, "test");
  c = std::move(b);
  CHECK(c.size() == 100);
  CHECK(c.data()[7] == std::byte{42});
}

TEST_CASE("memory that is not there is an internal error that says for what and how much") {
  for (const std::uint64_t n : {std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    try {
      CpuMemory memory(n, "the KV cache");
      FAIL("expected an Error");
    } catch (const detrun::Error& error) {
      CHECK(error.kind() == detrun::ExitCode::kInternal);
      CHECK(std::string(error.what()).find("the KV cache") != std::string::npos);
      CHECK(std::string(error.what()).find(std::to_string(n)) != std::string::npos);
    }
  }
}

}  // namespace
