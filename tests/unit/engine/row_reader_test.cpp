// Rows in, findings out: the same whether a thread beside reads them or the caller, in order, and
// bounded.
#include "engine/row_reader.h"

#include <doctest/doctest.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <vector>

#include "detrun/backend.h"
#include "detrun/engine.h"

using namespace detrun;

namespace {

constexpr std::uint32_t kNarrow = 16;    ///< read by the caller
constexpr std::uint32_t kWide = 20'000;  ///< read by a thread

/// A row that no other number gives.
void fill_row(std::span<float> row, std::uint64_t number) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<float>((i * 7919 + number * 104729) % 5003) * 0.01F;
  }
}

RowFinding expected(std::uint32_t n_vocab, std::uint64_t number) {
  std::vector<float> row(n_vocab);
  fill_row(row, number);
  const FpControlScope fp_control;
  return {std::nullopt, choose_greedy(row), hash_logits(row)};
}

bool equal(const RowFinding& a, const RowFinding& b) {
  return a.not_finite == b.not_finite && a.choice.token == b.choice.token &&
         a.choice.margin_bits == b.choice.margin_bits &&
         a.choice.logprob_bits == b.choice.logprob_bits && a.xxh3 == b.xxh3;
}

void hand_over(RowReader& reader, std::uint32_t n_vocab, std::uint64_t first, std::uint32_t n) {
  const std::span<float> room = reader.room(n);
  REQUIRE(room.size() == std::size_t{n} * n_vocab);
  for (std::uint32_t i = 0; i < n; ++i) {
    fill_row(room.subspan(std::size_t{i} * n_vocab, n_vocab), first + i);
  }
  reader.filled();
}

}  // namespace

TEST_CASE("a wide row is read by a thread beside, a narrow one by the caller") {
  CHECK_FALSE(RowReader(kNarrow, 1, 2).reads_beside());
  CHECK(RowReader(kWide, 1, 2).reads_beside());
  CHECK(RowReader(300, 64, 128).reads_beside());
}

TEST_CASE("findings come in the order of the rows, whoever reads and however many at once") {
  for (const std::uint32_t n_vocab : {kNarrow, kWide}) {
    for (const std::uint32_t block : {1U, 3U}) {
      CAPTURE(n_vocab);
      CAPTURE(block);
      RowReader reader(n_vocab, block, 7);
      std::uint64_t in = 0, out = 0;
      while (out < 60) {
        while (reader.pending() + block <= 7) {
          hand_over(reader, n_vocab, in, block);
          in += block;
        }
        CHECK(equal(reader.take(), expected(n_vocab, out++)));
        CHECK(reader.pending() == in - out);
      }
    }
  }
}

TEST_CASE("the rows handed over last can be looked at while they are read") {
  RowReader reader(kWide, 2, 8);
  hand_over(reader, kWide, 0, 2);
  hand_over(reader, kWide, 2, 1);
  std::vector<float> row(kWide);
  fill_row(row, 2);
  CHECK(std::equal(row.begin(), row.end(), reader.last_rows().begin(), reader.last_rows().end()));
}

TEST_CASE("a row that is not finite has no choice, and the rows around it have theirs") {
  for (const std::uint32_t n_vocab : {kNarrow, kWide}) {
    RowReader reader(n_vocab, 3, 3);
    const std::span<float> room = reader.room(3);
    for (std::uint32_t i = 0; i < 3; ++i) {
      fill_row(room.subspan(std::size_t{i} * n_vocab, n_vocab), i);
    }
    room[n_vocab + 9] = std::nanf("");
    room[n_vocab + 11] = HUGE_VALF;
    reader.filled();
    CHECK(equal(reader.take(), expected(n_vocab, 0)));
    CHECK(reader.take().not_finite == 9);
    CHECK(equal(reader.take(), expected(n_vocab, 2)));
  }
}

TEST_CASE("a reader may be given up with rows that nobody took") {
  for (int i = 0; i < 50; ++i) {
    RowReader reader(kWide, 1, 4);
    for (int row = 0; row < i % 4; ++row) hand_over(reader, kWide, 0, 1);
  }
}

#if defined(__x86_64__)
TEST_CASE("a thread started where subnormals are off makes the same choice") {
  const auto choice_with = [](std::uint32_t n_vocab, unsigned control) {
    const unsigned kept = _mm_getcsr();
    _mm_setcsr(control);
    RowReader reader(n_vocab, 1, 2);
    const std::span<float> room = reader.room(1);
    _mm_setcsr(kept);
    for (std::size_t i = 0; i < room.size(); ++i) room[i] = i == 5 ? 4e-40F : 1e-40F;
    reader.filled();
    return reader.take();
  };
  for (const std::uint32_t n_vocab : {kNarrow, kWide}) {
    const RowFinding normal = choice_with(n_vocab, 0x1f80);
    CHECK(normal.choice.token == 5);
    CHECK(equal(choice_with(n_vocab, 0x9fc0), normal));  // FTZ and DAZ
    CHECK(equal(choice_with(n_vocab, 0x7f80), normal));  // another rounding
  }
}
#endif
