// The emulation itself: what it must report, in both lane orders.
#include <doctest/doctest.h>

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

TEST_CASE("a shuffle reaches the lane that the mask names") {
  std::vector<int> out(96);
  for (const LaneOrder order : kOrders) {
    CHECK(launch({1, 1, 1}, {96, 1, 1}, order, [&] {
            const int own = static_cast<int>(device::thread_x());
            const int first = device::shuffle_xor(own, 16);
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
