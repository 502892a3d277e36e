// The emulation itself: what it must report, in both lane orders.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/device.cuh"

namespace detrun {
namespace {

using emulation::Dim;
using emulation::LaneOrder;
using emulation::launch;

constexpr LaneOrder kOrders[] = {LaneOrder::kAscending, LaneOrder::kDescending};

// Reverses an array through shared memory; `barrier` is what makes it right.
void reverse_kernel(const int* in, int* out, bool barrier) {
  DETRUN_SHARED(int, tile, 64);
  tile[device::thread_x()] = in[device::thread_x()];
  if (barrier) device::sync_block();
  out[device::thread_x()] = tile[63 - device::thread_x()];
}

bool reports(emulation::Problem problem, const char* what) {
  CAPTURE(problem);
  return problem.find(what) != std::string::npos;
}

// One block of `threads`, in both orders.
void check_reported(unsigned threads, const char* what, const std::function<void()>& kernel) {
  for (const LaneOrder order : kOrders) {
    CHECK(reports(launch({1, 1, 1}, {threads, 1, 1}, order, kernel), what));
  }
}

}  // namespace

TEST_CASE("threads exchange values through shared memory across a barrier") {
  std::vector<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[static_cast<std::size_t>(i)] = 3 * i;
  for (const LaneOrder order : kOrders) {
    CHECK(launch({1, 1, 1}, {64, 1, 1}, order,
                 [&] { reverse_kernel(in.data(), out.data(), true); }) == "");
    for (int i = 0; i < 64; ++i) CHECK(out[static_cast<std::size_t>(i)] == 3 * (63 - i));
  }
}

TEST_CASE("a missing barrier is reported in both lane orders") {
  std::vector<int> in(64), out(64);
  for (const LaneOrder order : kOrders) {
    const auto problem =
        launch({1, 1, 1}, {64, 1, 1}, order, [&] { reverse_kernel(in.data(), out.data(), false); });
    CHECK(problem.find("shared") != std::string::npos);
  }
}

TEST_CASE("an index outside a shared array is reported") {
  const auto problem = launch({1, 1, 1}, {32, 1, 1}, LaneOrder::kAscending, [] {
    DETRUN_SHARED(int, tile, 31);
    tile[device::thread_x()] = 1;
  });
  CHECK(problem.find("index outside a shared array") != std::string::npos);
  CHECK(problem.find("thread 31") != std::string::npos);
}

TEST_CASE("a collective that one lane skips is reported") {
  for (const LaneOrder order : kOrders) {
    int sink = 0;
    const auto problem = launch({1, 1, 1}, {32, 1, 1}, order, [&] {
      if (device::thread_x() != 5) sink += device::shuffle_xor(1, 1);
    });
    CHECK(problem.find("not all lanes reach") != std::string::npos);
  }
}

TEST_CASE("lanes that one lane does not meet are reported") {
  check_reported(32, "not all lanes reach", [] {
    if (device::thread_x() != 31) device::sync_warp();
  });
}

TEST_CASE("bytes are picked out of two words by number, and never by a number beyond") {
  CHECK(device::pick_bytes(0x33221100u, 0x77665544u, 0x7650u) == 0x77665500u);
  CHECK(device::pick_bytes(0x33221100u, 0x77665544u, 0xffff1234u) == 0x11223344u);
  check_reported(32, "a byte picked beyond the eighth",
                 [] { CHECK(device::pick_bytes(0, 0, 0x8000u) == 1); });
}

TEST_CASE("different collectives in one warp are reported") {
  const auto problem = launch({1, 1, 1}, {32, 1, 1}, LaneOrder::kAscending, [] {
    if (device::thread_x() < 16) {
      device::shuffle_xor(1, 1);
    } else {
      device::shuffle_xor(1.0f, 1);
    }
  });
  CHECK(problem.find("different collectives") != std::string::npos);
}

TEST_CASE("a barrier that one thread never reaches is reported") {
  const auto problem = launch({2, 1, 1}, {64, 1, 1}, LaneOrder::kDescending, [] {
    if (device::thread_x() != 40) device::sync_block();
  });
  CHECK(problem.find("barrier") != std::string::npos);
}

TEST_CASE("collectives in two branches of one warp are reported") {
  check_reported(32, "different collectives", [] {
    if (device::thread_x() < 16) {
      device::shuffle_xor(1, 1);
    } else {
      device::shuffle_xor(2, 1);
    }
  });
}

TEST_CASE("lanes that name different partners are reported") {
  check_reported(32, "different collectives",
                 [] { device::shuffle_xor(1u, device::thread_x() == 3 ? 2 : 1); });
}

TEST_CASE("barriers in two branches of one block are reported") {
  int last = 0;
  check_reported(64, "different barriers", [&] {
    if (device::thread_x() < 32) {
      device::sync_block();
    } else {
      device::sync_block();
      last = 1;
    }
  });
}

TEST_CASE("a full-warp collective in a part of a warp is reported") {
  check_reported(40, "no multiple of 32", [] { device::shuffle_xor(1.0f, 1); });
}

TEST_CASE("a read of shared memory that nobody wrote is reported with the array's name") {
  check_reported(32, "uninitialised shared memory: tile", [] {
    DETRUN_SHARED(int, tile, 33);
    tile[device::thread_x()] = 1;
    device::sync_block();
    const int value = tile[device::thread_x() + 1];
    static_cast<void>(value);
  });
}

TEST_CASE("shared memory of one block is unwritten again in the next") {
  for (const LaneOrder order : kOrders) {
    const auto problem = launch({2, 1, 1}, {32, 1, 1}, order, [] {
      DETRUN_SHARED(int, tile, 32);
      if (device::block_x() == 0) tile[device::thread_x()] = 1;
      device::sync_block();
      const int value = tile[device::thread_x()];
      static_cast<void>(value);
    });
    CHECK(reports(problem, "uninitialised shared memory"));
    CHECK(reports(problem, "block 1,0,0"));
  }
}

TEST_CASE("a write over what another thread may still read is reported") {
  const auto kernel = [](bool barrier) {
    DETRUN_SHARED(int, tile, 32);
    tile[device::thread_x()] = 1;
    device::sync_block();
    const int next = tile[(device::thread_x() + 1) % 32];
    if (barrier) device::sync_block();
    tile[device::thread_x()] = next;
  };
  // The write comes after the read in one order of the lanes, before it in the other.
  CHECK(reports(launch({1, 1, 1}, {32, 1, 1}, LaneOrder::kAscending, [&] { kernel(false); }),
                "write of shared memory that another thread read"));
  CHECK(reports(launch({1, 1, 1}, {32, 1, 1}, LaneOrder::kDescending, [&] { kernel(false); }),
                "read of another thread's shared write"));
  for (const LaneOrder order : kOrders) {
    CHECK(launch({1, 1, 1}, {32, 1, 1}, order, [&] { kernel(true); }) == "");
  }
}

TEST_CASE("that the last reader is the writer does not hide the readers before") {
  for (const LaneOrder order : kOrders) {
    const unsigned last = order == LaneOrder::kAscending ? 31 : 0;
    const auto problem = launch({1, 1, 1}, {32, 1, 1}, order, [&] {
      DETRUN_SHARED(int, tile, 1);
      if (device::thread_x() == 0) tile[0] = 1;
      device::sync_block();
      const int value = tile[0];
      if (device::shuffle_xor(value, 1) == 1 && device::thread_x() == last) tile[0] = value;
    });
    CHECK(reports(problem, "write of shared memory that another thread read"));
  }
}

TEST_CASE("two threads' writes to one shared element are reported") {
  check_reported(32, "two threads' shared writes", [] {
    DETRUN_SHARED(int, tile, 16);
    tile[device::thread_x() / 2] = 1;
  });
}

TEST_CASE("a thread reads its own shared write at once and writes over its own read") {
  for (const LaneOrder order : kOrders) {
    CHECK(launch({1, 1, 1}, {32, 1, 1}, order, [] {
            DETRUN_SHARED(int, tile, 32);
            tile[device::thread_x()] = 1;
            tile[device::thread_x()] = tile[device::thread_x()] + 1;
          }) == "");
  }
}

TEST_CASE("a misaligned wide load is reported") {
  alignas(16) const std::byte bytes[32] = {};
  check_reported(32, "misaligned 16-byte", [&] { device::load_int4(bytes + 8); });
  check_reported(32, "misaligned 8-byte", [&] { device::load_int2(bytes + 4); });
  check_reported(32, "misaligned 4-byte", [&] { device::load_int(bytes + 2); });
}

TEST_CASE("local variables that exceed the stack are reported") {
  const auto problem = launch({1, 1, 1}, {32, 1, 1}, LaneOrder::kAscending, [] {
    if (device::thread_x() != 1) return;
    volatile char large[68 << 10];  // thread 0, whose stack comes before, is at its end
    for (volatile char& c : large) c = 1;
  });
  CHECK(reports(problem, "exceed the emulated stack"));
}

TEST_CASE("threads and blocks have the coordinates of the launch") {
  std::vector<unsigned> seen(2 * 3 * 4 * 5 * 2);
  for (const LaneOrder order : kOrders) {
    std::fill(seen.begin(), seen.end(), 0u);
    CHECK(launch({2, 3, 2}, {4, 5, 1}, order, [&] {
            CHECK(device::block_dim_x() == 4);
            CHECK(device::block_dim_y() == 5);
            CHECK(device::grid_dim_x() == 2);
            CHECK(device::grid_dim_y() == 3);
            const unsigned block =
                device::block_x() + 2 * (device::block_y() + 3 * device::block_z());
            ++seen[20 * block + device::thread_x() + 4 * device::thread_y()];
          }) == "");
    for (const unsigned count : seen) CHECK(count == 1);
  }
}

TEST_CASE("the largest value of a warp reaches every lane") {
  for (const LaneOrder order : kOrders) {
    std::vector<float> floats(64);
    std::vector<unsigned> words(64);
    CHECK(launch({1, 1, 1}, {64, 1, 1}, order, [&] {
            const unsigned own = device::thread_x() * 37 % 64;
            floats[device::thread_x()] =
                device::warp_max(-1.0f - device::int_to_float(static_cast<int>(own)));
            words[device::thread_x()] = device::warp_max(own + 0x80000000u);
          }) == "");
    for (unsigned warp = 0; warp < 2; ++warp) {
      unsigned largest = 0, smallest = 64;
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned own = (32 * warp + lane) * 37 % 64;
        largest = std::max(largest, own);
        smallest = std::min(smallest, own);
      }
      for (unsigned lane = 0; lane < 32; ++lane) {
        CHECK(floats[32 * warp + lane] == -1.0f - static_cast<float>(smallest));
        CHECK(words[32 * warp + lane] == largest + 0x80000000u);
      }
    }
  }
}

