// Files are read by read(2) in blocks, so that pipes and devices work and nothing is translated.
#include "cli/prompt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "cli/options.h"
#include "detrun/error.h"
#include "detrun/text.h"

namespace detrun::cli {
namespace {

constexpr const char* kGroup = "Prompt (exactly one)";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > 2) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string read_all(int fd, const std::string& what) {
  std::string bytes;
  std::vector<char> block(std::size_t{1} << 16);
  while (true) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n == 0) return bytes;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_usage("cannot read the prompt from " + what + ": " + std::strerror(errno));
    bytes.append(block.data(), static_cast<std::size_t>(n));
    if (bytes.size() > kPromptBytesMax) {
      throw_usage("the prompt in " + what + " is larger than " + std::to_string(kPromptBytesMax) +
                  " bytes");
    }
  }
}

std::string read_file(const std::string& path) {
  if (path.empty()) throw_usage("-f: the file name is empty");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    throw_usage("cannot open the prompt file '" + path + "': " + std::strerror(errno));
  }
  return read_all(file.get(), "'" + path + "'");
}

}  // namespace

void add_prompt_options(CLI::App& app, PromptArguments& to, bool with_tokens) {
  to.with_tokens = with_tokens;
  add_text(app, {"-p,--prompt", "TEXT", kGroup, "the text itself; an empty one is valid"}, to.text);
  add_text(app, {"-f,--file", "FILE", kGroup, "the bytes of a file, as they are"}, to.file);
  // The positional's name is never typed; `--help` shows its metavar, "-".
  add_texts(app, {"source", "-", kGroup, "standard input"}, to.words);
  if (with_tokens) {
    add_text(app, {"--tokens", "IDS", kGroup, "token ids, used as they are: 1,2,3"}, to.tokens);
  }
}

Prompt read_prompt(const PromptArguments& arguments) {
  for (const std::string& word : arguments.words) {
    if (word != "-") {
      throw_usage("unexpected argument '" + word + "'", "text for the model follows -p; quote it");
    }
  }
  const bool from_stdin = !arguments.words.empty() || arguments.file == "-";
  std::string given;
  int n_given = 0;
  const auto count = [&](bool present, const char* name) {
    if (!present) return;
    given += (n_given++ == 0 ? "" : " and ") + std::string(name);
  };
  count(arguments.text.has_value(), "-p");
  count(arguments.file.has_value(), "-f");
  count(!arguments.words.empty(), "-");
  count(arguments.tokens.has_value(), "--tokens");
  const std::string choices = arguments.with_tokens
                                  ? "-p TEXT, -f FILE, - (standard input) or --tokens IDS"
                                  : "-p TEXT, -f FILE or - (standard input)";
  if (n_given == 0) throw_usage("no prompt given", "use one of " + choices);
  if (n_given > 1) throw_usage("several prompts given: " + given, "use one of " + choices);

  if (arguments.tokens) return {"tokens", {}, parse_tokens(*arguments.tokens)};
  if (from_stdin) return {"stdin", read_all(0, "standard input"), {}};
  if (arguments.file) return {"file", read_file(*arguments.file), {}};
  return {"text", *arguments.text, {}};
}

std::vector<std::int32_t> parse_tokens(std::string_view text) {
  std::vector<std::int32_t> tokens;
  while (true) {
    const std::size_t end = text.find_first_of(", \n");
    const std::string_view word = text.substr(0, end);
    const auto id = parse_i64(word);
    if (id && *id >= 0 && *id <= std::numeric_limits<std::int32_t>::max()) {
      tokens.push_back(static_cast<std::int32_t>(*id));
    } else if (!word.empty() || end == std::string_view::npos || text[end] == ',') {
      throw_usage("--tokens: expected ids such as 1,2,3, found '" + std::string(word) + "'");
    }
    if (end == std::string_view::npos) return tokens;
    text.remove_prefix(end + 1);
  }
}

}  // namespace detrun::cli
