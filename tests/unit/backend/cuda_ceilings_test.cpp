// The peaks of a device, on the emulated one: present, positive, named after it, and a refusal
// where its memory is too small.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <string>

#include "detrun/backend.h"
#include "detrun/error.h"

using namespace detrun;

TEST_CASE("every ceiling of a device is a rate above zero, and takes nothing when it is gone") {
  const auto backend = make_cuda_backend({});
  const std::uint64_t before = emulation::allocated_bytes();
  {
    const auto ceilings = backend->make_ceilings();
    CHECK(ceilings->loops() == "sm_90");
    CHECK(ceilings->memory_work() == "copy");
    CHECK(ceilings->memory_bytes_per_s() > 1e5);
    CHECK(ceilings->fma_flops_per_s() > 1e5);
    CHECK(ceilings->int8_ops_per_s() > 1e5);
    CHECK(emulation::allocated_bytes() > before);
  }
  CHECK(emulation::allocated_bytes() == before);
}

TEST_CASE("a device without room for the buffers says what they need") {
  emulation::set_devices({{.memory_bytes = std::uint64_t{4} << 20U}});
  {
    const auto backend = make_cuda_backend({});
    std::string message;
    try {
      backend->make_ceilings();
    } catch (const Error& error) {
      CHECK(error.kind() == ExitCode::kInternal);
      message = error.what();
    }
    CHECK(message.find("the buffer that bandwidth is measured with") != std::string::npos);
  }
  emulation::set_devices({{}});
}
