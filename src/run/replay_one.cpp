// See replay_one.h. The order is: seal, state, contract, model digest, prompt, steps, end. What
// stands earlier is never overruled by what comes later, and nothing is executed before the digest
// of the model was compared.
#include "run/replay_one.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "detrun/engine.h"
#include "detrun/error.h"
#include "detrun/host.h"
#include "detrun/text.h"
#include "run/compare_steps.h"
#include "run/prompt.h"
#include "run/recorded_profile.h"
#include "run/start_fields.h"

namespace detrun {
namespace {

/// The parameters of a recorded run that decide about bits, checked.
struct Recorded {
  RunRecord run;
  std::vector<std::int32_t> prompt_tokens;
  std::optional<std::uint64_t> n;
  std::uint32_t ctx = 0;
  KvType kv = KvType::kF16;
  RecordedProfile profile;
  std::optional<Sha256Digest> model_sha256;
  bool finished = false;  ///< its end is to be reproduced too
};

void append_sentence(std::string& reason, const std::string& text) {
  if (text.empty()) return;
  reason += (reason.empty() ? "" : "; ") + text;
}

class OneReplay {
 public:
  OneReplay(const ReplayScope& scope, const RunRef& ref) : scope_(scope), ref_(ref) {
    result_.id = ref.id;
    result_.number = ref.number;
    result_.mode = replay_mode(scope.options);
  }

  ReplayRun run() {
    if (!check_seal() || !read_run() || !read_parameters()) return result_;
    const auto path = field_blob(recorded_.run.fields, field::model_path);
    if (!path && scope_.options.model_path.empty()) {
      return refuse("the run does not say where its model was; give it with --model PATH");
    }
    const ModelCache::Lookup found =
        scope_.models.find(scope_.options.model_path.empty() ? *path : scope_.options.model_path,
                           recorded_.model_sha256);
    if (found.model == nullptr) return refuse(found.why);
    if (check_model(*found.model) && check_prompt(*found.model) && start_profile(*found.model))
      replay_steps(*found.model);
    return result_;
  }

 private:
  ReplayRun refuse(const std::string& why) { return give(Verdict::kInconclusive, why); }

  /// Sets the verdict; what was said before (forced past a broken seal) stays in front.
  ReplayRun give(Verdict verdict, const std::string& why) {
    result_.verdict = verdict;
    append_sentence(result_.reason, why);
    return result_;
  }

  bool check_seal() {
    const VerifyReport report = scope_.ledger.verify_run(ref_.number);
    if (report.ok) return true;
    std::string broken = "the seal does not verify";
    if (!report.broken.empty()) {
      const BrokenEntry& entry = report.broken.front();
      broken += ": " + entry.field + ": " + entry.why;
    }
    if (scope_.options.force) {
      append_sentence(result_.reason, "forced past a broken seal (" + broken + ")");
      return true;
    }
    give(Verdict::kTampered, broken + "; --force replays it all the same");
    return false;
  }

  bool read_run() {
    recorded_.run = scope_.ledger.read(ref_.number, /*with_steps=*/true);
    const RunRecord& run = recorded_.run;
    if (run.live) {
      refuse("the run is still being recorded; replay it when it has ended");
      return false;
    }
    const std::string status = field_text(run.fields, field::status).value_or("");
    result_.complete = run.sealed && status != "interrupted";
    recorded_.finished = run.sealed && status == "finished";
    if (!result_.complete && scope_.options.strict) {
      refuse("the run was interrupted after " + std::to_string(run.steps.size()) +
             " steps; without --strict its committed steps are replayed");
      return false;
    }
    return true;
  }

