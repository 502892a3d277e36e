#!/usr/bin/env python3
"""Checks the house rules of src/README.md; run as a test (`ctest -R tidy`).

Include rule, third-party homes, sizes, banned words, file headers, file kinds. It reads files and
prints one line a finding; exit 1 when there is any. It never changes a file. Standard library only.
`tidy.py --self-test` breaks each rule in a scratch tree and demands that the finding is made.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Who may include which rooms' doors; the map of src/README.md. `backend.h` stands for backend.
ROOMS = {
    "core": [],
    "quant": ["core"],
    "format": ["core", "quant"],
    "tokenizer": ["core", "format"],
    "sampler": ["core"],
    "backend": ["core", "quant"],
    "model": ["core", "format", "quant", "backend"],
    "engine": ["core", "trace", "tokenizer", "sampler", "model", "backend"],
    "trace": ["core"],
    "ledger": ["core", "trace"],
    "compare": ["core", "trace"],
    "host": ["core", "trace", "backend"],
    "run": ["core", "quant", "format", "tokenizer", "sampler", "backend", "model", "engine",
            "trace", "ledger", "compare", "host"],
    "cli": ["run", "trace", "core", "compare"],
    "main": ["cli", "core"],
}
KERNEL_USERS = {"quant": "kernels/quant/", "sampler": "kernels/", "backend": "kernels/"}
DOORS = {  # door file -> room
    "error.h": "core", "log.h": "core", "digest.h": "core", "text.h": "core", "json.h": "core",
    "quant.h": "quant", "qtypes.def": "quant",
    "model_file.h": "format",
    "tokenizer.h": "tokenizer", "sampler.h": "sampler", "backend.h": "backend",
    "model.h": "model", "engine.h": "engine", "trace.h": "trace", "run_fields.def": "trace",
    "ledger.h": "ledger", "compare.h": "compare", "host.h": "host", "run.h": "run",
}
# Third-party headers and their one home.
HOMES = [
    (r"CLI/", "cli"), (r"sqlite3", "ledger"), (r"spdlog/|fmt/", "core"), (r"xxh", "core"),
    (r"openssl/", "core"), (r"nlohmann/", "core"), (r"pcre2", "tokenizer"),
    (r"utf8proc", "tokenizer"), (r"cuda|cublas", "backend"), (r"doctest/", "tests"),
]
BANNED = [
    (r"-ffast-math|-Ofast|use_fast_math", "fast math changes bits", r"tidy\.py$|\.cmake$"),
    (r"\batomicAdd\s*\(", "float atomics have no order", r"tidy\.py$"),
    (r"std::rand\b|random_device|\bsrand\b|mt19937.*time", "unseeded randomness", r"tidy\.py$"),
    (r"\bTO" r"DO\b|\bFIX" r"ME\b|\bXX" r"X\b|not imple" r"mented", "unfinished place", None),
    (r"using namespace std;", "no using namespace std", r"tidy\.py$"),
    (r"\bsetlocale\s*\(", "locale must not change a byte", r"^tests/"),
    (r"std::cout|std::cerr|\bprintf\s*\(|\bputs\s*\(", "only cli prints",
     r"^src/cli/|^src/main\.cpp$|^src/core/error\.cpp$|^tests/|^scripts/|^kernels/cuda/|^bench/"),
    (r"\bstd::exit\s*\(|\b_exit\s*\(|[^_a-z]exit\s*\(|\babort\s*\(", "only main exits",
     r"^src/main\.cpp$|^src/cli/|^src/core/error\.cpp$|^tests/|^scripts/|^kernels/cuda/emulation|"
     r"^src/run/competing_load\.cpp$"),  # there a child that could not become another program
    (r"\bnew [A-Za-z_]|\bdelete\b[^;]*;", "no naked new or delete",
     r"= delete|\.py$|\.sh$|\.sql$|^scripts/|^fixtures/|^README|^CHANGELOG"),
]
LINES_MAX = {".h": 400, ".cpp": 400, ".cu": 400, ".cuh": 400, ".py": 500, ".sh": 200, ".def": 400}
# A larger file wants a reason, given here.
LARGE = {"scripts/train_fixture_model.py": 510}  # one recipe, read from top to bottom
FUNCTION_LINES_MAX = 80
COLUMNS_MAX = 100
KINDS = {".h", ".cpp", ".cu", ".cuh", ".def", ".sql", ".py", ".sh", ".md", ".txt", ".json", ".in",
         ".cmake", ".gguf", ".db", ".1", ".5", ".7", ".bash", ".zsh", ".fish", ".jsonl", ".ptx"}
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".def"}
SIZE_MAX = 4 << 20
CORPUS = "tests/fuzz/corpus/"  # hostile bytes: no rule of text applies
ROOT_ALLOWED = {"CMakeLists.txt", "README.md", "CMakePresets.json", "CHANGELOG.md", "LICENSE",
                "DEVELOPERS.md"}
TOP_ALLOWED = {"src", "include", "kernels", "scripts", "tests", "fixtures", "man", "packaging",
               ".ci"}


class Tidy:
    def __init__(self, root, files):
        self.root = pathlib.Path(root)
        self.files = files
        self.findings = []

    def say(self, path, line, message):
        self.findings.append(f"{path}:{line}: {message}")

    def run(self):
        for path in self.files:
            self.check_place(path)
            full = self.root / path
            if not full.is_file() or full.suffix in {".gguf", ".db"} or path.startswith(CORPUS):
                continue
            try:
                text = full.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                self.say(path, 1, "not UTF-8")
                continue
            lines = text.split("\n")
            self.check_shape(path, text, lines)
            self.check_words(path, lines)
            if pathlib.Path(path).suffix in SOURCES:
                self.check_includes(path, lines)
                self.check_functions(path, lines)
        return self.findings

    def check_place(self, path):
        parts = pathlib.PurePosixPath(path).parts
        if len(parts) == 1:
            if not (parts[0].startswith(".") or parts[0] in ROOT_ALLOWED):
                self.say(path, 1, "does not belong at the top level")
        elif parts[0] not in TOP_ALLOWED:
            self.say(path, 1, f"unknown top-level folder {parts[0]}")
        suffix = pathlib.PurePosixPath(path).suffix
        if suffix not in KINDS and not path.startswith(".") and parts[-1] not in ROOT_ALLOWED:
            if not path.startswith(("fixtures/", CORPUS)):
                self.say(path, 1, f"unknown kind of file '{suffix}'")
        full = self.root / path
        if full.is_file() and full.stat().st_size > SIZE_MAX:
            self.say(path, 1, f"larger than {SIZE_MAX} bytes")
        if suffix in SOURCES | {".py"} and not re.fullmatch(r"[a-z0-9_.]+", parts[-1]):
            self.say(path, 1, "file names are snake_case")

    def check_shape(self, path, text, lines):
        suffix = pathlib.PurePosixPath(path).suffix
        limit = LARGE.get(path, LINES_MAX.get(suffix))
        if limit and len(lines) > limit + 1:
            self.say(path, len(lines), f"{len(lines)} lines, limit {limit}")
        if text and not text.endswith("\n"):
            self.say(path, len(lines), "no newline at the end")
        if path.startswith("fixtures/"):
            return
        for number, line in enumerate(lines, 1):
            if suffix in (SOURCES | {".py", ".sh"}) - {".def"} and len(line) > COLUMNS_MAX:
                self.say(path, number, f"{len(line)} columns, limit {COLUMNS_MAX}")
            if line != line.rstrip() and suffix not in {".md"}:
                self.say(path, number, "space at the end of the line")
            if "\t" in line and suffix in SOURCES | {".py"}:
                self.say(path, number, "tab")
        if suffix in {".h", ".cpp", ".cu", ".cuh"} and not lines[0].startswith("//"):
            self.say(path, 1, "a file opens with its job in a comment")
        if suffix == ".h" and "#pragma once" not in text:
            self.say(path, 1, "no #pragma once")

    def check_words(self, path, lines):
        suffix = pathlib.PurePosixPath(path).suffix
        if suffix not in SOURCES | {".py", ".sh", ".txt", ".cmake", ".json"}:
            return
        for number, line in enumerate(lines, 1):
            code = re.sub(r'"(\\.|[^"\\])*"', '""', line) if suffix in SOURCES else line
            comment_free = code.split("//")[0] if suffix in SOURCES else code
            for pattern, why, allowed in BANNED:
                if allowed and (re.search(allowed, path) or re.search(allowed, line)):
                    continue
                where = line if "unfinished" in why else comment_free
                if re.search(pattern, where):
                    self.say(path, number, f"banned: {why}")

    def room_of(self, path):
        parts = pathlib.PurePosixPath(path).parts
        if parts[0] == "tests":
            return "tests"
        if parts[0] == "kernels":
            return "kernels"
        if parts[0] == "include":
            return DOORS.get(parts[-1], "?" + parts[-1])
        if parts[0] == "src":
            return "main" if len(parts) == 2 else parts[1]
        return None

    def check_includes(self, path, lines):
        room = self.room_of(path)
        if room is None:
            return
        if room.startswith("?"):
            self.say(path, 1, "a front door that scripts/tidy.py does not know")
            return
        for number, line in enumerate(lines, 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if match:
                self.check_include(path, number, room, match.group(1) == '"', match.group(2))

    def check_include(self, path, number, room, quoted, name):
        for pattern, home in HOMES:
            if re.match(pattern, name) and not quoted and home != room:
                cuda = (home == "backend" and room == "kernels" and "/cuda/" in path
                        and not name.startswith("cublas"))
                if not cuda and room != "tests":
                    self.say(path, number, f"<{name}> is at home in {home}, not in {room}")
            if name.startswith("cublas") and not quoted and path.startswith("src/backend/"):
                if not path.startswith("src/backend/cuda/cublas_lt"):
                    self.say(path, number, f"<{name}> is at home in src/backend/cuda/cublas_lt*")
            if re.match(pattern, name) and not quoted and path.startswith("include/"):
                self.say(path, number, f"<{name}> may not appear in a front door")
        if room == "tests":
            return
        if room == "kernels":
            self.check_kernel_include(path, number, quoted, name)
            return
        if not quoted:
            return
        if name.startswith("detrun/"):
            other = DOORS.get(name.split("/")[-1])
            if other is None:
                self.say(path, number, f"unknown front door {name}")
            elif other != room and other not in ROOMS.get(room, []):
                self.say(path, number, f"{room} may not include {other}")
        elif name.startswith("kernels/"):
            allowed = KERNEL_USERS.get(room)
            if allowed is None or not name.startswith(allowed):
                self.say(path, number, f"{room} may not include {name}")
        else:
            owner = name.split("/")[0] if "/" in name else room
            if owner != room and not (room == "main" and owner == "cli"):
                self.say(path, number, f"{room} may not include the inside of {owner}")

    def check_kernel_include(self, path, number, quoted, name):
        if quoted:
            if not name.startswith("kernels/") and name != "detrun/qtypes.def":
                self.say(path, number, f"kernels may not include {name}")
        elif name not in {"cstdint", "cstddef", "cstring", "immintrin.h", "arm_neon.h"}:
            if "/cuda/" not in path:
                self.say(path, number, f"kernels may not include <{name}>: pointers and PODs only")

    def check_functions(self, path, lines):
        """A function body opens with '{' at the end of an unindented line and closes with '}'."""
        start = None
        for number, line in enumerate(lines, 1):
            opens = re.match(r"^[A-Za-z_].*\)( const| noexcept| override)*.*\{$", line)
            if start is None and opens:
                if not line.startswith(("namespace", "class", "struct", "enum", "extern", "TEST")):
                    start = number
            elif line == "}" and start is not None:
                if number - start > FUNCTION_LINES_MAX:
                    self.say(path, start, f"function of {number - start} lines, "
                                          f"limit {FUNCTION_LINES_MAX}")
                start = None
            elif line.startswith("}"):
                start = None


def tracked_files(root):
    """Files git tracks or would track; outside a checkout every file."""
    try:
        result = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                                capture_output=True, text=True, check=False)
        if result.returncode == 0 and result.stdout:
            return sorted(set(result.stdout.split("\n")) - {""})
    except FileNotFoundError:
        pass  # no git here: every file below, but for what builds leave
    found = []
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if not n.startswith((".git", "build")) and n != "__pycache__"]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files
                  if not f.startswith("detrun.db")]
    return sorted(found)


def self_test():
    """Each broken tree must give the finding named beside it."""
    good = "// Job.\n#pragma once\n"
    cases = [
        ("src/model/a.h", good + '#include "detrun/ledger.h"\n', "model may not include ledger"),
        ("src/model/a.h", good + '#include "ledger/schema.h"\n', "inside of ledger"),
        ("src/model/a.h", good + "#include <sqlite3.h>\n", "at home in ledger"),
        ("src/backend/cuda/cuda_a.h", good + "#include <cublasLt.h>\n", "backend/cuda/cublas_lt"),
        ("kernels/cuda/a.h", good + "#include <cublasLt.h>\n", "at home in backend"),
        ("include/detrun/log.h", good + "#include <spdlog/spdlog.h>\n", "front door"),
        ("kernels/a.h", good + "#include <vector>\n", "pointers and PODs"),
        ("src/engine/a.h", good + '#include "kernels/math.h"\n', "engine may not include kernels"),
        ("src/core/a.h", good + "int f() { std::" "cout << 1; }\n", "only cli prints"),
        ("src/core/a.h", good + "// TO" "DO later\n", "unfinished"),
        ("src/core/a.h", good + "x" * 101 + "\n", "101 columns"),
        ("src/core/a.h", "#pragma once\n", "opens with its job"),
        ("src/core/a.h", good + "int x;\n" * 400, "limit 400"),
        ("src/core/a.cpp", "// Job.\nvoid f(int x) {\n" + "  x;\n" * 90 + "}\n", "function of"),
        ("src/core/a.h", good + "int x; \n", "space at the end"),
        ("src/core/a.h", good + "auto* p = new int;\n", "naked new"),
        ("stray.txt", "x\n", "top level"),
        ("src/core/BadName.h", good, "snake_case"),
        ("CMakeLists.txt", "set(F -ffast" "-math)\n", "fast math"),
    ]
    failed = 0
    for path, content, wanted in cases:
        with tempfile.TemporaryDirectory() as root:
            full = pathlib.Path(root) / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(content)
            findings = Tidy(root, [path]).run()
            if not any(wanted in finding for finding in findings):
                print(f"self-test: {path} should give '{wanted}', gave {findings}")
                failed += 1
    print(f"tidy self-test: {len(cases) - failed} of {len(cases)} rules fire")
    return 1 if failed else 0


def main():
    root = str(pathlib.Path(__file__).resolve().parent.parent)
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    findings = Tidy(root, tracked_files(root)).run()
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
