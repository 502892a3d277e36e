// Walks the words once, knowing the options of the command they belong to.
#include "cli/args.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "detrun/error.h"

namespace detrun::cli {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* sub : root.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool repeats(const CLI::Option& option) {
  return !takes_value(option) ||
         option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
}

class Normalizer {
 public:
  Normalizer(const CLI::App& root, std::span<const char* const> arguments)
      : app_(&root), arguments_(arguments) {}

  std::vector<std::string> run() {
    while (next_ < arguments_.size()) {
      const std::string word = arguments_[next_++];
      if (word == "--") {
        out_.push_back(word);
        while (next_ < arguments_.size()) push_positional(arguments_[next_++]);
      } else if (word.size() > 2 && word.starts_with("--")) {
        take_long(word);
      } else if (word.size() > 1 && word.front() == '-') {
        take_short(word);
      } else {
        take_word(word);
      }
    }
    return std::move(out_);
  }

 private:
  void take_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option& option = find(name);
    if (!takes_value(option)) {
      if (equals != std::string::npos) throw_usage(name + " takes no value", hint());
      out_.push_back(name);
    } else if (equals != std::string::npos) {
      push_value(option, name, word.substr(equals + 1));
    } else {
      push_value(option, name, next_value(option, name));
    }
  }

  // "-n5", "-qv": a flag leaves the rest to the next letter, a value takes it.
  void take_short(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const std::string name{'-', word[i]};
      const CLI::Option& option = find(name);
      if (takes_value(option)) {
        push_value(option, name,
                   i + 1 < word.size() ? word.substr(i + 1) : next_value(option, name));
        return;
      }
      out_.push_back(name);
    }
  }

  void take_word(const std::string& word) {
    if (app_->get_parent() == nullptr) {
      const auto found =
          app_->get_subcommands([&word](const CLI::App* sub) { return sub->get_name() == word; });
      if (found.empty()) {
        const std::string near = nearest(word, command_names(*app_));
        throw_usage("unknown command '" + word + "'",
                    near.empty() ? hint() : "did you mean '" + near + "'? " + hint());
      }
      app_ = found.front();
      out_.push_back(word);
    } else {
      push_positional(word);
    }
  }

  // CLI11 would read "[1,2]" as two words. No positional of ours looks like that.
  void push_positional(const std::string& word) {
    if (word.size() >= 2 && word.front() == '[' && word.back() == ']') {
      throw_usage("unexpected argument '" + word + "'", hint());
    }
    out_.push_back(word);
  }

  const CLI::Option& find(const std::string& name) const {
    const CLI::Option* option = app_->get_option_no_throw(name);
    if (option != nullptr) return *option;
    const std::string near = nearest(name, long_options(*app_));
    throw_usage("unknown option '" + name + "'",
                near.empty() ? hint() : "did you mean " + near + "? " + hint());
  }

  std::string next_value(const CLI::Option& option, const std::string& name) {
    if (next_ < arguments_.size()) return arguments_[next_++];
    throw_usage(name + " needs a value: " + option.get_type_name(), hint());
  }

  void push_value(const CLI::Option& option, const std::string& name, std::string value) {
    if (!repeats(option) && ++seen_[&option] > 1) throw_usage(name + " was given twice", hint());
    out_.push_back(name);
    out_.push_back(std::move(value));
  }

  std::string hint() const {
    if (app_->get_parent() == nullptr) return "see 'detrun --help'";
    return "see 'detrun " + app_->get_name() + " --help'";
  }

  const CLI::App* app_;
  std::span<const char* const> arguments_;
  std::size_t next_ = 0;
  std::vector<std::string> out_;
  std::map<const CLI::Option*, int> seen_;
};

}  // namespace

std::vector<std::string> normalize_arguments(const CLI::App& root,
                                             std::span<const char* const> arguments) {
  return Normalizer(root, arguments).run();
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  // Everything is near to two letters; the upper bound keeps this cheap.
  if (word.size() < 4 || word.size() > 40) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= 4 && candidate.starts_with(word);
    const std::size_t distance = begins ? 0 : edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

}  // namespace detrun::cli
