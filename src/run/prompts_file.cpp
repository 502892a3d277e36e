// See prompts_file.h. What a member may be follows from the table of run options.
#include "run/prompts_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "detrun/error.h"
#include "detrun/json.h"
#include "detrun/text.h"
#include "run/recording.h"

namespace detrun {
namespace {

/// Options of `record` that are no run's own. One of them in a line is worth a message of its own.
constexpr std::array<std::string_view, 17> kProcessOptions = {
    "model",   "prompts", "strict",  "file",     "ledger", "no-ledger",
    "threads", "backend", "device",  "no-graph", "echo",   "json",
    "quiet",   "help",    "verbose", "log-file", "color"};

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string cut(text.substr(0, kShown));
  cut.resize(complete_utf8_prefix(cut));
  return "'" + escape_for_terminal(cut) + (text.size() > kShown ? "..." : "") + "'";
}

std::string known_members() {
  std::string known = "prompt, tokens, tags, tag";
  for (const RunOption& option : run_options()) known += std::string(", ") + option.name;
  return known;
}

/// The whole of a descriptor, bounded.
std::string read_all(int fd, const std::string& path) {
  std::string bytes;
  std::vector<char> block(std::size_t{1} << 16);
  for (;;) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n == 0) return bytes;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_usage("cannot read the prompts file " + path + ": " + std::strerror(errno));
    bytes.append(block.data(), static_cast<std::size_t>(n));
    if (bytes.size() > kPromptsFileBytesMax) {
      throw_usage("the prompts file " + path + " is larger than " +
                      std::to_string(kPromptsFileBytesMax) + " bytes",
                  "split it");
    }
  }
}