  /// What this build must know to compute the same bits. Values of a forged ledger may be anything.
  bool read_parameters() {
    const FieldMap& fields = recorded_.run.fields;
    std::string why;
    const std::optional<RecordedProfile> profile = read_profile(fields, why);
    if (!profile) return unknown(why);
    recorded_.profile = *profile;
    if (profile->plan && !choose_mode()) return false;
    const std::string temp = field_text(fields, field::params_temp).value_or("absent");
    if (temp != "0") return unknown("params.temp is " + quoted(temp) + ", this build knows only 0");
    const std::string kv = field_text(fields, field::params_kv).value_or("absent");
    const std::optional<KvType> kv_type = kv_type_by_name(kv);
    if (!kv_type) return unknown("params.kv is " + quoted(kv) + ", this build knows f16 and f32");
    recorded_.kv = *kv_type;
    const std::int64_t ctx = field_i64(fields, field::params_ctx).value_or(0);
    if (ctx < 1 || ctx > std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
      return unknown("params.ctx is " + std::to_string(ctx) + ", which is no context length");
    }
    recorded_.ctx = static_cast<std::uint32_t>(ctx);
    if (const auto n = field_i64(fields, field::params_n)) {
      if (*n < 0) return unknown("params.n is " + std::to_string(*n));
      recorded_.n = static_cast<std::uint64_t>(*n);
    }
    const auto tokens = field_blob(fields, field::prompt_tokens);
    const auto ids = tokens ? blob_to_tokens(*tokens) : std::nullopt;
    if (!ids || ids->empty()) return unknown("the run's prompt tokens are not in the ledger");
    recorded_.prompt_tokens = *ids;
    const auto document = field_text(fields, field::stack_document);
    const auto digest = field_blob(fields, field::stack_digest);
    if (document && digest && *digest != to_blob(sha256(*document)).bytes) {
      give(Verdict::kDiverged, "stack.digest is not the digest of stack.document");
      return false;
    }
    return read_model_digest();
  }

  /// Under cublas the bits of a row depend on how many are computed at once.
  bool choose_mode() {
    if (scope_.options.mode == "parallel") {
      return unknown(
          "recorded under the profile cublas, whose rows cannot be replayed in parallel; use "
          "--mode "
          "step or auto");
    }
    result_.mode = "step";
    return true;
  }

  bool start_profile(const LoadedModel& model) {
    if (recorded_.profile.plan) {
      const std::string foreign = foreign_product(*recorded_.profile.plan, *model.file);
      if (!foreign.empty()) return unknown(foreign);
    }
    const ProfileStart start =
        start_profile_of(recorded_.profile, scope_.backend, scope_.options.force, scope_.tested);
    if (!start.ready) return unknown(start.why);
    append_sentence(result_.reason, start.why);
    return true;
  }

  bool read_model_digest() {
    const auto blob = field_blob(recorded_.run.fields, field::model_sha256);
    if (blob && blob->size() == std::tuple_size_v<Sha256Digest>) {
      Sha256Digest digest;
      std::copy(blob->begin(), blob->end(), digest.begin());
      recorded_.model_sha256 = digest;
      return true;
    }
    if (!scope_.options.force) {
      return unknown(
          "the run ended before its model's digest was known, so nothing says which model it "
          "used; --force replays it with the model at hand");
    }
    append_sentence(result_.reason, "forced without a recorded model digest");
    return true;
  }

  bool unknown(const std::string& why) {
    refuse(why);
    return false;
  }

  /// What the run says about its model is what the model says about itself. Only where the recorded
  /// digest says that this is the model. Digests and lists made by another version of the program
  /// may be made in another way.
  bool check_model(const LoadedModel& model) {
    if (!recorded_.model_sha256) return true;
    const FieldMap now = model_fields(model);
    std::vector<std::string_view> names = {field::model_size_bytes, field::model_name,
                                           field::model_arch, field::model_quantization};
    if (field_text(recorded_.run.fields, field::tool_version) == build_info().version)
      names.insert(names.end(), {field::model_tokenizer_sha256, field::model_chat_template_sha256,
                                 field::model_provenance});
    for (const std::string_view name : names) {
      const auto recorded = recorded_.run.fields.find(name);
      const auto computed = now.find(name);
      const bool both = recorded != recorded_.run.fields.end() && computed != now.end();
      const bool neither = recorded == recorded_.run.fields.end() && computed == now.end();
      if (neither || (both && recorded->second == computed->second)) continue;
      give(Verdict::kDiverged, std::string(name) + " is not what the model file says: recorded " +
                                   shown(recorded_.run.fields, name) + ", the file has " +
                                   shown(now, name));
      return false;
    }
    return true;
  }

