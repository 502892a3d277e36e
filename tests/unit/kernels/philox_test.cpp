// Philox4x32-10 against the known answers of its authors, and the noise made of it.
#include "kernels/philox.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

namespace {

using namespace detrun::kernels;

struct KnownAnswer {
  std::uint32_t counter[4];
  std::uint32_t key[2];
  std::uint32_t words[4];
};

TEST_CASE("Philox4x32-10 gives the known answers of the Random123 library") {
  constexpr KnownAnswer kAnswers[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
      {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
       {0xffffffffu, 0xffffffffu},
       {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
      {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
       {0xa4093822u, 0x299f31d0u},
       {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
  };
  for (const KnownAnswer& answer : kAnswers) {
    std::uint32_t words[4];
    for (int i = 0; i < 4; ++i) words[i] = answer.counter[i];
    philox4x32(words, answer.key[0], answer.key[1]);
    for (int i = 0; i < 4; ++i) CHECK(words[i] == answer.words[i]);
  }
}

TEST_CASE("noise takes seed, step and id whole, each in its own place") {
  const auto by_hand = [](std::uint32_t id, std::uint32_t step_low, std::uint32_t step_high,
                          std::uint32_t seed_low, std::uint32_t seed_high) {
    std::uint32_t words[4] = {id, step_low, step_high, 0};
    philox4x32(words, seed_low, seed_high);
    return f32_bits(gumbel_noise(words[0]));
  };
  CHECK(f32_bits(token_noise(0x1111111122222222ull, 0x3333333344444444ull, 55)) ==
        by_hand(55, 0x44444444u, 0x33333333u, 0x22222222u, 0x11111111u));
  CHECK(f32_bits(token_noise(0, 0, 0)) == by_hand(0, 0, 0, 0, 0));
}

TEST_CASE("noise has the bits of the contract at the ends of its range") {
  // word 0: u = 2^-24; the largest word: u = 1 - 2^-24. The lower nine bits do not count.
  CHECK(f32_bits(gumbel_noise(0)) == f32_bits(gumbel_noise(0x1ff)));
  CHECK(f32_bits(gumbel_noise(0)) == f32_bits(-log32(-log32(0x1p-24f))));
  CHECK(f32_bits(gumbel_noise(0xffffffffu)) == f32_bits(-log32(-log32(1.0f - 0x1p-24f))));
  CHECK(f32_bits(gumbel_noise(0x200)) == f32_bits(-log32(-log32(3 * 0x1p-24f))));
  CHECK(gumbel_noise(0) < -2.81f);
  CHECK(gumbel_noise(0xffffffffu) > 16.6f);
  CHECK(f32_bits(token_noise(0, 0, 0)) == 0x3dadb63fu);  // word 0x6627e8d5
}

TEST_CASE("noise is Gumbel: mean and variance over 100000 ids") {
  double sum = 0;
  double squares = 0;
  constexpr std::uint32_t kIds = 100000;
  for (std::uint32_t id = 0; id < kIds; ++id) {
    const double g = token_noise(42, 7, id);
    sum += g;
    squares += g * g;
  }
  const double mean = sum / kIds;
  // Three standard errors: the deviation of one is 1.28, that of its square about 3.6.
  CHECK(std::fabs(mean - 0.5772156649) < 3 * 1.28 / std::sqrt(kIds));
  CHECK(std::fabs(squares / kIds - mean * mean - 1.6449340668) < 0.035);
}

}  // namespace