/// Closes what was opened.
class InputFile {
 public:
  explicit InputFile(const std::string& path)
      : fd_(path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~InputFile() {
    if (fd_ > 2) ::close(fd_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Fills RecordOptions from the members of one line.
class LineReader {
 public:
  explicit LineReader(const RecordOptions& defaults) : options_(defaults) {
    options_.prompt.clear();
    options_.tokens.reset();
    options_.tags.clear();
  }

  RecordOptions read(const Json& line, const RecordOptions& defaults) {
    if (!line.is_object()) throw_usage("not a JSON object", "write {\"prompt\": \"...\"}");
    for (const auto& [name, value] : line.as_object()) take(name, value);
    if (n_prompts_ == 0) throw_usage("no prompt: give 'prompt' or 'tokens'");
    if (n_prompts_ > 1) throw_usage("both 'prompt' and 'tokens' are given");
    for (const auto& [key, value] : defaults.tags) {
      const auto same = [&key = key](const auto& tag) { return tag.first == key; };
      if (std::none_of(options_.tags.begin(), options_.tags.end(), same)) {
        options_.tags.emplace_back(key, value);
      }
    }
    check_record_options(options_);
    return std::move(options_);
  }

 private:
  void take(const std::string& name, const Json& value) {
    if (name == "prompt") return take_prompt(value);
    if (name == "tokens") return take_tokens(value);
    if (name == "tags") return take_tags(value);
    if (name == "tag") return take_tag_words(value);
    if (name == "chat") {
      throw_usage("'chat': this build has no chat templates",
                  "supported are 'prompt' and 'tokens'");
    }
    for (const RunOption& option : run_options()) {
      if (name == option.name) return take_option(option, value);
    }
    if (std::find(kProcessOptions.begin(), kProcessOptions.end(), name) != kProcessOptions.end()) {
      throw_usage("'" + name + "' is an option of the whole recording, not of a line",
                  "give --" + name + " on the command line");
    }
    throw_usage("unknown member " + quoted(name), "known are " + known_members());
  }

  void take_prompt(const Json& value) {
    if (!value.is_string()) throw_usage("'prompt' is not a string");
    ++n_prompts_;
    options_.prompt_source = "text";
    options_.prompt = value.as_string();
  }

  void take_tokens(const Json& value) {
    if (!value.is_array()) throw_usage("'tokens' is not an array of token ids");
    ++n_prompts_;
    options_.prompt_source = "tokens";
    std::vector<std::int32_t>& tokens = options_.tokens.emplace();
    tokens.reserve(value.as_array().size());
    for (const Json& id : value.as_array()) {
      const auto number = parse_i64(id.is_integer() ? id.dump() : std::string());
      if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max()) {
        throw_usage("'tokens': element " + std::to_string(tokens.size()) + " is no token id");
      }
      tokens.push_back(static_cast<std::int32_t>(*number));
    }
  }

  void take_tags(const Json& value) {
    if (!value.is_object()) throw_usage("'tags' is not an object of strings");
    for (const auto& [key, text] : value.as_object()) {
      if (!text.is_string()) throw_usage("'tags': the value of " + quoted(key) + " is no string");
      options_.tags.emplace_back(key, text.as_string());
    }
  }

  void take_tag_words(const Json& value) {
    const JsonArray words = value.is_array() ? value.as_array() : JsonArray{value};
    for (const Json& word : words) {
      if (!word.is_string()) throw_usage("'tag' is neither \"KEY=VALUE\" nor an array of such");
      add_tag(options_, word.as_string(), "'tag'");
    }
  }

  void take_option(const RunOption& option, const Json& value) {
    const std::string name = std::string("'") + option.name + "'";
    if (option.set_number != nullptr) {
      const auto number = parse_u64(value.is_integer() ? value.dump() : std::string());
      if (!number || *number < option.low || *number > option.high) {
        throw_usage(name + " is not a whole number from " + std::to_string(option.low) + " to " +
                    std::to_string(option.high));
      }
      option.set_number(options_, *number);
      return;
    }
    if (!value.is_string()) throw_usage(name + " is not a string");
    const std::string& word = value.as_string();
    std::string known;
    for (const std::string& choice : option.choices) {
      if (choice == word) {
        options_.*option.word = word;
        return;
      }
      known += (known.empty() ? "" : ", ") + choice;
    }
    throw_usage(name + ": unknown value " + quoted(word) + "; known: " + known);
  }

  RecordOptions options_;
  int n_prompts_ = 0;
};

}  // namespace

PromptsFile split_prompts(std::string bytes, const std::string& path) {
  PromptsFile file;
  file.bytes = std::move(bytes);
  file.sha256 = sha256(file.bytes);
  const std::string_view all = file.bytes;
  if (all.starts_with("\xff\xfe") || all.starts_with("\xfe\xff")) {
    throw_usage("the prompts file " + path + " is UTF-16", "write it as UTF-8");
  }
  std::size_t begin = all.starts_with("\xef\xbb\xbf") ? 3 : 0;
  for (std::uint64_t number = 1; begin < all.size(); ++number) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    if (all.substr(begin, end - begin).find_first_not_of(" \t\r") != std::string_view::npos) {
      file.lines.push_back({number, begin, end - begin});
    }
    begin = end + 1;
  }
  if (file.lines.empty()) throw_usage("the prompts file " + path + " holds no prompt");
  return file;
}

PromptsFile read_prompts_file(const std::string& path) {
  if (path.empty()) throw_usage("--prompts: the file name is empty");
  const std::string shown = path == "-" ? "on standard input" : quoted(path);
  const InputFile input(path);
  if (input.get() < 0) {
    throw_usage("cannot open the prompts file " + shown + ": " + std::strerror(errno));
  }
  return split_prompts(read_all(input.get(), shown), shown);
}

RecordOptions parse_prompts_line(std::string_view line, const RecordOptions& defaults) {
  if (line.size() > kPromptsLineBytesMax) {
    throw_usage("longer than " + std::to_string(kPromptsLineBytesMax) + " bytes");
  }
  if (!is_utf8(line)) throw_usage("not valid UTF-8");
  return LineReader(defaults).read(Json::parse(line, "the line"), defaults);
}

}  // namespace detrun
