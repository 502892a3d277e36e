// The emulated tensor core instructions: fragments as the PTX ISA describes them, element by
// element, against a plain product of matrices.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "kernels/cuda/device.cuh"

namespace detrun {
namespace {

using emulation::LaneOrder;
using emulation::launch;

constexpr LaneOrder kOrders[] = {LaneOrder::kAscending, LaneOrder::kDescending};

struct Matrices {
  std::int8_t a[16][32];
  std::int8_t b[32][8];
  int d[16][8];

  explicit Matrices(unsigned seed) {
    std::mt19937 random(seed);
    for (auto& row : a) {
      for (auto& value : row) value = static_cast<std::int8_t>(random() % 256);
    }
    for (auto& row : b) {
      for (auto& value : row) value = static_cast<std::int8_t>(random() % 256);
    }
    for (auto& row : d) {
      for (int& value : row) value = static_cast<int>(random() % 1000) - 500;
    }
  }
  int product(int row, int column, int depth) const {
    int sum = d[row][column];
    for (int k = 0; k < depth; ++k) sum += a[row][k] * b[k][column];
    return sum;
  }
};

// Elements i = 0, 1, ... of a fragment, four a register, the first in the lowest byte.
template <class Element>
int pack(int first, Element element) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    word |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(element(first + i))) << (8 * i);
  }
  return static_cast<int>(word);
}

using Instruction = void (*)(int* d, const int* a, const int* b);

// PTX ISA, fragments of mma.m16n8k32 with .s8; those of m16n8k16 are their first halves, in which
// a[2], a[3] and b[1] are not read.
void check(int depth, Instruction instruction) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Matrices in(seed);
    for (const LaneOrder order : kOrders) {
      std::vector<int> out(16 * 8, -1);
      CHECK(launch({1, 1, 1}, {32, 1, 1}, order, [&] {
              const int lane = static_cast<int>(device::thread_x());
              const int group = lane >> 2;
              const int in_group = lane % 4;
              const auto of_a = [&](int i) {
                const int row = i < 4 || (8 <= i && i < 12) ? group : group + 8;
                return in.a[row][in_group * 4 + (i & 3) + (i < 8 ? 0 : 16)];
              };
              const auto of_b = [&](int i) {
                return in.b[in_group * 4 + (i & 3) + (i < 4 ? 0 : 16)][group];
              };
              const int a[4] = {pack(0, of_a), pack(4, of_a), pack(8, of_a), pack(12, of_a)};
              const int b[2] = {pack(0, of_b), pack(4, of_b)};
              int d[4];
              for (int i = 0; i < 4; ++i) {
                d[i] = in.d[i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
              }
              instruction(d, a, b);
              for (int i = 0; i < 4; ++i) {
                const int row = i < 2 ? group : group + 8;
                out[static_cast<std::size_t>(row * 8 + in_group * 2 + (i & 1))] = d[i];
              }
            }) == "");
      for (int row = 0; row < 16; ++row) {
        for (int column = 0; column < 8; ++column) {
          CHECK(out[static_cast<std::size_t>(row * 8 + column)] == in.product(row, column, depth));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("the m16n8k32 instruction multiplies int8 matrices exactly") {
  check(32, [](int* d, const int* a, const int* b) { device::mma_s8(d, a, b); });
}

TEST_CASE("m16n8k32 put together from m8n8k16 is the same") {
  check(32, [](int* d, const int* a, const int* b) { device::mma_s8_from_m8n8k16(d, a, b); });
}

TEST_CASE("the m16n8k16 instruction multiplies int8 matrices exactly") {
  check(16, [](int* d, const int* a, const int* b) { device::mma_s8_k16(d, a, b[0]); });
}

TEST_CASE("m16n8k16 put together from m8n8k16 is the same") {
  check(16,
        [](int* d, const int* a, const int* b) { device::mma_s8_k16_from_m8n8k16(d, a, b[0]); });
}

TEST_CASE("a tensor core instruction that one lane skips is reported") {
  const auto problem = launch({1, 1, 1}, {32, 1, 1}, LaneOrder::kAscending, [] {
    int d[4] = {0, 0, 0, 0};
    const int words[4] = {0, 0, 0, 0};
    if (device::thread_x() != 31) device::mma_s8(d, words, words);
  });
  CHECK(problem.find("not all lanes reach") != std::string::npos);
}

}  // namespace detrun