  static std::string shown(const FieldMap& fields, std::string_view name) {
    if (const auto number = field_i64(fields, name)) return std::to_string(*number);
    if (const auto text = field_text(fields, name)) return quoted(*text);
    if (const auto blob = field_blob(fields, name)) return to_hex(as_bytes(*blob));
    return "nothing";
  }

  /// A forged prompt is a difference, not an error: the recorded one could not have been run.
  bool check_prompt(const LoadedModel& model) {
    const std::vector<std::int32_t>& recorded = recorded_.prompt_tokens;
    const std::size_t bad = first_foreign_token(recorded, model.tokenizer->n_vocab());
    if (bad < recorded.size()) {
      result_.position = bad;
      give(Verdict::kDiverged, "prompt token " + std::to_string(bad) + " is recorded as " +
                                   std::to_string(recorded[bad]) +
                                   ", which the model's vocabulary does not have");
      return false;
    }
    if (recorded.size() > recorded_.ctx) {
      give(Verdict::kDiverged, "the recorded prompt has " + std::to_string(recorded.size()) +
                                   " tokens, more than its context of " +
                                   std::to_string(recorded_.ctx));
      return false;
    }
    const FieldMap& fields = recorded_.run.fields;
    const auto text = field_blob(fields, field::prompt);
    if (!text) {
      if (field_text(fields, field::prompt_source) == "tokens") return true;
      return unknown("the run's prompt is not in the ledger");
    }
    const bool bos = field_i64(fields, field::params_bos) == 1;
    if (bos && !model.tokenizer->bos()) return give_bos_missing();
    return compare_prompt(encode_prompt(*model.tokenizer, *text, bos, false));
  }

  bool give_bos_missing() {
    result_.position = 0;
    give(Verdict::kDiverged, "recorded with a begin token, which the model does not have");
    return false;
  }

  bool compare_prompt(const std::vector<std::int32_t>& now) {
    const std::vector<std::int32_t>& recorded = recorded_.prompt_tokens;
    if (now == recorded) return true;
    const auto [a, b] = std::mismatch(recorded.begin(), recorded.end(), now.begin(), now.end());
    result_.position = static_cast<std::uint64_t>(a - recorded.begin());
    give(Verdict::kDiverged, "the prompt's tokens differ at position " +
                                 std::to_string(*result_.position) + ": recorded " +
                                 (a == recorded.end() ? "none" : std::to_string(*a)) + ", now " +
                                 (b == now.end() ? "none" : std::to_string(*b)));
    return false;
  }

  /// A context of the recorded length, but never longer than the recorded steps can fill: one step
  /// more than recorded is computed at most, and memory follows from the ledger's real content.
  std::uint32_t context_length() const {
    const std::uint64_t needed = recorded_.prompt_tokens.size() + recorded_.run.steps.size() + 1;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(recorded_.ctx, needed));
  }

  /// Both modes make the same steps and end in the same way.
  StopReason make_steps(const LoadedModel& model, StepSink& sink) {
    const std::vector<StepRecord>& recorded = recorded_.run.steps;
    const std::unique_ptr<Context> context = open_context(
        *model.model, scope_.backend, context_length(), recorded_.kv,
        recorded_.profile.plan ? recorded_.profile.plan->rows : scope_.options.engine.chunk);
    const GenerateRequest request{
        recorded_.prompt_tokens,
        recorded_.finished ? recorded_.n : std::optional<std::uint64_t>(recorded.size())};
    const auto progress = [&](std::uint64_t done, std::uint64_t total) {
      scope_.observer.on_progress("prefill", done, total, "tokens");
    };
    if (result_.mode == "step") {
      return generate(*context, *model.model, *model.tokenizer, request, scope_.cancel, sink,
                      progress);
    }
    std::vector<std::int32_t> tokens;
    tokens.reserve(recorded.size());
    for (const StepRecord& step : recorded) tokens.push_back(step.token);
    return teacher_force(*context, *model.model, *model.tokenizer, request, tokens, scope_.cancel,
                         sink, progress);
  }

