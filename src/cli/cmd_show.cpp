// `detrun show`: one run for a reader. Free text of the run stands behind a bar on every line, so
// that no prompt can pass for a field.
#include <bit>
#include <memory>

#include "cli/options.h"
#include "detrun/run.h"
#include "detrun/text.h"

namespace detrun::cli {
namespace {

constexpr std::size_t kNameWidth = 24, kTokensShown = 16, kValueWidth = 100;

struct ShowArguments {
  std::string ledger_path, selector;
  std::vector<std::string> selectors;
  bool json = false;
};

std::string tokens_text(const std::string& bytes) {
  const auto tokens = blob_to_tokens(bytes);
  if (!tokens) return counted(bytes.size(), "byte") + ", not a list of tokens";
  std::string out = counted(tokens->size(), "token") + ":";
  for (std::size_t i = 0; i < tokens->size() && i < kTokensShown; ++i) {
    out += " " + std::to_string((*tokens)[i]);
  }
  return tokens->size() > kTokensShown ? out + " \u2026" : out;
}

// A text over several lines: "  | " before each.
std::string block_text(std::string_view bytes) {
  std::string out;
  while (true) {
    const std::size_t end = bytes.find('\n');
    out += "\n  | " + escape_for_terminal(bytes.substr(0, end), true);
    if (end == std::string_view::npos) return out;
    bytes.remove_prefix(end + 1);
  }
}

std::string value_text(const FieldValue& value, FieldForm form) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (form == FieldForm::kJson) return shortened(*text, kValueWidth);
    return text->find('\n') == std::string::npos ? shown(*text) : block_text(*text);
  }
  if (const auto* blob = std::get_if<Blob>(&value)) {
    if (form == FieldForm::kTokens) return tokens_text(blob->bytes);
    if (form == FieldForm::kDigest) return to_hex(as_bytes(blob->bytes));
    return blob->bytes.find('\n') == std::string::npos ? in_quotes(blob->bytes)
                                                       : block_text(blob->bytes);
  }
  return "-";
}

void add_line(std::string& out, const std::string& name, const std::string& value) {
  std::string line = name;
  if (!value.starts_with('\n')) line.resize(std::max(line.size() + 1, kNameWidth), ' ');
  out += line + value + "\n";
}

std::string fields_text(const ShowReport& report) {
  const FieldMap& fields = report.run.fields;
  std::string out;
  if (!report.run.sealed) add_line(out, "status", run_status(report.run));
  for (const FieldInfo& info : run_fields()) {
    const auto found = fields.find(info.name);
    // Stack and products have parts of their own below: far too long for a line.
    if (found == fields.end() || info.name == field::stack_document ||
        info.name == field::stack_objects || info.name == field::params_products) {
      continue;
    }
    add_line(out, std::string(info.name), value_text(found->second, info.form));
  }
  for (const auto& [name, value] : fields) {
    if (name.starts_with("tag.")) add_line(out, shown(name), value_text(value, FieldForm::kPlain));
  }
  add_line(out, "seal", report.seal ? to_hex(*report.seal) : "none: not sealed");
  return out;
}

std::string steps_text(const std::vector<StepRecord>& steps) {
  Table table({{"STEP", true},
               {"TOKEN", true},
               {"MARGIN", true},
               {"LOGPROB", true},
               {"LOGITS XXH3"},
               {"TEXT"}});
  for (const StepRecord& step : steps) {
    table.add({std::to_string(step.index), std::to_string(step.token),
               format_f32(std::bit_cast<float>(step.margin_bits)),
               format_f32(std::bit_cast<float>(step.logprob_bits)),
               to_hex(step.logits_xxh3).substr(0, 16), in_quotes(step.piece)});
  }
  return table.text();
}

// The leaves of a document, one a line: "cpu.model  ...". The list of loaded objects is for --json.
void add_leaves(std::string& out, const std::string& prefix, const Json& value) {
  if (prefix == "objects") return;
  if (!value.is_object()) {
    const std::string text = value.is_string() ? value.as_string() : value.dump();
    add_line(out, "  " + shown(prefix), shortened(text, kValueWidth));
    return;
  }
  for (const auto& [name, member] : value.as_object()) {
    std::string path = prefix;
    if (!path.empty()) path += '.';
    add_leaves(out, path.append(name), member);
  }
}

std::string stack_text(const FieldMap& fields) {
  if (!field_text(fields, field::stack_document)) return {};
  const Json run = run_to_json(RunRecord{fields, {}, true, false}, false);
  const Json* stack = run.find("stack");
  const Json* binding = stack != nullptr ? stack->find("binding") : nullptr;
  const Json* other = stack != nullptr ? stack->find("informational") : nullptr;
  std::string out = "\nstack, what the result depends on\n";
  if (binding == nullptr) return out + "  not a stack document\n";
  add_leaves(out, "", *binding);
  if (other == nullptr) return out;
  out += "\nstack, for information (all of it: --json)\n";
  add_leaves(out, "", *other);
  return out;
}

// A member's text or number; of a ledger of anybody's it may be anything, or missing.
std::string word_of(const Json& object, std::string_view name) {
  const Json* value = object.is_object() ? object.find(name) : nullptr;
  if (value == nullptr) return "?";
  return shown(value->is_string() ? value->as_string() : value->dump());
}

std::string products_text(const FieldMap& fields) {
  const auto text = field_text(fields, field::params_products);
  if (!text) return {};
  const Json run = run_to_json(RunRecord{fields, {}, true, false}, false);
  const Json* params = run.find("params");
  const Json* plan = params != nullptr ? params->find("products") : nullptr;
  const Json* products = plan != nullptr && plan->is_object() ? plan->find("products") : nullptr;
  if (products == nullptr || !products->is_array()) return "\nproducts: not a plan\n";
  Table table({{"TYPE"}, {"N", true}, {"K", true}, {"ALGORITHM"}});
  for (const Json& one : products->as_array()) {
    table.add(
        {word_of(one, "type"), word_of(one, "n"), word_of(one, "k"), word_of(one, "description")});
  }
  return "\nproducts of " + word_of(*plan, "rows") + " rows by cuBLASLt " +
         word_of(*plan, "cublaslt") + ", workspace of " + word_of(*plan, "workspace_bytes") +
         " bytes\n" + table.text();
}

ExitCode run_show(const ShowArguments& arguments, Session& session) {
  if (arguments.selectors.size() != 1) {
    throw_usage(arguments.selectors.empty() ? "no run given" : "more than one run given",
                "name one: number, id, part of an id, or 'latest'");
  }
  const ShowReport report = show_run(arguments.ledger_path, arguments.selectors.front());
  if (arguments.json) {
    session.console.write(show_to_json(report, true).dump() + "\n");
    return ExitCode::kOk;
  }
  session.console.write(fields_text(report) + "\n" + steps_text(report.run.steps) +
                        products_text(report.run.fields) + stack_text(report.run.fields));
  return ExitCode::kOk;
}

}  // namespace

Runner build_show(CLI::App& app) {
  auto arguments = std::make_shared<ShowArguments>();
  add_texts(app, {"run", "RUN", "Selection", "number, id, part of an id (4 or more), or 'latest'"},
            arguments->selectors);
  add_ledger_option(app, arguments->ledger_path);
  add_json_switch(app, arguments->json);
  return [arguments](Session& session) { return run_show(*arguments, session); };
}

}  // namespace detrun::cli
