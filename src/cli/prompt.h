// Where a prompt comes from: -p, -f, - or --tokens, exactly one of them. Its bytes stay as given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace detrun::cli {

struct PromptArguments {
  std::optional<std::string> text, file, tokens;
  std::vector<std::string> words;  ///< positionals: only "-" is one
  bool with_tokens = false;
};

struct Prompt {
  std::string source;  ///< text, file, stdin, tokens
  std::string bytes;
  std::optional<std::vector<std::int32_t>> tokens;
};

/// Declares the options; `with_tokens` adds --tokens.
void add_prompt_options(CLI::App& app, PromptArguments& to, bool with_tokens);
/// Error kUsage: none or several given, unreadable, larger than kPromptBytesMax.
Prompt read_prompt(const PromptArguments& arguments);
inline constexpr std::size_t kPromptBytesMax = std::size_t{256} << 20;

/// "1,2,3" or "1 2 3" (what `tokenize` prints); Error kUsage on anything else.
std::vector<std::int32_t> parse_tokens(std::string_view text);

}  // namespace detrun::cli
