#!/usr/bin/env python3
"""Checks that `--help`, man pages and shell completions name the same options; run as a test.

`check_man.py --detrun build/bin/detrun` compares; `--write` writes the completions anew out of
`--help`. One line a finding, exit 1 when there is any. Standard library only.
"""
import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTE = "written by scripts/check_man.py --write from `detrun --help`; not edited by hand"
FILE_METAVARS = {"FILE", "MODEL"}
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]


class Option:
    """One option as `--help` shows it."""

    def __init__(self, short, name, metavar, doc):
        self.short, self.name, self.metavar, self.doc = short, name, metavar, doc

    def names(self):
        return ([self.short] if self.short else []) + [self.name]

    def choices(self):
        return self.metavar.split("|") if "|" in self.metavar else []

    def takes_file(self):
        return self.metavar in FILE_METAVARS


class Command:
    """A command's name, summary and options; the root has the name "" and lists the commands."""

    def __init__(self, name, text):
        self.name = name
        first = text.split("\n", 1)[0]
        self.summary = first.split(" - ", 1)[1] if " - " in first else ""
        self.options = []
        self.commands = {}
        self.positional_run = bool(re.search(r"^  RUN ", text, re.M))
        group, entry = None, None
        for line in text.split("\n"):
            if re.match(r"\S.*:$", line):
                group, entry = line[:-1], None
            match = re.match(r" {2,6}(?:(-\w), )?(--[\w-]+)(?: (\S+))?(?: {2,}(.*))?$", line)
            if match:
                entry = Option(match[1], match[2], match[3] or "", match[4] or "")
                self.options.append(entry)
            elif entry and re.match(r" {20,}\S", line):
                entry.doc = (entry.doc + " " + line.strip()).strip()
            elif group == "Commands" and (match := re.match(r"  (\w+) {2,}(.*)$", line)):
                self.commands[match[1]] = match[2]


def read_help(program):
    def text_of(words):
        done = subprocess.run([program] + words, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    root = Command("", text_of(["--help"]))
    names = [name for name in root.commands if name != "help"]
    return root, [Command(name, text_of([name, "--help"])) for name in names]


# ---- man pages -------------------------------------------------------------------------------


def man_options(text):
    """{"--prompt": takes a value} out of lines such as `.It Fl p , Fl -prompt Ar TEXT`."""
    found = {}
    for line in re.findall(r"^\.It (Fl .*)$", text, re.M):
        for name in re.findall(r"Fl (-?[\w-]+)", line):
            found["-" + name] = bool(re.search(r" (Ar|Cm) ", line))
    return found


def check_page(command, path):
    findings = []
    if not path.is_file():
        return [f"{path.name}: there is no such page"]
    text = path.read_text(encoding="utf-8")
    for section in SECTIONS + (["OPTIONS"] if command.name else []):
        if not re.search(rf'^\.Sh "?{section}"?$', text, re.M):
            findings.append(f"{path.name}: no section {section}")
    summary = re.search(r"^\.Nd (.*)$", text, re.M)
    if summary is None or summary[1] != command.summary:
        findings.append(f"{path.name}: .Nd is not the summary of --help: {command.summary}")
    in_help = {name: bool(option.metavar) for option in command.options for name in option.names()}
    in_page = man_options(text)
    for name in sorted(in_help.keys() - in_page.keys()):
        findings.append(f"{path.name}: {name} of --help is not in the page")
    for name in sorted(in_page.keys() - in_help.keys()):
        findings.append(f"{path.name}: {name} is not in --help")
    for name in sorted(in_page.keys() & in_help.keys()):
        if in_page[name] != in_help[name]:
            findings.append(f"{path.name}: {name} takes a value in one of page and --help only")
    for name in command.commands:
        if name != "help" and not re.search(rf"detrun-{name}\b", text):
            findings.append(f"{path.name}: command {name} is not in the page")
    return findings


# ---- completions -----------------------------------------------------------------------------


def bash_completion(root, commands):
    out = [f"# bash completion of detrun; {NOTE}", "_detrun() {",
           "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}",
           "  local command= words= i", "  COMPREPLY=()",
           "  for ((i = 1; i < COMP_CWORD; i++)); do", "    case ${COMP_WORDS[i]} in",
           f"      {'|'.join(root.commands)}) command=${{COMP_WORDS[i]}}; break ;;", "    esac",
           "  done", "  case \"$command $prev\" in"]
    for command in [root] + commands:
        for option in command.options:
            if not option.metavar:
                continue
            pattern = "|".join(f'"{command.name} {name}"' for name in option.names())
            if option.choices():
                action = f'COMPREPLY=($(compgen -W "{" ".join(option.choices())}" -- "$cur")); '
            elif option.takes_file():
                action = 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); '
            else:
                action = ""
            out.append(f"    {pattern}) {action}return ;;")
    out += ["  esac", "  case $command in"]
    for command in commands:
        words = [name for option in command.options for name in option.names()]
        words += ["latest"] if command.positional_run else []
        out.append(f'    {command.name}) words="{" ".join(words)}" ;;')
    words = [name for option in root.options for name in option.names()]
    out += [f'    help) words="{" ".join(c.name for c in commands)}" ;;',
            f'    *) words="{" ".join(list(root.commands) + words)}" ;;', "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$cur"))', "}", "complete -F _detrun detrun"]
    return "\n".join(out) + "\n"


