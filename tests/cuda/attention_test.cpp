// Attention kernels, emulated: the split form and the streamed form, bit-equal to the scalar
// reference. Positions that a row may not see hold NaN wherever no other row needs them.
#include "kernels/cuda/attention.cuh"

#include <algorithm>
#include <limits>

#include "kernels/cpu/ops.h"
#include "tests/cuda/row_support.h"

namespace detrun {
namespace {

using namespace detrun::kernels;
using namespace detrun::cuda_test;

struct Shape {
  unsigned head_dim = 8;
  unsigned n_heads = 2;
  unsigned n_kv_heads = 1;
  unsigned n_queries = 1;
  unsigned position = 0;  // of query 0
  unsigned window = 0;    // 0: none
  float softcap = 0.0f;
  bool sinks = false;
};

// One case: K and V of type Element, (kv head, position, stride) with NaN between the vectors.
template <class Element>
struct Problem {
  Shape shape;
  std::vector<float> q, sinks;
  std::vector<Element> k, v;
  std::vector<unsigned> first_visible, n_visible;
  unsigned n_positions;  // with the NaN behind the last
  unsigned stride;
};

float narrow(float value, float /*type*/) { return value; }
std::uint16_t narrow(float value, std::uint16_t /*type*/) { return f32_to_f16(value); }

template <class Element>
Problem<Element> make_problem(const Shape& shape, std::mt19937& random) {
  Problem<Element> p{shape, {}, {}, {}, {}, {}, {}, 0, 0};
  p.q = random_floats(random, std::size_t{shape.n_queries} * shape.n_heads * shape.head_dim, 3.0f);
  p.sinks = random_floats(random, shape.n_heads, 4.0f);
  unsigned first = std::numeric_limits<unsigned>::max();
  for (unsigned r = 0; r < shape.n_queries; ++r) {
    const unsigned n = shape.position + r + 1;
    p.n_visible.push_back(n);
    p.first_visible.push_back(shape.window != 0 && n > shape.window ? n - shape.window : 0);
    first = std::min(first, p.first_visible.back());
  }
  p.n_positions = p.n_visible.back() + 70;
  p.stride = (shape.head_dim + 7) / 8 * 8 + 8;
  const std::size_t n = std::size_t{shape.n_kv_heads} * p.n_positions * p.stride;
  const Element nan = narrow(std::numeric_limits<float>::quiet_NaN(), Element{});
  for (auto* part : {&p.k, &p.v}) {
    part->assign(n, nan);
    for (unsigned h = 0; h < shape.n_kv_heads; ++h) {
      for (unsigned at = first; at < p.n_visible.back(); ++at) {
        const std::vector<float> row = random_floats(random, shape.head_dim, 1.0f);
        for (unsigned d = 0; d < shape.head_dim; ++d) {
          (*part)[(std::size_t{h} * p.n_positions + at) * p.stride + d] = narrow(row[d], Element{});
        }
      }
    }
  }
  return p;
}

constexpr float kScale = 0.35355338f;

template <class Element>
std::vector<float> reference(const Problem<Element>& p) {
  const Shape& shape = p.shape;
  std::vector<float> out(p.q.size());
  std::vector<float> scratch(scalar::kOps.attention_scratch_floats(shape.head_dim));
  for (unsigned r = 0; r < shape.n_queries; ++r) {
    for (unsigned h = 0; h < shape.n_heads; ++h) {
      const std::size_t at = (std::size_t{r} * shape.n_heads + h) * shape.head_dim;
      const std::size_t kv = std::size_t{h / (shape.n_heads / shape.n_kv_heads)} * p.n_positions;
      AttentionArgs args{};
      args.q = p.q.data() + at;
      args.k = p.k.data() + kv * p.stride;
      args.v = p.v.data() + kv * p.stride;
      args.stride = p.stride;
      args.head_dim = shape.head_dim;
      args.n_visible = p.n_visible[r];
      args.first_visible = p.first_visible[r];
      args.scale = kScale;
      args.softcap = shape.softcap;
      args.sink = shape.sinks ? &p.sinks[h] : nullptr;
      args.scratch = scratch.data();
      args.out = out.data() + at;
      (sizeof(Element) == 2 ? scalar::kOps.attention_f16 : scalar::kOps.attention_f32)(&args);
    }
  }
  return out;
}

template <class Element>
cuda::AttentionInput input_of(const Problem<Element>& p) {
  const Shape& shape = p.shape;
  cuda::AttentionInput in{};
  in.q = p.q.data();
  in.k = p.k.data();
  in.v = p.v.data();
  in.position_stride = p.stride;
  in.head_stride = std::size_t{p.n_positions} * p.stride;
  in.first_visible = p.first_visible.data();
  in.n_visible = p.n_visible.data();
  in.n_queries = shape.n_queries;
  in.n_heads = shape.n_heads;
  in.n_kv_heads = shape.n_kv_heads;
  in.head_dim = shape.head_dim;
  in.first_block = p.first_visible[0] / kKvBlock;
  in.n_blocks = (p.n_visible.back() - 1) / kKvBlock + 1 - in.first_block;
  in.scale = kScale;
  in.softcap = shape.softcap;
  in.sinks = shape.sinks ? p.sinks.data() : nullptr;
  return in;
}

using BlocksKernel = void (*)(cuda::AttentionInput, float*, float*);
using StreamKernel = void (*)(cuda::AttentionInput, float*);
BlocksKernel blocks_kernel(std::uint16_t /*type*/) { return device::detrun_attention_blocks_f16; }
BlocksKernel blocks_kernel(float /*type*/) { return device::detrun_attention_blocks_f32; }
StreamKernel stream_kernel(std::uint16_t /*type*/) { return device::detrun_attention_stream_f16; }
StreamKernel stream_kernel(float /*type*/) { return device::detrun_attention_stream_f32; }

template <class Element>
void check_problem(const Problem<Element>& p) {
  const std::vector<float> expected = reference(p);
  const cuda::AttentionInput in = input_of(p);
  const unsigned heads = in.n_queries * in.n_heads;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto order : kOrders) {
    std::vector<float> states(std::size_t{heads} * in.n_blocks * 2, nan);
    std::vector<float> values(std::size_t{heads} * in.n_blocks * in.head_dim, nan);
    std::vector<float> split(p.q.size(), nan), streamed(p.q.size(), nan);
    CHECK(emulation::launch({heads, in.n_blocks, 1}, {device::kAttentionThreads, 1, 1}, order, [&] {
            blocks_kernel(Element{})(in, states.data(), values.data());
          }) == "");
    launch_rows(heads, device::kAttentionThreads, order, [&] {
      device::detrun_attention_merge(in, states.data(), values.data(), split.data());
    });
    launch_rows(heads, device::kAttentionThreads, order,
                [&] { stream_kernel(Element{})(in, streamed.data()); });
    CHECK(same_bits(expected, split));
    CHECK(same_bits(expected, streamed));
  }
}

void check(const Shape& shape) {
  CAPTURE(shape.head_dim);
  CAPTURE(shape.n_kv_heads);
  CAPTURE(shape.position);
  CAPTURE(shape.n_queries);
  CAPTURE(shape.window);
  CAPTURE(shape.softcap);
  CAPTURE(shape.sinks);
  std::mt19937 random(shape.head_dim * 1000 + shape.position * 10 + shape.window);
  check_problem(make_problem<std::uint16_t>(shape, random));
  check_problem(make_problem<float>(shape, random));
}

}  // namespace

