// Which runs a replay takes. Sample and shard are pure functions of the run ids: what one machine
// takes another one leaves, whatever else the ledger holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/ledger.h"
#include "detrun/run.h"

namespace detrun {

/// The filters of ReplayOptions, read. Errors kUsage name the option.
struct RunFilter {
  explicit RunFilter(const ReplayOptions& options, std::int64_t now_ms);

  std::vector<std::pair<std::string, std::string>> tags;
  std::optional<std::int64_t> since_ms;    ///< Unix time
  std::optional<std::uint64_t> sample_e9;  ///< percent times 10^9
  std::uint64_t seed = 0;
  std::uint32_t shard = 0, n_shards = 1;  ///< shard < n_shards
};

/// "2026-11-29", "2026-11-29T21:12", "2026-11-29T21:12:30.5Z" (UTC), or "90s", "2h", "7d" before
/// `now_ms`. Error kUsage.
std::int64_t parse_since(std::string_view text, std::int64_t now_ms);
/// Unix time of RFC 3339 UTC as utc_timestamp writes it, and of its shorter forms; nullopt for
/// anything else.
std::optional<std::int64_t> parse_utc(std::string_view text);
/// "12.5%" or "12.5": percent times 10^9. Error kUsage: not above 0 and at most 100, or more than 9
/// decimals.
std::uint64_t parse_percent(std::string_view text);

/// True for about the given share of all ids: each on its own, by SHA-256 of seed and id.
bool in_sample(std::string_view id, std::uint64_t percent_e9, std::uint64_t seed);
/// The one of n shards that an id belongs to, from 0, by SHA-256 of the id.
std::uint32_t shard_of(std::string_view id, std::uint32_t n_shards);

struct Selection {
  std::vector<RunRef> runs;          ///< each once, in the order given, or by number
  std::vector<ReplayRun> not_found;  ///< selectors that no run answers to
  std::string why_empty;             ///< when there is neither
  bool empty_shard = false;          ///< other shards have the runs
};
/// Errors of a bad selector as Ledger::resolve. A run whose tags or time cannot be read is taken:
/// its replay says why.
Selection select_runs(const ReplayOptions& options, const RunFilter& filter, const Ledger& ledger);

}  // namespace detrun
