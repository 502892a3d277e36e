// Penalties, computed by hand, and the parameters that are refused.
#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "detrun/error.h"
#include "detrun/sampler.h"

namespace {

using namespace detrun;

using History = std::vector<std::int32_t>;

/// Greedy after penalties: what was penalized shows in who is the largest.
std::int32_t choose(const SamplerParams& params, const std::vector<float>& logits,
                    const History& history) {
  Sampler sampler(params, static_cast<std::uint32_t>(logits.size()));
  return sampler.choose(logits, 0, history).token;
}

}  // namespace

TEST_CASE("penalties follow the contract by hand") {
  SamplerParams params;
  params.repeat_penalty = 2.0f;
  params.frequency_penalty = 0.5f;
  params.presence_penalty = 0.25f;
  // id 0, twice: 2 / 2 - (2 * 0.5 + 0.25) = -0.25; id 1, once: -2 * 2 - 0.75 = -4.75.
  const History history = {0, 1, 0};
  CHECK(choose(params, {2.0f, -2.0f, -0.24f}, history) == 2);
  CHECK(choose(params, {2.0f, -2.0f, -0.25f}, history) == 0);
  CHECK(choose(params, {-9.0f, -2.0f, -4.74f}, history) == 2);
  CHECK(choose(params, {-9.0f, -2.0f, -4.75f}, history) == 1);
  // Zero is not above zero: it is multiplied, and stays zero.
  params.frequency_penalty = params.presence_penalty = 0.0f;
  CHECK(choose(params, {0.0f, -1.0f}, {0}) == 0);
}

TEST_CASE("each penalty alone, and only the last tokens count") {
  SamplerParams params;
  params.penalty_last = 2;
  params.presence_penalty = 1.0f;
  CHECK(choose(params, {2.0f, 1.5f}, {0, 1, 1}) == 0);  // the 0 is three tokens ago
  CHECK(choose(params, {2.0f, 1.5f}, {1, 0, 0}) == 1);  // taken off once: 1
  CHECK(choose(params, {2.0f, 0.5f}, {1, 0, 0}) == 0);
  params.presence_penalty = 0.0f;
  params.frequency_penalty = 1.0f;
  CHECK(choose(params, {2.0f, 0.5f}, {1, 0, 0}) == 1);  // taken off twice: 0
  params.frequency_penalty = -1.0f;
  CHECK(choose(params, {1.0f, 1.5f}, {0}) == 0);
  params.frequency_penalty = 0.0f;
  params.repeat_penalty = 4.0f;
  CHECK(choose(params, {2.0f, 0.6f}, {0}) == 1);
  params.penalty_last = 0;
  CHECK(choose(params, {2.0f, 0.6f}, {0}) == 0);
}

TEST_CASE(
    "a penalty that overflows a logit is an error that names the token, and leaves no trace") {
  SamplerParams params;
  params.repeat_penalty = 1e-30f;
  Sampler sampler(params, 3);
  try {
    sampler.choose(std::vector<float>{1.0f, 2.0f, 1e20f}, 0, History{0, 2, 2});
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kInternal);
    CHECK(std::string(error.what()).find("token id 2") != std::string::npos);
  }
  CHECK(sampler.choose(std::vector<float>{1.0f, 2.0f, 3.0f}, 0, History{}).token == 2);
}

TEST_CASE("parameters out of their range are refused by name") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto refused = [](float SamplerParams::*field, std::initializer_list<float> values,
                          const std::string& name) {
    for (const float value : values) {
      CAPTURE(value);
      SamplerParams params;
      params.*field = value;
      try {
        Sampler sampler(params, 10);
        FAIL("not refused");
      } catch (const Error& error) {
        CHECK(error.kind() == ExitCode::kUsage);
        CHECK(std::string(error.what()).find(name) != std::string::npos);
      }
    }
  };
  refused(&SamplerParams::temperature, {-1.0f, -1e-40f, kInf, kNan}, "temperature");
  refused(&SamplerParams::typical_p, {-0.1f, 1.1f, kNan}, "typical-p");
  refused(&SamplerParams::top_p, {-0.1f, 1.1f, kInf, kNan}, "top-p");
  refused(&SamplerParams::min_p, {-0.1f, 1.1f, kNan}, "min-p");
  refused(&SamplerParams::repeat_penalty, {0.0f, -1.0f, kInf, kNan}, "repeat");
  refused(&SamplerParams::frequency_penalty, {kInf, -kInf, kNan}, "frequency");
  refused(&SamplerParams::presence_penalty, {kInf, kNan}, "presence");
}
