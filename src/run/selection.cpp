// See selection.h. Times are compared as numbers; no clock but the caller's is read.
#include "run/selection.h"

#include <algorithm>
#include <array>

#include "detrun/digest.h"
#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun {
namespace {

constexpr std::uint64_t kHundredPercent = 100'000'000'000;  ///< 100 with 9 decimals
constexpr std::uint32_t kShardsMax = 1'000'000;
constexpr std::int64_t kDayMs = 86'400'000;

std::string quoted(std::string_view text) { return "'" + escape_for_terminal(text) + "'"; }

/// The first eight bytes of a digest. Its parts are framed, so no two messages are the same bytes.
std::uint64_t hash_of(std::string_view domain, std::uint64_t number, std::string_view id) {
  Sha256 hash;
  hash.update_part(domain).update_u64(number).update_part(id);
  const Sha256Digest digest = hash.finish();
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | digest.at(static_cast<std::size_t>(i));
  return value;
}

/// Takes `n` digits off the front; -1 when they are not there.
std::int64_t take_digits(std::string_view& text, std::size_t n) {
  const std::string_view digits = text.substr(0, n);
  const bool all =
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits.size() != n || !all) return -1;
  text.remove_prefix(n);
  return parse_i64(digits).value_or(-1);
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// Days from 1970-01-01 in the Gregorian calendar; counted in eras of 400 years that begin in
/// March.
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::int64_t y = year - (month <= 2 ? 1 : 0);
  const std::int64_t era = y / 400, of_era = y % 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

std::int64_t days_in(std::int64_t year, std::int64_t month) {
  constexpr std::array<std::int64_t, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return kDays.at(static_cast<std::size_t>(month - 1)) + (month == 2 && leap ? 1 : 0);
}

/// "T21:12:30.123" as milliseconds; what is left of `text` is the zone.
std::optional<std::int64_t> take_time(std::string_view& text) {
  if (!take(text, 'T') && !take(text, ' ')) return std::nullopt;
  const std::int64_t hour = take_digits(text, 2);
  if (hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
  const std::int64_t minute = take_digits(text, 2);
  if (minute < 0 || minute > 59) return std::nullopt;
  std::int64_t ms = (hour * 60 + minute) * 60'000;
  if (!take(text, ':')) return ms;
  const std::int64_t second = take_digits(text, 2);
  if (second < 0 || second > 59) return std::nullopt;
  ms += second * 1000;
  if (!take(text, '.')) return ms;
  std::int64_t unit = 100, n_digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++n_digits, unit /= 10) {
    ms += (text.front() - '0') * unit;
    text.remove_prefix(1);
  }
  return n_digits > 0 ? std::optional(ms) : std::nullopt;
}

/// "2h" as milliseconds.
std::optional<std::int64_t> parse_duration(std::string_view text) {
  struct Unit {
    char letter;
    std::int64_t ms;
  };
  constexpr std::array kUnits = {Unit{'s', 1000}, Unit{'m', 60'000}, Unit{'h', 3'600'000},
                                 Unit{'d', kDayMs}, Unit{'w', 7 * kDayMs}};
  if (text.empty()) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (text.back() != unit.letter) continue;
    const auto count = parse_u64(text.substr(0, text.size() - 1));
    if (!count || *count > 1'000'000'000) return std::nullopt;
    return static_cast<std::int64_t>(*count) * unit.ms;
  }
  return std::nullopt;
}

void read_shard(std::string_view text, RunFilter& filter) {
  const std::size_t slash = text.find('/');
  const auto i = parse_u64(text.substr(0, slash));
  const auto n = slash == std::string_view::npos ? std::nullopt : parse_u64(text.substr(slash + 1));
  if (!i || !n || *i < 1 || *i > *n || *n > kShardsMax) {
    throw_usage("--shard: expected I/N with I from 1 to N, found " + quoted(text),
                "--shard 1/4 is the first of four parts");
  }
  filter.shard = static_cast<std::uint32_t>(*i - 1);
  filter.n_shards = static_cast<std::uint32_t>(*n);
}

bool has_tags(const RunFilter& filter, const Ledger& ledger, std::int64_t number) {
  return std::all_of(filter.tags.begin(), filter.tags.end(), [&](const auto& tag) {
    return ledger.field(number, "tag." + tag.first) == FieldValue(tag.second);
  });
}

/// A start time that is no time may hide a run from nobody.
bool is_since(const RunFilter& filter, const Ledger& ledger, std::int64_t number) {
  if (!filter.since_ms) return true;
  const std::optional<FieldValue> value = ledger.field(number, field::started_at);
  const auto* text = value ? std::get_if<std::string>(&*value) : nullptr;
  const auto started = text != nullptr ? parse_utc(*text) : std::nullopt;
  return !started || *started >= *filter.since_ms;
}

bool passes(const RunFilter& filter, const Ledger& ledger, const RunRef& run) {
  if (filter.sample_e9 && !in_sample(run.id, *filter.sample_e9, filter.seed)) return false;
  try {
    return has_tags(filter, ledger, run.number) && is_since(filter, ledger, run.number);
  } catch (const Error& error) {
    if (error.kind() != ExitCode::kTampered) throw;
    return true;
  }
}

bool has_filter(const ReplayOptions& options) {
  return !options.tags.empty() || !options.since.empty() || !options.sample.empty();
}

/// What the selectors name, or every run.
Selection named_runs(const ReplayOptions& options, const Ledger& ledger) {
  Selection selection;
  if (options.selectors.empty()) {
    selection.runs = ledger.runs();
    return selection;
  }
  for (const std::string& selector : options.selectors) {
    const std::optional<RunRef> ref = ledger.resolve(selector);
    if (!ref) {
      ReplayRun missing;
      missing.reason = "no run " + quoted(selector) + " in " + ledger.path() +
                       "; detrun list shows what it holds";
      selection.not_found.push_back(std::move(missing));
    } else if (std::none_of(selection.runs.begin(), selection.runs.end(),
                            [&](const RunRef& run) { return run.number == ref->number; })) {
      selection.runs.push_back(*ref);
    }
  }
  return selection;
}

}  // namespace

RunFilter::RunFilter(const ReplayOptions& options, std::int64_t now_ms) {
  for (const std::string& word : options.tags) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw_usage("--tag: expected KEY=VALUE, found " + quoted(word));
    }
    tags.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  if (!options.since.empty()) since_ms = parse_since(options.since, now_ms);
  if (!options.sample.empty()) sample_e9 = parse_percent(options.sample);
  if (options.seed && options.sample.empty()) {
    throw_usage("--seed is given without --sample", "--sample 10% --seed 7");
  }
  seed = options.seed.value_or(0);
  if (!options.shard.empty()) read_shard(options.shard, *this);
}

