// The PCRE2 side of regex.h: handles, limits and error codes.
#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <new>

#include "detrun/error.h"

namespace detrun {
namespace {

// Patterns of the table need a bounded number of steps a character and depth below 10; the limits
// only stop a pattern that would need more.
constexpr std::uint64_t kStepsAtLeast = 1'000'000;
constexpr std::uint64_t kStepsPerByte = 64;
constexpr std::uint32_t kDepthMax = 1000;
constexpr std::uint32_t kHeapMaxKib = 64 * 1024;

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string describe(int code) {
  std::array<PCRE2_UCHAR, 120> text{};
  const int length = pcre2_get_error_message(code, text.data(), text.size());
  return std::string(text.begin(), text.begin() + std::max(length, 0));
}

}  // namespace

struct Regex::State {
  std::unique_ptr<pcre2_code, Free> code;
};

Regex::Regex(const std::string& pattern) : state_(std::make_unique<State>()) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::basic_string<PCRE2_UCHAR> units(pattern.begin(), pattern.end());
  state_->code.reset(pcre2_compile(units.data(), units.size(),
                                   PCRE2_DOLLAR_ENDONLY | PCRE2_DOTALL | PCRE2_NEVER_UTF, &error,
                                   &offset, nullptr));
  DETRUN_CHECK(state_->code != nullptr);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::optional<RegexMatch> Regex::search(std::string_view subject, std::size_t from) const {
  const std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) throw std::bad_alloc();
  const std::uint64_t steps = kStepsAtLeast + kStepsPerByte * subject.size();
  pcre2_set_match_limit(context.get(),
                        static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, UINT32_MAX)));
  pcre2_set_depth_limit(context.get(), kDepthMax);
  pcre2_set_heap_limit(context.get(), kHeapMaxKib);
  const int found = pcre2_match(state_->code.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()),
                                subject.size(), from, 0, data.get(), context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw_internal("splitting a text of " + std::to_string(subject.size()) +
                   " characters into words failed: " + describe(found));
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.get());
  return RegexMatch{bounds[0], bounds[1]};
}

}  // namespace detrun
