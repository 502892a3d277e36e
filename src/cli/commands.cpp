// THE table of subcommands. A new one: cmd_x.cpp, one row here, one man page, the completions anew
// (scripts/check_man.py --write).
#include "cli/commands.h"

#include <array>

namespace detrun::cli {
namespace {

constexpr std::array kCommands{
    CommandInfo{"record", "run a model once and log the run",
                "-m MODEL (-p TEXT | -f FILE | - | --tokens IDS) [options]",
                "  detrun record -m model.gguf -p 'Claim 17: water damage.' -n 64\n"
                "  cat letter.txt | detrun record -m model.gguf --tag case=17 -\n",
                "0 recorded, 2 bad input, 5 failed, 130 ended by Ctrl-C or SIGTERM", build_record},
    CommandInfo{"replay", "execute recorded runs again and compare every step",
                "(RUN... | --all) [options]",
                "  detrun replay latest\n"
                "  detrun replay --all --json > verdicts.json\n",
                "0 REPRODUCED, 1 DIVERGED, 2 bad input, 3 INCONCLUSIVE,\n"
                "  4 TAMPERED, 5 failed, 130 ended by Ctrl-C or SIGTERM",
                build_replay},
    CommandInfo{"verify", "check the seals of a ledger, without any model", "[options]",
                "  detrun verify\n"
                "  detrun verify --ledger evidence.db --json\n",
                "0 ok, 2 not a readable ledger, 4 TAMPERED, 5 failed", build_verify},
    CommandInfo{"list", "list the runs of a ledger", "[options]",
                "  detrun list\n"
                "  detrun list --json | jq -r .id\n",
                "0 listed, 2 not a readable ledger, 4 damaged ledger, 5 failed", build_list},
    CommandInfo{"show", "show one run: its fields, tokens, margins and stack", "RUN [options]",
                "  detrun show 3\n"
                "  detrun show latest --json | jq .tokens\n",
                "0 shown, 2 bad input, 3 no such run, 4 damaged ledger, 5 failed", build_show},
    CommandInfo{"fingerprint", "print the stack that runs here as canonical JSON", "[options]",
                "  detrun fingerprint > stack.json\n", "0 printed, 2 bad option, 5 failed",
                build_fingerprint},
    CommandInfo{"tokenize", "print the token ids of a text",
                "-m MODEL (-p TEXT | -f FILE | -) [options]",
                "  detrun tokenize -m model.gguf -p 'Hello world'\n"
                "  detrun tokenize -m model.gguf --bos -f prompt.txt\n",
                "0 printed, 2 bad input, 5 failed", build_tokenize},
};

}  // namespace

std::span<const CommandInfo> commands() { return kCommands; }

const CommandInfo* find_command(std::string_view name) {
  for (const CommandInfo& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

}  // namespace detrun::cli
