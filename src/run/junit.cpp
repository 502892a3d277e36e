// The report of a replay as a JUnit file: one test suite, a test case for each run. Pure: the bytes
// of a ledger may be anybody's, so whatever they hold becomes text that XML 1.0 can carry.
#include <string>

#include "detrun/run.h"
#include "detrun/text.h"

namespace detrun {
namespace {

/// Text for an attribute or an element. Control characters and what is not UTF-8 become visible
/// escapes; the two code points left that XML forbids (U+FFFE, U+FFFF) do too.
std::string xml(std::string_view bytes) {
  const std::string text = escape_for_terminal(bytes);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("\xef\xbf\xbe") || rest.starts_with("\xef\xbf\xbf")) {
      out += rest[2] == '\xbe' ? "\\u{FFFE}" : "\\u{FFFF}";
      i += 2;
      continue;
    }
    switch (text[i]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += text[i];
    }
  }
  return out;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + xml(value) + "\"";
}

/// Milliseconds with a point, whatever the locale.
std::string seconds_text(double seconds) {
  const auto ms = static_cast<std::uint64_t>(seconds * 1000.0 + 0.5);
  std::string decimals = std::to_string(ms % 1000);
  decimals.insert(0, 3 - decimals.size(), '0');
  return std::to_string(ms / 1000) + "." + decimals;
}

/// The element inside a test case; empty for a run that is reproduced.
std::string_view element_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return {};
    case Verdict::kDiverged:
      return "failure";
    default:
      return "error";
  }
}

std::string name_of(std::int64_t number, const std::string& id) {
  return "run " + std::to_string(number) + " (" + id + ")";
}

std::string case_head(const std::string& name, double seconds) {
  return "    <testcase" + attribute("classname", "detrun.replay") + attribute("name", name) +
         attribute("time", seconds_text(seconds));
}

std::string test_case(const ReplayRun& run) {
  // A selector that no run answers to has no number; its reason names it.
  const std::string name = run.number > 0 ? name_of(run.number, run.id) : "no run: " + run.reason;
  const std::string_view element = element_of(run.verdict);
  std::string out = case_head(name, run.seconds);
  if (element.empty()) return out + "/>\n";
  out += ">\n      <" + std::string(element) + attribute("message", run.reason) +
         attribute("type", verdict_name(run.verdict)) + ">" +
         xml(std::string(verdict_name(run.verdict)) + ": " + run.reason) + "</" +
         std::string(element) + ">\n";
  return out + "    </testcase>\n";
}

std::string skipped_case(const RunRef& run) {
  return case_head(name_of(run.number, run.id), 0) + ">\n      <skipped" +
         attribute("message", "the replay ended before this run") + "/>\n    </testcase>\n";
}

struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

Counts count(const ReplayReport& report) {
  Counts counts;
  counts.tests = report.runs.size() + report.not_replayed.size();
  counts.skipped = report.not_replayed.size();
  for (const ReplayRun& run : report.runs) {
    const std::string_view element = element_of(run.verdict);
    counts.failures += element == "failure" ? 1 : 0;
    counts.errors += element == "error" ? 1 : 0;
  }
  return counts;
}

}  // namespace

std::string replay_to_junit(const ReplayReport& report) {
  Counts counts = count(report);
  std::string cases;
  for (const ReplayRun& run : report.runs) cases += test_case(run);
  for (const RunRef& run : report.not_replayed) cases += skipped_case(run);
  if (counts.tests == 0 && report.verdict != Verdict::kReproduced) {
    // Nothing was selected: an empty report would look like a success.
    ReplayRun nothing;
    nothing.verdict = report.verdict;
    nothing.reason = report.reason;
    cases += test_case(nothing);
    counts = {1, 0, 1, 0};
  }
  const std::string totals = attribute("tests", std::to_string(counts.tests)) +
                             attribute("failures", std::to_string(counts.failures)) +
                             attribute("errors", std::to_string(counts.errors)) +
                             attribute("skipped", std::to_string(counts.skipped)) +
                             attribute("time", seconds_text(report.seconds));
  // The format's time has no zone; it is UTC here.
  const std::string timestamp = utc_timestamp(report.started_ms).substr(0, 19);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
         attribute("name", "detrun replay") + totals + ">\n  <testsuite" +
         attribute("name", "detrun.replay") + totals + attribute("timestamp", timestamp) + ">\n" +
         cases + "  </testsuite>\n</testsuites>\n";
}

}  // namespace detrun