TEST_CASE("the attention kernels equal the scalar reference for every head size") {
  for (const unsigned head_dim : {2u, 4u, 6u, 8u, 64u, 72u, 80u, 96u, 112u, 128u, 130u, 256u}) {
    check({.head_dim = head_dim, .n_heads = 2, .position = 66});
  }
}

TEST_CASE("the attention kernels equal the scalar reference around every edge of a block") {
  for (const unsigned n : {1u, 2u, 31u, 32u, 33u, 63u, 64u, 65u, 97u, 127u, 128u, 129u, 200u}) {
    check({.head_dim = 10, .position = n - 1});
  }
}

TEST_CASE("query heads read the kv head of their group") {
  check({.head_dim = 16, .n_heads = 3, .n_kv_heads = 3, .position = 40});
  check({.head_dim = 16, .n_heads = 9, .n_kv_heads = 3, .n_queries = 2, .position = 70});
  check({.head_dim = 4, .n_heads = 5, .n_kv_heads = 1, .position = 3});
}

TEST_CASE("rows of a chunk see up to their own position, at any edge inside a block") {
  for (const unsigned position : {0u, 3u, 60u, 63u, 64u, 125u}) {
    check({.head_dim = 12, .n_heads = 1, .n_queries = 6, .position = position});
  }
}

TEST_CASE("a window hides what lies before it, inside a block and whole blocks") {
  for (const unsigned window : {1u, 2u, 5u, 33u, 63u, 64u, 65u, 100u}) {
    check({.head_dim = 6, .n_heads = 1, .n_queries = 4, .position = 126, .window = window});
    check({.head_dim = 6, .n_heads = 1, .n_queries = 2, .position = 190, .window = window});
  }
}

TEST_CASE("a score of -infinity beside finite ones has the weight 0") {
  std::mt19937 random(41);
  Problem<float> p = make_problem<float>({.n_heads = 1, .position = 99}, random);
  p.q[0] = 0x1p100f;
  for (unsigned at = 0; at < 100; ++at) {
    p.k[std::size_t{at} * p.stride] = at % 3 == 0 ? -0x1p100f : 0x1p-101f;
  }
  check_problem(p);
}

TEST_CASE("an output that rounds to -0 becomes +0") {
  std::mt19937 random(42);
  Problem<float> p = make_problem<float>({.n_heads = 1, .position = 1}, random);
  std::fill(p.q.begin(), p.q.end(), 0.0f);  // two equal scores: l = 2
  p.v[3] = -0x1p-149f;
  p.v[p.stride + 3] = 0.0f;
  REQUIRE(f32_bits(reference(p)[3]) == 0);
  check_problem(p);
}

TEST_CASE("soft cap and sinks are applied as the reference applies them") {
  for (const unsigned position : {0u, 40u, 64u, 130u}) {
    check({.n_queries = 2, .position = position, .softcap = 1.5f});
    check({.n_queries = 2, .position = position, .sinks = true});
    check({.n_queries = 2, .position = position, .window = 70, .softcap = 0.8f, .sinks = true});
  }
}

}  // namespace detrun
