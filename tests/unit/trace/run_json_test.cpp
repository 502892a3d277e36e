// The document detrun.run/1, for honest and for hostile runs.
#include <doctest/doctest.h>

#include <bit>
#include <limits>

#include "detrun/trace.h"

using namespace detrun;

namespace {

StepRecord step(std::uint64_t index, std::int32_t token, float margin, float logprob) {
  StepRecord record{
      index, token, {}, std::bit_cast<std::uint32_t>(margin), std::bit_cast<std::uint32_t>(logprob),
      "x"};
  record.logits_xxh3.fill(0xab);
  return record;
}

RunRecord sealed_run() {
  RunRecord run;
  run.sealed = true;
  run.fields = {{"id", "0190"},
                {"number", std::int64_t{17}},
                {"status", "finished"},
                {"model.sha256", Blob{std::string(32, '\x01')}},
                {"params.seed", "18446744073709551615"},
                {"prompt", Blob{"Hi"}},
                {"prompt_tokens", tokens_to_blob({1, 5})},
                {"stack.digest", Blob{std::string(32, '\x02')}},
                {"stack.document", R"({"cpu":{"model":"x"},"digest":"forged"})"},
                {"tag.case.no", "A-1"},
                {"text", Blob{"xx"}}};
  run.steps = {step(0, 5, 1.5F, -0.1F), step(1, 2, 0.0F, -2.0F)};
  return run;
}

const Json& at(const Json& json, std::string_view name) {
  const Json* found = json.find(name);
  REQUIRE_MESSAGE(found != nullptr, name);
  return *found;
}

}  // namespace

TEST_CASE("a run is shown with the names of the manual") {
  const Json document = run_to_json(sealed_run(), true);
  CHECK(at(document, "schema").as_string() == "detrun.run/1");
  CHECK(at(document, "id").as_string() == "0190");
  CHECK(at(document, "number").as_i64() == 17);
  CHECK(at(document, "status").as_string() == "finished");
  CHECK(at(at(document, "model"), "sha256").as_string() ==
        "0101010101010101010101010101010101010101010101010101010101010101");
  CHECK(at(at(document, "params"), "seed").as_string() == "18446744073709551615");
  CHECK(at(document, "prompt").as_string() == "Hi");
  CHECK(at(document, "prompt_tokens").dump() == "[1,5]");
  CHECK(at(document, "tokens").dump() == "[5,2]");
  CHECK(at(document, "text").as_string() == "xx");
  CHECK(at(at(document, "tags"), "case.no").as_string() == "A-1");
  CHECK(at(document, "steps").as_array().size() == 2);
  CHECK(at(document, "steps").as_array()[0].dump() ==
        R"({"step":0,"token":5,"logits_xxh3":"abababababababababababababababab",)"
        R"("margin":1.5,"logprob":-0.1})");
}

TEST_CASE("the stack holds the document's members, and no member of it hides the digest") {
  const Json document = run_to_json(sealed_run(), false);
  const Json& stack = at(document, "stack");
  CHECK(at(at(stack, "cpu"), "model").as_string() == "x");
  CHECK(at(stack, "digest").as_string().starts_with("0202"));
}

TEST_CASE("the head of a run has no steps and no tokens") {
  const Json document = run_to_json(sealed_run(), false);
  CHECK(document.find("steps") == nullptr);
  CHECK(document.find("tokens") == nullptr);
}

TEST_CASE("every listed field appears") {
  RunRecord run;
  run.sealed = true;
  for (const FieldInfo& info : run_fields())
    run.fields.emplace(info.name, "value of " + std::string(info.name));
  const std::string text = run_to_json(run, false).dump();
  for (const FieldInfo& info : run_fields()) {
    const std::string value = "\"value of " + std::string(info.name) + "\"";
    CHECK_MESSAGE(text.find(value) != std::string::npos, info.name);
  }
}

TEST_CASE("a run without seal is running or interrupted") {
  RunRecord run = sealed_run();
  run.sealed = false;
  run.fields.erase("status");
  CHECK(at(run_to_json(run, false), "status").as_string() == "interrupted");
  run.live = true;
  CHECK(at(run_to_json(run, false), "status").as_string() == "running");
}

TEST_CASE("a recorded status is shown as recorded, sealed or not") {
  RunRecord run = sealed_run();
  run.sealed = false;
  CHECK(at(run_to_json(run, false), "status").as_string() == "finished");
  run.fields["status"] = "failed";
  CHECK(at(run_to_json(run, false), "status").as_string() == "failed");
}

TEST_CASE("bytes that are no text are shown as base64") {
  RunRecord run = sealed_run();
  run.fields["prompt"] = Blob{"a\xff"};
  CHECK(at(run_to_json(run, false), "prompt").dump() == R"({"b64":"Yf8="})");
}

TEST_CASE("integers beyond 2^53 are decimal strings") {
  RunRecord run = sealed_run();
  run.fields["params.n"] = (std::int64_t{1} << 53) + 1;
  run.fields["params.ctx"] = std::int64_t{1} << 53;
  run.fields["duration_ms"] = std::numeric_limits<std::int64_t>::min();
  const Json document = run_to_json(run, false);
  CHECK(at(at(document, "params"), "n").as_string() == "9007199254740993");
  CHECK(at(at(document, "params"), "ctx").as_i64() == 9007199254740992);
  CHECK(at(document, "duration_ms").as_string() == "-9223372036854775808");
}

TEST_CASE("a margin that is no number is text, because JSON has no infinity") {
  RunRecord run = sealed_run();
  run.steps = {
      step(0, 1, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN())};
  const Json row = at(run_to_json(run, true), "steps").as_array()[0];
  CHECK(at(row, "margin").as_string() == "inf");
  CHECK(at(row, "logprob").as_string() == "nan");
}

TEST_CASE("values of a hostile ledger are shown in some form and never abort") {
  RunRecord run;
  run.sealed = true;
  run.fields = {{"model", "a value where an object belongs"},
                {"model.sha256", std::int64_t{5}},
                {"model.name", Blob{"\xff"}},
                {"stack.document", "{ not json"},
                {"stack.objects", "[1,"},
                {"prompt_tokens", Blob{"abc"}},
                {"prompt", {}},
                {"status", std::string("\xff\xfe")},
                {"tag.\xff", "v"},
                {"tag.schema", "s"},
                {"\xc0", "w"},
                {"schema", "forged"},
                {"text", std::int64_t{1}}};
  const Json document = run_to_json(run, true);
  CHECK(at(document, "schema").as_string() == "detrun.run/1");
  CHECK(at(at(document, "other"), "model").as_string() == "a value where an object belongs");
  CHECK(at(at(document, "other"), "schema").as_string() == "forged");
  CHECK(at(at(document, "model"), "sha256").as_i64() == 5);
  CHECK(at(at(document, "stack"), "document").as_string() == "{ not json");
  CHECK(at(document, "prompt").is_null());
  CHECK(at(document, "prompt_tokens").as_string() == "abc");
  CHECK(!document.dump().empty());
}
