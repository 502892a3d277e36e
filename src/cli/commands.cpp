// THE table of subcommands. A new one: cmd_x.cpp, one row here, one man page, the completions anew
// (scripts/check_man.py --write).
#include "cli/commands.h"

#include <array>

namespace detrun::cli {
namespace {

constexpr std::array kCommands{
    CommandInfo{"record", "run a model once and log the run",
                "-m MODEL (-p TEXT | -f FILE | - | --tokens IDS |\n"
                "       --prompts FILE) [options]",
                "  detrun record -m model.gguf -p 'Claim 17: water damage.' -n 64\n"
                "  cat letter.txt | detrun record -m model.gguf --tag case=17 -\n"
                "  detrun record -m model.gguf --prompts cases.jsonl -n 64\n",
                "0 recorded, 2 bad input, 5 failed, 130 ended by Ctrl-C or SIGTERM", build_record},
    CommandInfo{"replay", "execute recorded runs again and compare every step",
                "(RUN... | --all | FILTER...) [options]",
                "  detrun replay latest\n"
                "  detrun replay --all --json > verdicts.json\n"
                "  detrun replay --since 7d --sample 10% --shard 1/4 --junit 1.xml\n",
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
    CommandInfo{"stress", "run one prompt many times in varied configurations",
                "-m MODEL (-p TEXT | -f FILE | - | --tokens IDS) [options]",
                "  detrun stress -m model.gguf -p 'Claim 17: water damage.' --runs 1000\n"
                "  detrun stress -m model.gguf -f prompt.txt --threads 1,8 --json\n",
                "0 as many distinct outputs as expected, 1 more or fewer,\n"
                "  2 bad input, 5 failed, 130 ended by Ctrl-C or SIGTERM",
                build_stress},
    CommandInfo{"bench", "measure speed against what the machine can do at most",
                "(-m MODEL | --shape SHAPE --type TYPE) [options]",
                "  detrun bench -m model.gguf\n"
                "  detrun bench --shape 1.1b --type q8_0 --only decode,prefill --json\n",
                "0 measured, 2 bad input, 5 failed, 130 ended by Ctrl-C or SIGTERM", build_bench},
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