TEST_CASE("integers are rounded to nearest even, halves as the contract does") {
  const float values[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f, 127.49999f, -127.5f, 0.0f};
  const int expected[] = {0, 2, 2, 0, -2, 126, 127, -128, 0};
  for (std::size_t i = 0; i < 9; ++i) CHECK(device::float_to_int(values[i]) == expected[i]);
  for (const float v : {65519.9f, 65520.0f, 0x1p-25f, 0x1.8p-24f, -1.0009765f}) {
    CHECK(device::float_to_half(v) == kernels::f32_to_f16(v));
  }
}

TEST_CASE("a shuffle reaches the lane that the mask names") {
  std::vector<int> out(96);
  for (const LaneOrder order : kOrders) {
    CHECK(launch({1, 1, 1}, {96, 1, 1}, order, [&] {
            const unsigned own = device::thread_x();
            const int first = static_cast<int>(device::shuffle_xor(own, 16));
            out[device::thread_x()] = device::shuffle_xor(first, 1);
          }) == "");
    for (int i = 0; i < 96; ++i) CHECK(out[static_cast<std::size_t>(i)] == (i ^ 17));
  }
}

TEST_CASE("a dot product of four bytes wraps nowhere") {
  CHECK(device::dp4a(static_cast<int>(0x80808080u), static_cast<int>(0x80808080u), 1) ==
        4 * 16384 + 1);
  CHECK(device::dp4a(0x7f80ff01, 0x01010101, 0) == 127 - 128 - 1 + 1);
}

}  // namespace detrun
