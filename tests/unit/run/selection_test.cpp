// Which runs a replay takes: filters, times, shares, shards.
#include "run/selection.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "detrun/text.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::thrown_by;

constexpr std::int64_t kNow = 1'764'450'750'123;  // 2025-11-29T21:12:30.123Z

std::vector<std::string> many_ids(int n) {
  std::vector<std::string> ids;
  for (int i = 0; i < n; ++i) ids.push_back(uuid_v7(kNow + i));
  return ids;
}

TEST_CASE("times are read as UTC, to the millisecond, and nothing else is a time") {
  CHECK(parse_utc("1970-01-01") == 0);
  CHECK(parse_utc("2025-11-29T21:12:30.123Z") == kNow);
  CHECK(parse_utc("2025-11-29 21:12:30.123999") == kNow);
  CHECK(parse_utc("2025-11-29T21:12") == kNow - 30'123);
  CHECK(parse_utc("2000-02-29") == 951'782'400'000);
  CHECK(parse_utc("2024-02-29T23:59:59Z") == 1'709'251'199'000);
  CHECK(parse_utc("9999-12-31") == 253'402'214'400'000);
  for (const std::int64_t ms : {std::int64_t{0}, kNow, std::int64_t{951'782'400'999}}) {
    CHECK(parse_utc(utc_timestamp(ms)) == ms);
  }
  for (const char* text : {"",
                           "2025",
                           "2025-11",
                           "2025-13-01",
                           "2025-00-01",
                           "2025-02-29",
                           "1900-02-29",
                           "2025-11-31",
                           "2025-11-00",
                           "2025-11-29T",
                           "2025-11-29T21",
                           "2025-11-29T24:00",
                           "2025-11-29T21:60",
                           "2025-11-29T21:12:60",
                           "2025-11-29T21:12:30.",
                           "2025-11-29T21:12:30+01:00",
                           "2025-11-29Z",
                           " 2025-11-29",
                           "2025-11-29 ",
                           "25-11-29",
                           "2025-1-2",
                           "2025/11/29",
                           "-025-11-29"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_utc(text).has_value());
  }
}

TEST_CASE("a duration goes back from now") {
  CHECK(parse_since("90s", kNow) == kNow - 90'000);
  CHECK(parse_since("30m", kNow) == kNow - 1'800'000);
  CHECK(parse_since("2h", kNow) == kNow - 7'200'000);
  CHECK(parse_since("7d", kNow) == kNow - 604'800'000);
  CHECK(parse_since("2w", kNow) == kNow - 1'209'600'000);
  CHECK(parse_since("0s", kNow) == kNow);
  CHECK(parse_since("2025-11-29", kNow) == kNow - 76'350'123);
  for (const char* text : {"", "h", "-2h", "2 h", "2H", "1.5h", "2", "2y", "yesterday",
                           "99999999999999999999d", "2000000000d"}) {
    CAPTURE(text);
    CHECK(thrown_by([&] { parse_since(text, kNow); }).kind == ExitCode::kUsage);
  }
}

TEST_CASE("a share is a decimal above 0 and up to 100") {
  CHECK(parse_percent("10%") == 10'000'000'000);
  CHECK(parse_percent("10") == 10'000'000'000);
  CHECK(parse_percent("12.5%") == 12'500'000'000);
  CHECK(parse_percent("0.000000001%") == 1);
  CHECK(parse_percent("100%") == 100'000'000'000);
  CHECK(parse_percent("100.000000000") == 100'000'000'000);
  for (const char* text : {"", "%", "0", "0%", "0.0", "100.000000001", "101", "-1", "+5", "1e1",
                           "5.", ".5", "5%%", "5 %", "0.0000000001", "1,5", "1000", "nan"}) {
    CAPTURE(text);
    CHECK(thrown_by([&] { parse_percent(text); }).kind == ExitCode::kUsage);
  }
}

TEST_CASE("a sample depends on seed and id alone and has about the share asked for") {
  const std::vector<std::string> ids = many_ids(4000);
  const auto taken = [&](std::uint64_t percent_e9, std::uint64_t seed) {
    std::set<std::string> found;
    for (const std::string& id : ids) {
      if (in_sample(id, percent_e9, seed)) found.insert(id);
    }
    return found;
  };
  const auto tenth = taken(10'000'000'000, 7);
  CHECK(tenth.size() > 300);
  CHECK(tenth.size() < 500);
  CHECK(tenth == taken(10'000'000'000, 7));
  CHECK(tenth != taken(10'000'000'000, 8));
  const auto fifth = taken(20'000'000'000, 7);
  CHECK(std::includes(fifth.begin(), fifth.end(), tenth.begin(), tenth.end()));
  CHECK(taken(100'000'000'000, 7).size() == ids.size());
  CHECK(taken(1, 7).empty());
}

TEST_CASE("samples and shards are those of an independent computation, for ever") {
  // SHA-256(u64le(length) domain | u64le(number) | u64le(length) id), first 8 bytes, by Python.
  struct Row {
    char last;
    std::uint64_t percent_below, percent_above;  // with 9 decimals
    std::uint32_t shard;
  };
  for (const Row& row :
       {Row{'0', 5'238'628'240, 5'238'628'241, 1}, Row{'1', 49'235'090'138, 49'235'090'139, 0},
        Row{'2', 66'296'291'719, 66'296'291'720, 3}, Row{'5', 75'126'292'169, 75'126'292'170, 2}}) {
    const std::string id = std::string("0190ab7c-0000-7000-8000-00000000000") + row.last;
    CAPTURE(id);
    CHECK_FALSE(in_sample(id, row.percent_below, 7));
    CHECK(in_sample(id, row.percent_above, 7));
    CHECK(shard_of(id, 4) == row.shard);
  }
}

TEST_CASE("every id is in exactly one shard, and shards are about equally large") {
  const std::vector<std::string> ids = many_ids(4000);
  for (const std::uint32_t n : {1U, 2U, 3U, 4U, 7U, 16U}) {
    std::vector<int> sizes(n);
    for (const std::string& id : ids) {
      const std::uint32_t shard = shard_of(id, n);
      REQUIRE(shard < n);
      ++sizes[shard];
    }
    for (const int size : sizes) {
      CAPTURE(n);
      CHECK(size > 4000 / static_cast<int>(n) * 7 / 10);
    }
  }
}

TEST_CASE("bad filters are usage errors that name the option") {
  struct Row {
    const char* part;
    void (*change)(ReplayOptions&);
  };
  for (const Row& row : {
           Row{"--tag", [](ReplayOptions& o) { o.tags = {"a"}; }},
           Row{"--tag", [](ReplayOptions& o) { o.tags = {"=a"}; }},
           Row{"--since", [](ReplayOptions& o) { o.since = "soon"; }},
           Row{"--sample", [](ReplayOptions& o) { o.sample = "all"; }},
           Row{"--seed", [](ReplayOptions& o) { o.seed = 3; }},
           Row{"--shard", [](ReplayOptions& o) { o.shard = "0/4"; }},
           Row{"--shard", [](ReplayOptions& o) { o.shard = "5/4"; }},
           Row{"--shard", [](ReplayOptions& o) { o.shard = "1"; }},
           Row{"--shard", [](ReplayOptions& o) { o.shard = "1/"; }},
           Row{"--shard", [](ReplayOptions& o) { o.shard = "/4"; }},
           Row{"--shard", [](ReplayOptions& o) { o.shard = "1/0"; }},
           Row{"--shard", [](ReplayOptions& o) { o.shard = "1/2/3"; }},
           Row{"--shard", [](ReplayOptions& o) { o.shard = "1/4000000000"; }},
           Row{"--jobs", [](ReplayOptions& o) { o.jobs = 0; }},
           Row{"--jobs", [](ReplayOptions& o) { o.jobs = 100000; }},
           Row{"no run is given", [](ReplayOptions& o) { o.all = false; }},
       }) {
    CAPTURE(row.part);
    test::Scene scene;
    scene.replay_options.selectors.clear();
    scene.replay_options.all = true;
    row.change(scene.replay_options);
    const test::Thrown error = thrown_by([&] { scene.replay(); });
    CHECK(error.kind == ExitCode::kUsage);
    CHECK(error.says(row.part));
  }
}

/// Four runs: no tag, a=1, a=1 b=2, a=2.
class TaggedScene : public test::Scene {
 public:
  TaggedScene() {
    options.n = 1;
    for (const auto& tags : std::vector<std::vector<std::pair<std::string, std::string>>>{
             {}, {{"a", "1"}}, {{"a", "1"}, {"b", "2"}}, {{"a", "2"}}}) {
      options.tags = tags;
      record();
    }
    replay_options.selectors.clear();
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> found;
    for (const ReplayRun& run : (report = replay()).runs) found.push_back(run.number);
    return found;
  }
  ReplayReport report;
};

using Numbers = std::vector<std::int64_t>;

TEST_CASE("tags are combined by and, with each other and with the other filters") {
  TaggedScene scene;
  scene.replay_options.tags = {"a=1"};
  CHECK(scene.numbers() == Numbers{2, 3});
  scene.replay_options.tags = {"a=1", "b=2"};
  CHECK(scene.numbers() == Numbers{3});
  scene.replay_options.all = true;
  CHECK(scene.numbers() == Numbers{3});
  scene.replay_options.all = false;
  scene.replay_options.tags = {"a=1"};
  scene.replay_options.selectors = {"3", "1"};
  CHECK(scene.numbers() == Numbers{3});
  scene.replay_options.selectors.clear();
  scene.replay_options.since = "1h";
  CHECK(scene.numbers() == Numbers{2, 3});
  scene.replay_options.since = "9999-01-01";
  CHECK(scene.numbers().empty());
  CHECK(scene.report.verdict == Verdict::kInconclusive);
  CHECK(scene.report.reason.find("--since") != std::string::npos);
}

TEST_CASE("since compares the moment a run was started") {
  TaggedScene scene;
  const std::string third = *field_text(scene.read(3).fields, field::started_at);
  scene.replay_options.since = third;
  const Numbers from_third = scene.numbers();
  CHECK(std::find(from_third.begin(), from_third.end(), 3) != from_third.end());
  CHECK(std::find(from_third.begin(), from_third.end(), 4) != from_third.end());
  RunRecord forged = scene.read(1);
  forged.fields.insert_or_assign(std::string(field::started_at), FieldValue("never"));
  scene.forge(forged);
  scene.replay_options.since = "9999-01-01";
  CHECK(scene.numbers() == Numbers{5});  // what cannot be read is not left out
}

TEST_CASE("the shards of a selection are its parts, and an empty one is no failure") {
  TaggedScene scene;
  scene.replay_options.all = true;
  Numbers all;
  bool some_empty = false;
  for (int i = 1; i <= 16; ++i) {
    scene.replay_options.shard = std::to_string(i) + "/16";
    const Numbers part = scene.numbers();
    CHECK(scene.report.verdict == Verdict::kReproduced);
    if (part.empty()) {
      some_empty = true;
      CHECK(scene.report.reason.find("of the 4 runs") != std::string::npos);
      CHECK(replay_to_json(scene.report).find("runs")->as_array().empty());
    }
    all.insert(all.end(), part.begin(), part.end());
  }
  CHECK(some_empty);
  std::sort(all.begin(), all.end());
  CHECK(all == Numbers{1, 2, 3, 4});
  scene.replay_options.shard = "1/2";
  scene.replay_options.tags = {"a=none"};
  CHECK(scene.numbers().empty());
  CHECK(scene.report.verdict == Verdict::kInconclusive);
}

}  // namespace
}  // namespace detrun
