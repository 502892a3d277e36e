// The forger's tool does what the demo says of it: a plain change is found, a resealed one is not.
#include <sys/wait.h>

#include <cstdlib>

#include "unit/ledger/helpers.h"

using namespace detrun;
using namespace detrun::test;

namespace {

int forge_tool(const std::string& arguments) {
  const std::string command =
      std::string(DETRUN_BINARY_DIR) + "/bin/forge_ledger " + arguments + " > /dev/null 2>&1";
  const int status = std::system(command.c_str());  // NOLINT: fixed words and a folder of our own
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a forged token without a new seal is TAMPERED") {
  const TempDir dir;
  record_three(dir.file("l"));
  const std::string before = read_bytes(dir.file("l"));
  CHECK(forge_tool(dir.file("l") + " " + dir.file("f") + " --run 2 --step 70 --token 7") == 0);
  CHECK(read_bytes(dir.file("l")) == before);
  const VerifyReport report = verify_file(dir.file("f"));
  CHECK(!report.ok);
  CHECK(report.broken.at(0).entry == 2);
  CHECK(report.broken.at(0).field == "steps[64..127]");
  CHECK(report.not_checked.size() == 1);  // the guards are back
  CHECK(Ledger::open_for_reading(dir.file("f"))->read(2, true).steps.at(70).token == 7);
}

TEST_CASE("a forged and resealed ledger verifies: only a replay can find it") {
  const TempDir dir;
  record_three(dir.file("l"));
  CHECK(forge_tool(dir.file("l") + " " + dir.file("f") +
                   " --run 2 --step 70 --token 7 --field status=cancelled --reseal") == 0);
  const VerifyReport report = verify_file(dir.file("f"));
  CHECK(report.ok);
  CHECK(report.runs_checked == 3);
  const auto ledger = Ledger::open_for_recording(dir.file("f"));
  CHECK(ledger->read(2, true).steps.at(70).token == 7);
  CHECK(field_text(ledger->read(2, false).fields, field::status) == "cancelled");
  CHECK(ledger->seal(2) != Ledger::open_for_reading(dir.file("l"))->seal(2));
}

TEST_CASE("a forgery of what does not exist is refused") {
  const TempDir dir;
  record_three(dir.file("l"));
  auto out = [&, count = 0]() mutable {
    return dir.file("l") + " " + dir.file("f" + std::to_string(count++)) + " ";
  };
  CHECK(forge_tool(out() + "--run 2 --step 130 --token 7") == 2);
  CHECK(forge_tool(out() + "--run 9 --step 0 --token 7") == 2);
  CHECK(forge_tool(out() + "--run 2 --field nothing=x") == 2);
  CHECK(forge_tool(out() + "--run 2 --field number=x") == 2);
  CHECK(forge_tool(out() + "--run 2") == 2);
  CHECK(forge_tool(dir.file("l") + " " + dir.file("l") + " --run 2 --step 0 --token 7") == 2);
  CHECK(forge_tool(dir.file("absent") + " " + dir.file("g") + " --run 2 --step 0 --token 7") == 2);
}
