// Rows and values, and what a step costs in the file.
#include "ledger/store.h"

#include "helpers.h"

using namespace detrun;
using namespace detrun::ledger;
using namespace detrun::test;

TEST_CASE("a step costs at most 48 bytes in the file beyond its text, block roots included") {
  const TempDir dir;
  constexpr std::uint64_t kSteps = 10'000;
  const auto size_with = [&](std::uint64_t steps, const std::string& name) {
    {
      const auto ledger = Ledger::open_for_recording(dir.file(name));
      for (int run = 0; run < 2; ++run) {
        const auto writer = ledger->begin_run(start_fields());
        for (std::uint64_t at = 0; at < steps; at += 100) {
          std::vector<StepRecord> batch;
          for (std::uint64_t i = at; i < at + 100; ++i) {
            batch.push_back(make_step(i, ""));
            batch.back().token = static_cast<std::int32_t>(30'000 + i * 9);  // ids of three bytes
            batch.back().margin_bits = 0x3f812345 + static_cast<std::uint32_t>(i);
            batch.back().logprob_bits = 0xbf812345 + static_cast<std::uint32_t>(i);
          }
          writer->add_steps(batch);
        }
        writer->finish(end_fields());
      }
    }
    CHECK(!std::filesystem::exists(dir.file(name + "-wal")));
    return std::filesystem::file_size(dir.file(name));
  };
  const double growth =
      static_cast<double>(size_with(kSteps, "steps") - size_with(0, "none")) / (2.0 * kSteps);
  MESSAGE("bytes a step: ", growth);
  CHECK(growth <= 48.0);
  CHECK(verify_file(dir.file("steps")).ok);
}

TEST_CASE("steps come back with every bit") {
  const TempDir dir;
  std::vector<StepRecord> steps = {make_step(0, ""), make_step(1, std::string("\0\xff", 2))};
  steps[0].token = INT32_MIN;
  steps[0].margin_bits = 0xffffffff;
  steps[0].logprob_bits = 0x80000000;
  steps[1].token = -1;
  steps[1].margin_bits = 0x7fc00001;  // a NaN with a payload
  {
    const auto ledger = Ledger::open_for_recording(dir.file("l"));
    const auto writer = ledger->begin_run({});
    writer->add_steps(steps);
    writer->finish({});
  }
  const RunRecord run = Ledger::open_for_reading(dir.file("l"))->read(1, true);
  REQUIRE(run.steps.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(run.steps[i].index == i);
    CHECK(run.steps[i].token == steps[i].token);
    CHECK(run.steps[i].logits_xxh3 == steps[i].logits_xxh3);
    CHECK(run.steps[i].margin_bits == steps[i].margin_bits);
    CHECK(run.steps[i].logprob_bits == steps[i].logprob_bits);
    CHECK(run.steps[i].piece == steps[i].piece);
  }
  CHECK(field_blob(run.fields, field::text) == std::string("\0\xff", 2));
}

TEST_CASE("a run whose rows are damaged is not shown as if it were whole") {
  const TempDir dir;
  record_three(dir.file("honest"));
  const std::vector<std::string> forgeries = {
      "DELETE FROM step WHERE key = (2 << 32) + 70",
      "UPDATE step SET logits = x'00' WHERE key = (2 << 32) + 70",
      "UPDATE step SET token = 1 << 40 WHERE key = (2 << 32) + 70",
      "UPDATE field SET value = 1.5 WHERE run = 2 AND name = 'status'",
  };
  for (const std::string& sql : forgeries) {
    std::filesystem::copy_file(dir.file("honest"), dir.file("forged"),
                               std::filesystem::copy_options::overwrite_existing);
    forge(dir.file("forged"), sql);
    const auto ledger = Ledger::open_for_reading(dir.file("forged"));
    CHECK(exit_code_of([&] { ledger->read(2, true); }) == ExitCode::kTampered);
    CHECK(exit_code_of([&] { ledger->read(1, true); }) == ExitCode::kOk);
  }
}