  void replay_steps(const LoadedModel& model) {
    const std::vector<StepRecord>& recorded = recorded_.run.steps;
    StepComparer comparer;
    CompareSteps steps(recorded, comparer, scope_, "replaying run " + std::to_string(ref_.number));
    const StopReason reason = make_steps(model, steps);
    if (reason == StopReason::kCancelled) {
      result_.steps_checked = comparer.steps_checked();
      if (comparer.equal()) {
        refuse("cancelled after " + std::to_string(comparer.steps_checked()) + " steps");
        return;
      }
    } else if (reason != StopReason::kSink && steps.n_replayed() < recorded.size()) {
      const std::uint64_t next = steps.n_replayed();
      comparer.length_differs(next, recorded[next].token, std::nullopt);
    }
    model.file->check_unchanged();
    conclude(model, comparer, steps, reason);
  }

  void conclude(const LoadedModel& model, const StepComparer& comparer, const CompareSteps& steps,
                StopReason reason) {
    result_.steps_checked = comparer.steps_checked();
    result_.first_logits_difference = comparer.first_logits_difference();
    result_.first_token_difference = comparer.first_token_difference();
    result_.recorded_token = comparer.recorded_token();
    result_.replayed_token = comparer.replayed_token();
    result_.recorded_piece = piece_of(*model.tokenizer, comparer.recorded_token());
    result_.replayed_piece = piece_of(*model.tokenizer, comparer.replayed_token());
    if (!comparer.equal()) {
      set_position(std::min({comparer.first_logits_difference().value_or(kNowhere),
                             comparer.first_token_difference().value_or(kNowhere),
                             comparer.first_value_difference().value_or(kNowhere)}));
      give(Verdict::kDiverged, comparer.describe());
    } else if (steps.first_piece()) {
      set_position(*steps.first_piece());
      give(Verdict::kDiverged, "tokens are equal but the text of step " +
                                   std::to_string(*steps.first_piece()) +
                                   " is not: " + steps.pieces());
    } else if (recorded_.finished && !end_is_equal(reason)) {
      give(Verdict::kDiverged,
           "every step is equal but the end is not: recorded stop reason " +
               quoted(field_text(recorded_.run.fields, field::stop_reason).value_or("absent")) +
               ", replayed '" + std::string(stop_reason_name(reason)) + "'");
    } else {
      give(Verdict::kReproduced, describe_success());
    }
  }

  bool end_is_equal(StopReason reason) const {
    return field_text(recorded_.run.fields, field::stop_reason) == stop_reason_name(reason);
  }

  /// Equal steps speak for themselves; an empty comparison must not pass for one.
  std::string describe_success() const {
    if (!recorded_.run.steps.empty()) return {};
    return "no step was recorded: the prompt's tokens were compared, nothing else";
  }

  /// Bytes of a token for a person; a forged id may lie outside the vocabulary.
  static std::string piece_of(const Tokenizer& tokenizer, std::optional<std::int32_t> token) {
    if (!token || *token < 0 || *token >= tokenizer.n_vocab()) return {};
    return tokenizer.piece(*token, /*show_control=*/true);
  }

  void set_position(std::uint64_t step) {
    result_.position = recorded_.prompt_tokens.size() + step;
  }

  static constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();

  const ReplayScope& scope_;
  const RunRef& ref_;
  Recorded recorded_;
  ReplayRun result_;
};

}  // namespace

/// Of the profile portable, whose rows do not depend on how many are computed at once.
std::string replay_mode(const ReplayOptions& options) {
  return options.mode == "step" ? "step" : "parallel";
}

ReplayRun replay_one(const ReplayScope& scope, const RunRef& ref) {
  return OneReplay(scope, ref).run();
}

}  // namespace detrun
