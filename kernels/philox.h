// Philox4x32-10 and the noise of a token's choice: contract clause 12, the same bits on host and
// device. A counter in, random words out: no state, so no order in which choices have to be made.
// Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
#pragma once

#include "kernels/contract.h"
#include "kernels/math.h"

namespace detrun::kernels {

constexpr int kPhiloxRounds = 10;

/// Replaces the four words of `counter` by the four random words that belong to it and the key.
DETRUN_HD void philox4x32(std::uint32_t (&counter)[4], std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t p = std::uint64_t{0xd2511f53u} * counter[0];
    const std::uint64_t q = std::uint64_t{0xcd9e8d57u} * counter[2];
    const std::uint32_t word0 = static_cast<std::uint32_t>(q >> 32) ^ counter[1] ^ key0;
    const std::uint32_t word2 = static_cast<std::uint32_t>(p >> 32) ^ counter[3] ^ key1;
    counter[0] = word0;
    counter[1] = static_cast<std::uint32_t>(q);
    counter[2] = word2;
    counter[3] = static_cast<std::uint32_t>(p);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
}

/// Gumbel noise of a random word: -log(-log(u)), u in 2^-24 .. 1 - 2^-24 from its upper 23 bits.
/// Between -2.82 and 16.64, always finite.
DETRUN_HD float gumbel_noise(std::uint32_t word) {
  const float u = f32_mul(f32_add(static_cast<float>(word >> 9), 0.5f), 0x1p-23f);  // exact
  return -log32(-log32(u));
}

/// noise(seed, step, id): belongs to the id, whatever other candidates there are.
DETRUN_HD float token_noise(std::uint64_t seed, std::uint64_t step, std::uint32_t id) {
  std::uint32_t words[4] = {id, static_cast<std::uint32_t>(step),
                            static_cast<std::uint32_t>(step >> 32), 0};
  philox4x32(words, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  return gumbel_noise(words[0]);
}

}  // namespace detrun::kernels