std::optional<std::int64_t> parse_utc(std::string_view text) {
  const std::int64_t year = take_digits(text, 4);
  if (year < 0 || !take(text, '-')) return std::nullopt;
  const std::int64_t month = take_digits(text, 2);
  if (month < 1 || month > 12 || !take(text, '-')) return std::nullopt;
  const std::int64_t day = take_digits(text, 2);
  if (day < 1 || day > days_in(year, month)) return std::nullopt;
  const std::int64_t date_ms = days_of(year, month, day) * kDayMs;
  if (text.empty()) return date_ms;
  const auto time_ms = take_time(text);
  if (!time_ms) return std::nullopt;
  take(text, 'Z');
  return text.empty() ? std::optional(date_ms + *time_ms) : std::nullopt;
}

std::int64_t parse_since(std::string_view text, std::int64_t now_ms) {
  if (const auto duration = parse_duration(text)) return now_ms - *duration;
  if (const auto time = parse_utc(text)) return *time;
  throw_usage("--since: " + quoted(text) + " is neither a time nor a duration",
              "write 2026-11-29, 2026-11-29T21:12:30Z (UTC), 90s, 30m, 2h, 7d or 2w");
}

std::uint64_t parse_percent(std::string_view text) {
  std::string_view number = text;
  if (number.ends_with('%')) number.remove_suffix(1);
  const std::size_t dot = number.find('.');
  const std::string_view decimals =
      dot == std::string_view::npos ? std::string_view() : number.substr(dot + 1);
  std::string digits(number.substr(0, dot));
  bool valid = !digits.empty() && digits.size() <= 3 && decimals.size() <= 9 &&
               (dot == std::string_view::npos || !decimals.empty());
  digits += std::string(decimals) + std::string(9 - std::min<std::size_t>(9, decimals.size()), '0');
  const auto value = parse_u64(digits);
  valid = valid && value && *value > 0 && *value <= kHundredPercent;
  if (!valid) {
    throw_usage("--sample: expected a share above 0% and up to 100%, at most 9 decimals, found " +
                    quoted(text),
                "--sample 12.5%");
  }
  return *value;
}

bool in_sample(std::string_view id, std::uint64_t percent_e9, std::uint64_t seed) {
  const auto hash = static_cast<unsigned __int128>(hash_of("detrun-sample/1", seed, id));
  return hash * kHundredPercent < static_cast<unsigned __int128>(percent_e9) << 64;
}

std::uint32_t shard_of(std::string_view id, std::uint32_t n_shards) {
  return static_cast<std::uint32_t>(hash_of("detrun-shard/1", 0, id) % n_shards);
}

Selection select_runs(const ReplayOptions& options, const RunFilter& filter, const Ledger& ledger) {
  Selection selection = named_runs(options, ledger);
  const bool none_at_all = selection.runs.empty();
  if (has_filter(options)) {
    std::erase_if(selection.runs, [&](const RunRef& run) { return !passes(filter, ledger, run); });
  }
  const std::size_t before_shard = selection.runs.size();
  std::erase_if(selection.runs, [&](const RunRef& run) {
    return shard_of(run.id, filter.n_shards) != filter.shard;
  });
  if (!selection.runs.empty() || !selection.not_found.empty()) return selection;
  selection.empty_shard = before_shard > 0;
  selection.why_empty = selection.empty_shard ? "shard " + options.shard + " has none of the " +
                                                    std::to_string(before_shard) + " runs selected"
                        : none_at_all ? "nothing to replay: " + ledger.path() + " has no runs"
                                      : "nothing to replay: no run of " + ledger.path() +
                                            " is left by --tag, --since and --sample";
  return selection;
}

}  // namespace detrun
