// The rotary position embedding, emulated, bit-equal to the scalar reference.
#include "kernels/cuda/rope.cuh"

#include "kernels/cpu/ops.h"
#include "tests/cuda/row_support.h"

namespace detrun {
namespace {

using namespace detrun::kernels;
using namespace detrun::cuda_test;

struct Shape {
  unsigned n_rows, n_heads, head_dim, rope_dim;
};

constexpr Shape kShapes[] = {{1, 1, 2, 2},   {1, 3, 4, 4},     {3, 3, 8, 6},     {2, 9, 64, 64},
                             {5, 3, 72, 20}, {1, 1, 256, 256}, {2, 1, 258, 258}, {7, 2, 80, 32}};

template <class Kernel>
void check(Kernel kernel, void (*reference)(const RopeArgs*)) {
  std::mt19937 random(9);
  for (const Shape& s : kShapes) {
    const std::size_t row_floats = std::size_t{s.n_heads} * s.head_dim;
    const unsigned half = s.rope_dim / 2;
    const std::vector<float> x = random_floats(random, s.n_rows * row_floats, 4.0f);
    // A table of more rows than x has, used in another order.
    const unsigned n_angles = 2 * s.n_rows + 1;
    const std::vector<float> cos = random_floats(random, std::size_t{n_angles} * half, 1.0f);
    const std::vector<float> sin = random_floats(random, std::size_t{n_angles} * half, 1.0f);
    std::vector<unsigned> positions;
    for (unsigned r = 0; r < s.n_rows; ++r) positions.push_back(n_angles - 1 - 2 * r);
    std::vector<float> expected = x;
    for (unsigned r = 0; r < s.n_rows; ++r) {
      const RopeArgs args{expected.data() + r * row_floats,
                          s.n_heads,
                          s.head_dim,
                          s.rope_dim,
                          cos.data() + std::size_t{positions[r]} * half,
                          sin.data() + std::size_t{positions[r]} * half};
      reference(&args);
    }
    const std::size_t pairs = std::size_t{s.n_rows} * s.n_heads * half;
    for (const auto order : kOrders) {
      std::vector<float> y = x;
      launch_rows(blocks_for(pairs, device::kRowThreads), device::kRowThreads, order, [&] {
        kernel(y.data(), cos.data(), sin.data(), positions.data(), s.n_rows, s.n_heads, s.head_dim,
               s.rope_dim);
      });
      CAPTURE(s.n_rows);
      CAPTURE(s.head_dim);
      CAPTURE(s.rope_dim);
      CHECK(same_bits(expected, y));
    }
  }
}

}  // namespace

TEST_CASE("the kernel that rotates adjacent pairs equals the scalar reference bit for bit") {
  check(device::detrun_rope_adjacent, scalar::kOps.rope_adjacent);
}

TEST_CASE("the kernel that rotates halves equals the scalar reference bit for bit") {
  check(device::detrun_rope_halves, scalar::kOps.rope_halves);
}

}  // namespace detrun
