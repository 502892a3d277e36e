// The JUnit report: counts, elements, and bytes of a stranger that must not become markup.
#include <doctest/doctest.h>

#include <string>

#include "detrun/run.h"

namespace detrun {
namespace {

ReplayRun run_of(std::int64_t number, Verdict verdict, const std::string& reason = {}) {
  ReplayRun run;
  run.number = number;
  run.id = "id-" + std::to_string(number);
  run.verdict = verdict;
  run.reason = reason;
  run.seconds = 0.0124;
  return run;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("every verdict has its element, and the counts are theirs") {
  ReplayReport report;
  report.runs = {run_of(1, Verdict::kReproduced), run_of(2, Verdict::kDiverged, "step 3"),
                 run_of(3, Verdict::kTampered, "seal"), run_of(4, Verdict::kInternal, "disk"),
                 run_of(5, Verdict::kInconclusive, "no model")};
  report.not_replayed = {{6, "id-6"}};
  report.verdict = Verdict::kTampered;
  report.started_ms = 1'764'450'750'123;
  report.seconds = 61.0005;
  const std::string xml = replay_to_junit(report);
  CHECK(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"));
  CHECK(holds(xml,
              "<testsuites name=\"detrun replay\" tests=\"6\" failures=\"1\" errors=\"3\" "
              "skipped=\"1\" time=\"61.001\">"));
  CHECK(holds(xml, "timestamp=\"2025-11-29T21:12:30\">"));
  CHECK(holds(xml, "<testcase classname=\"detrun.replay\" name=\"run 1 (id-1)\" time=\"0.012\"/>"));
  CHECK(holds(xml, "<failure message=\"step 3\" type=\"DIVERGED\">DIVERGED: step 3</failure>"));
  CHECK(holds(xml, "<error message=\"seal\" type=\"TAMPERED\">"));
  CHECK(holds(xml, "<error message=\"disk\" type=\"ERROR\">"));
  CHECK(holds(xml, "<error message=\"no model\" type=\"INCONCLUSIVE\">"));
  CHECK(holds(xml, "name=\"run 6 (id-6)\" time=\"0.000\">\n      <skipped message="));
  CHECK(xml.ends_with("  </testsuite>\n</testsuites>\n"));
}

TEST_CASE("a reason cannot leave its attribute, and holds no byte that XML forbids") {
  ReplayReport report;
  report.runs = {run_of(1, Verdict::kDiverged,
                        std::string("<a href=\"x\">&\0\x01\x1b\n\t]]>\xff\xc2\x85", 24) +
                            "\xef\xbf\xbe\xef\xbf\xbf\xed\xa0\x80\xc3\xa9")};
  report.runs[0].id = "\"/><script>";
  const std::string xml = replay_to_junit(report);
  CHECK(holds(xml, "(&quot;/&gt;&lt;script&gt;)"));
  CHECK(holds(xml, "&lt;a href=&quot;x&quot;&gt;&amp;"));
  CHECK(holds(xml, "\\u{FFFE}\\u{FFFF}"));
  CHECK(holds(xml, "\xc3\xa9"));
  CHECK_FALSE(holds(xml, "<script"));
  CHECK_FALSE(holds(xml, "]]>"));
  for (const char c : xml) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  for (const char* forbidden : {"\xef\xbf\xbe", "\xef\xbf\xbf", "\xff", "\xc2\x85", "\xed\xa0"}) {
    CHECK_FALSE(holds(xml, forbidden));
  }
}

TEST_CASE("nothing selected is an error, an empty shard an empty suite") {
  ReplayReport report;
  report.reason = "nothing to replay";
  const std::string nothing = replay_to_junit(report);
  CHECK(holds(nothing, "tests=\"1\" failures=\"0\" errors=\"1\""));
  CHECK(holds(nothing, "type=\"INCONCLUSIVE\""));
  report.verdict = Verdict::kReproduced;
  const std::string empty = replay_to_junit(report);
  CHECK(holds(empty, "tests=\"0\" failures=\"0\" errors=\"0\""));
  CHECK_FALSE(holds(empty, "<testcase"));
}

}  // namespace
}  // namespace detrun
