// Weights that are made up on the device, emulated: those that loading the same bytes gives.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "../../parity/inputs.h"
#include "detrun/backend.h"
#include "detrun/error.h"
#include "detrun/quant.h"

namespace {

using namespace detrun;

struct Shape {
  std::uint64_t k, n;
};

std::vector<Shape> shapes_of(std::uint32_t id) {
  const std::uint64_t block = qtype_info(QType{id}).block_elems;
  if (block > 1) return {{block, 37}, {5 * block, 3}};
  if (id == 1)
    return {{45, 37}, {64, 3}, {1027, 2060}};  // the last: more than the grid has threads
  return {{45, 37}, {64, 3}};
}

/// All elements of a matrix.
std::vector<float> values_of(Backend& backend, const Weight& weight, const Shape& shape) {
  std::vector<std::int32_t> rows(shape.n);
  std::iota(rows.begin(), rows.end(), 0);
  const auto out = backend.new_buffer(shape.n * shape.k);
  backend.embed(weight, rows, *out);
  std::vector<float> values(out->n_floats());
  backend.download(*out, 0, values);
  return values;
}

}  // namespace

TEST_CASE("a weight made up on the device is the one that loading its bytes gives") {
  const auto device = make_cuda_backend({});
  std::vector<std::uint32_t> ids{0, 1, 30};
  for (const parity::BlockShape& shape : parity::block_shapes()) ids.push_back(shape.gguf_id);
  std::size_t made = 0;
  for (const std::uint32_t id : ids) {
    const QType type{id};
    CHECK(device->makes_up(type) == can_make_up(type));
    for (const Shape& shape : shapes_of(id)) {
      CAPTURE(id);
      CAPTURE(shape.k);
      const std::size_t n_bytes = shape.n * *row_bytes(qtype_info(type), shape.k);
      const std::vector<std::byte> unread(n_bytes, std::byte{0xFF});  // refused in a file
      const WeightView view{"w", type, shape.k, shape.n, unread};
      if (!can_make_up(type)) {
        CHECK(device->make_up_weight(view, 9) == nullptr);
        continue;
      }
      ++made;
      std::vector<std::byte> bytes(n_bytes);
      make_up_blocks(type, 9, 0, bytes);
      const auto loaded = device->load_weight({"w", type, shape.k, shape.n, bytes});
      const std::vector<float> expected = values_of(*device, *loaded, shape);
      const std::vector<float> found = values_of(*device, *device->make_up_weight(view, 9), shape);
      CHECK_SAME_BITS(found, expected, expected.size() / 2);
      CHECK(values_of(*device, *device->make_up_weight(view, 10), shape) != expected);
    }
  }
  CHECK(made == 2 * 11 + 1);
}

TEST_CASE("a matrix that cannot be made up is refused as at load; the processor makes none") {
  const auto device = make_cuda_backend({});
  const WeightView wrong{"w", QType::kQ8_0, 45, 1, {}};
  CHECK_THROWS_AS(device->make_up_weight(wrong, 1), Error);
  const auto cpu = make_cpu_backend({1, "scalar"});
  CHECK(!cpu->makes_up(QType::kQ8_0));
  CHECK(cpu->make_up_weight(wrong, 1) == nullptr);
}