def zsh_quote(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_arguments(options, indent):
    out = []
    for option in options:
        value = ""
        if option.choices():
            value = f":{option.metavar.replace('|', ' or ')}:({' '.join(option.choices())})"
        elif option.metavar:
            value = f":{option.metavar}:" + ("_files" if option.takes_file() else " ")
        # -v may be given twice, --tag often; the rest once.
        often = option.name in ("--verbose", "--tag")
        for name in option.names():
            exclude = "" if often else f"({' '.join(option.names())})"
            star = "*" if often else ""
            out.append(f"{indent}'{exclude}{star}{name}[{zsh_quote(option.doc)}]{value}' \\")
    return out


def zsh_completion(root, commands):
    out = ["#compdef detrun", f"# zsh completion of detrun; {NOTE}", "_detrun() {",
           "  local context state line", "  local -a commands", "  commands=("]
    out += [f"    '{name}:{zsh_quote(doc)}'" for name, doc in root.commands.items()]
    out += ["  )", "  _arguments -C \\"] + zsh_arguments(root.options, "    ")
    out += ["    '1: :->command' \\", "    '*:: :->arguments'", "  case $state in",
            "    command) _describe command commands ;;", "    arguments)",
            "      case $words[1] in"]
    for command in commands:
        rest = "'*:run:(latest)'" if command.positional_run else "'*: : '"
        out += [f"        {command.name})", "          _arguments \\"]
        out += zsh_arguments(command.options, "            ")
        out += [f"            {rest}", "          ;;"]
    out += ["        help) _describe command commands ;;", "      esac", "      ;;", "  esac", "}",
            '_detrun "$@"']
    return "\n".join(out) + "\n"


def fish_quote(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def fish_completion(root, commands):
    out = [f"# fish completion of detrun; {NOTE}", "complete -c detrun -f"]
    for name, doc in root.commands.items():
        out.append(f"complete -c detrun -n __fish_use_subcommand -a {name} -d '{fish_quote(doc)}'")
    for command in [root] + commands:
        seen = ("__fish_use_subcommand" if not command.name else
                f"'__fish_seen_subcommand_from {command.name}'")
        for option in command.options:
            short = f" -s {option.short[1:]}" if option.short else ""
            value = ""
            if option.choices():
                value = f" -x -a '{' '.join(option.choices())}'"
            elif option.metavar:
                value = " -r -F" if option.takes_file() else " -x"
            out.append(f"complete -c detrun -n {seen}{short} -l {option.name[2:]}{value} "
                       f"-d '{fish_quote(option.doc)}'")
        if command.positional_run:
            out.append(f"complete -c detrun -n {seen} -a latest -d 'the newest run'")
    names = " ".join(command.name for command in commands)
    out.append(f"complete -c detrun -n '__fish_seen_subcommand_from help' -a '{names}'")
    return "\n".join(out) + "\n"


def check_bash(path):
    """Asks the completion itself for two answers."""
    bash = shutil.which("bash")
    if bash is None:
        print("SKIPPED: no bash, its completion was not tried")
        return []
    findings = []
    for words, answer in [("detrun rec", "record"), ("detrun record --led", "--ledger"),
                          ("detrun replay --mode s", "step"), ("detrun show la", "latest")]:
        script = (f"source {shlex.quote(str(path))}; COMP_WORDS=({words}); "
                  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _detrun; echo \"${COMPREPLY[*]}\"")
        done = subprocess.run([bash, "--norc", "-c", script], stdout=subprocess.PIPE, check=False)
        if done.stdout.decode().strip() != answer:
            findings.append(f"{path.name}: '{words}' completes to {done.stdout!r}, not {answer}")
    return findings


COMPLETIONS = {"detrun.bash": bash_completion, "detrun.zsh": zsh_completion,
               "detrun.fish": fish_completion}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--detrun", required=True, help="the program")
    parser.add_argument("--man", default=ROOT / "man", type=pathlib.Path)
    parser.add_argument("--completions", default=ROOT / "scripts/completions", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="write the completions anew")
    arguments = parser.parse_args()

    root, commands = read_help(arguments.detrun)
    findings = []
    for command in [root] + commands:
        if not command.options or not command.summary:
            findings.append(f"detrun {command.name} --help: no options or no summary found in it")
        name = f"detrun-{command.name}.1" if command.name else "detrun.1"
        findings += check_page(command, arguments.man / name)
    for name, make in COMPLETIONS.items():
        path, text = arguments.completions / name, make(root, commands)
        if arguments.write:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            findings.append(f"{name}: differs from --help; run scripts/check_man.py --write "
                            f"--detrun {arguments.detrun}")
    findings += check_bash(arguments.completions / "detrun.bash")
    for finding in findings:
        print(finding)
    print(f"{len(commands)} commands, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
