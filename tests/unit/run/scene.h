// A folder with a tiny model that tokenizes any text, a ledger beside it, and an observer that
// keeps what it was told. Every test of the use cases starts from here.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/error.h"
#include "detrun/ledger.h"
#include "detrun/run.h"
#include "tests/support/gguf_builder.h"
#include "tests/unit/model/tiny_model.h"

namespace detrun::test {

/// <unk>, <s>, </s>, all 256 bytes, the space mark and a to z: any bytes can be encoded.
inline std::vector<std::string> tiny_vocab() {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    tokens.push_back(std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">");
  }
  tokens.emplace_back("\xe2\x96\x81");
  for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
  return tokens;
}

/// A runnable model file with a SentencePiece vocabulary, random weights by `seed`.
inline TinyFile tiny_run_model(unsigned seed = 1) {
  const std::vector<std::string> tokens = tiny_vocab();
  const auto n = static_cast<std::uint32_t>(tokens.size());
  TinyShape shape;
  shape.n_vocab = n;
  shape.n_ctx = 128;
  TinyFile file = tiny_llama(shape, seed);
  std::vector<std::int32_t> types(n, 1);
  types[0] = 2;
  types[1] = types[2] = 3;
  for (std::size_t i = 3; i < 259; ++i) types[i] = 6;
  file.string("general.license", "mit");
  file.string("general.author", "nobody");
  file.string("tokenizer.ggml.model", "llama");
  file.key("tokenizer.ggml.tokens",
           [=](GgufBuilder& b) { b.strings("tokenizer.ggml.tokens", tokens); });
  file.key("tokenizer.ggml.scores", [=](GgufBuilder& b) {
    b.numbers("tokenizer.ggml.scores", std::vector<float>(n, 0.0F));
  });
  file.key("tokenizer.ggml.token_type",
           [=](GgufBuilder& b) { b.numbers("tokenizer.ggml.token_type", types); });
  file.u32("tokenizer.ggml.bos_token_id", 1);
  file.u32("tokenizer.ggml.eos_token_id", 2);
  return file;
}

class KeepingObserver : public Observer {
 public:
  bool on_text(std::string_view bytes) override {
    text += bytes;
    ++n_texts;
    if (after_text) after_text();
    return n_texts < close_after;
  }
  void on_run_started(std::int64_t run_number, const std::string& run_id) override {
    number = run_number;
    id = run_id;
    if (on_begin) on_begin("start");
  }
  void on_prompt(std::string_view bytes) override {
    prompt = bytes;
    if (on_begin) on_begin("prompt");
  }

  std::string text, prompt, id;
  std::int64_t number = 0;
  std::uint64_t n_texts = 0;
  std::uint64_t close_after = 1000000;  ///< texts until the pipe closes
  std::function<void()> after_text;
  std::function<void(std::string_view)> on_begin;  ///< gets "start", then "prompt"
};

class Scene {
 public:
  Scene() : model_path_(folder_.write("tiny.gguf", tiny_run_model().bytes())) {
    options.model_path = model_path_;
    options.ledger_path = folder_.file("ledger.db");
    options.engine.threads = 1;
    options.prompt = "hello";
    options.n = 12;
    replay_options.ledger_path = options.ledger_path;
    replay_options.engine.threads = 1;
    replay_options.selectors = {"latest"};
  }

  RecordReport record() { return detrun::record(options, cancel, observer); }
  ReplayReport replay() { return detrun::replay(replay_options, cancel, observer); }
  /// Replays the one run selected and hands it back.
  ReplayRun replay_one() {
    const ReplayReport report = replay();
    REQUIRE(report.runs.size() == 1);
    CHECK(report.verdict == report.runs[0].verdict);
    return report.runs[0];
  }
  const TempFolder& folder() const { return folder_; }

  RunRecord read(std::int64_t number) const {
    return Ledger::open_for_reading(options.ledger_path)->read(number, true);
  }

  /// What a forger who can compute seals would write: a run of any content, consistently sealed.
  /// Fields that the ledger adds itself are taken off first.
  void forge(const RunRecord& run) {
    const auto ledger = Ledger::open_for_recording(options.ledger_path);
    FieldMap start, late, end;
    for (const auto& [name, value] : run.fields) {
      static constexpr std::array<std::string_view, 8> kOwn = {
          field::number,       field::id,   field::ledger_id,  field::ledger_created_at,
          field::seal_version, field::text, field::step_count, field::log_index};
      if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end()) continue;
      const FieldInfo* info = find_field(name);
      REQUIRE(info != nullptr);
      FieldMap& phase = info->phase == FieldPhase::kStart  ? start
                        : info->phase == FieldPhase::kLate ? late
                                                           : end;
      phase.emplace(name, value);
    }
    const auto writer = ledger->begin_run(start);
    writer->add_fields(late);
    if (!run.steps.empty()) writer->add_steps(run.steps);
    if (run.sealed) writer->finish(end);
  }

  RecordOptions options;
  ReplayOptions replay_options;
  KeepingObserver observer;
  std::atomic<bool> cancel = false;

 private:
  TempFolder folder_;
  std::string model_path_;
};

/// Path of a published model beside the checkout, empty (said on stdout) when it is absent.
inline std::string shared_model(const std::string& name) {
  std::string path = std::string(DETRUN_SOURCE_DIR) + "/../shared/models/" + name;
  if (std::filesystem::exists(path)) return path;
  std::cout << "SKIPPED: " << path << " is absent\n";
  return {};
}

struct Thrown {
  ExitCode kind = ExitCode::kOk;  ///< kOk: nothing was thrown
  std::string message, hint;
  bool says(std::string_view part) const { return message.find(part) != std::string::npos; }
};

template <typename F>
Thrown thrown_by(F&& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return {error.kind(), error.what(), error.hint()};
  }
  return {};
}

inline bool same_steps(const std::vector<StepRecord>& a, const std::vector<StepRecord>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].index != b[i].index || a[i].token != b[i].token ||
        a[i].logits_xxh3 != b[i].logits_xxh3 || a[i].margin_bits != b[i].margin_bits ||
        a[i].logprob_bits != b[i].logprob_bits || a[i].piece != b[i].piece) {
      return false;
    }
  }
  return true;
}

}  // namespace detrun::test
