"""What the checks of compiled kernels share: finding tools, reading PTX and SASS as text.

No check is made here. PTX is split into kernels and instructions; SASS (the output of
`nvdisasm -c`) into kernels, each with its own code and the subroutines that ptxas appended.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77  # ctest's SKIP_RETURN_CODE


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def find_tool(name, *folders):
    """The first `name` in the folders, PATH, or where toolkits install; None without any."""
    for folder in list(folders) + [os.environ.get("CUDA_HOME", "") + "/bin"]:
        candidate = pathlib.Path(folder) / name
        if folder and candidate.is_file():
            return str(candidate)
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def run(*command):
    """Standard output and standard error of a command that has to succeed."""
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def parallel(function, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(function, items))


def ptx_files(build):
    """The PTX that the build made of every kernel file, from the list CMake wrote."""
    listing = pathlib.Path(build) / "kernels/cuda/ptx_files.txt"
    if not listing.is_file():
        skip("this build has no CUDA kernels (no toolkit, or DETRUN_CUDA=OFF)")
    files = [pathlib.Path(line) for line in listing.read_text().split("\n") if line]
    missing = [str(f) for f in files if not f.is_file()]
    if missing:
        sys.exit(f"not built: {' '.join(missing)} (cmake --build {build})")
    return files


def short_name(mangled):
    """detrun_gemv_f32 out of _ZN6detrun6device15detrun_gemv_f32EPKf..., for people; of a template
    over tensor types detrun_gemv_quant<Q4_K>."""
    for match in re.finditer(r"(?<=\d)detrun_", mangled):
        length = re.search(r"(\d+)$", mangled[:match.start()]).group(1)
        for digits in (length, length[-2:], length[-1:]):
            name = mangled[match.start():match.start() + int(digits)]
            if len(name) == int(digits):
                behind = mangled[match.start() + int(digits):]
                argument = re.match(r"I\w*?(\d+)Type(\w+)", behind)
                if argument is None:
                    return name
                return f"{name}<{argument.group(2)[:int(argument.group(1)) - len('Type')]}>"
    return mangled


# ---- PTX ----------------------------------------------------------------------------------------

class Ptx:
    """arch: 75; kernels: mangled name -> list of instructions, each (operation, whole text)."""

    def __init__(self, text):
        self.text = text
        target = re.search(r"^\.target\s+sm_(\d+)", text, re.M)
        self.arch = int(target.group(1)) if target else 0
        self.kernels = {}
        self.functions = re.findall(r"^(?:\.\w+\s+)*\.func\b[^\n]*", text, re.M)
        plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
        for match in re.finditer(r"\.entry\s+(\w+)\s*\([^)]*\)[^{]*\{(.*?)\n\}", plain, re.S):
            self.kernels[match.group(1)] = list(ptx_instructions(match.group(2)))


def ptx_instructions(body):
    for piece in re.split(r"[;{}]", body):
        text = re.sub(r"^\s*(?:[$\w]+:\s*)*", "", piece).strip()  # labels
        words = re.sub(r"^@!?%\w+\s+", "", text).split(None, 1)
        if words and not words[0].startswith("."):
            yield words[0], text


# ---- SASS ---------------------------------------------------------------------------------------

class Instruction:
    def __init__(self, predicate, operation, operands):
        self.operation = operation
        self.operands = operands.replace(".reuse", "")
        self.text = f"{predicate}{operation} {self.operands}".strip()


class Function:
    """A kernel's own instructions, and those of ptxas's subroutines by the name of each."""

    def __init__(self):
        self.own = []
        self.subroutines = {}
        self.labels = {}  # of the file -> numbered by appearance in the function

    def instruction(self, predicate, operation, operands):
        operands = re.sub(r"\.L_x_\d+|\$__internal_\d+",
                          lambda m: f".L{self.labels.setdefault(m.group(0), len(self.labels))}",
                          operands)
        return Instruction(predicate, operation, operands)


def parse_sass(text):
    """nvdisasm -c: {mangled kernel name: Function}."""
    functions, current, into = {}, None, None
    for line in text.split("\n"):
        section = re.match(r"\.text\.(\S+):", line)
        subroutine = re.match(r"(?:\$\S+)?\$__internal_\d+_\$(\S+):", line)
        code = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;", line)
        if section:
            current = functions.setdefault(section.group(1), Function())
            into = current.own
        elif subroutine and current:
            into = current.subroutines.setdefault(subroutine.group(1), [])
        elif code and current:
            into.append(current.instruction(code.group(1) or "", code.group(2), code.group(3)))
    return functions


def text_sections(elf):
    """{kernel name: machine code} of a cubin, an ELF file of 64 bits: its sections .text.NAME."""
    start, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3a)
    headers = [struct.unpack_from("<IIQQQQ", elf, start + size * i) for i in range(count)]
    found = {}
    for name_at, _, _, _, offset, length in headers:
        at = headers[names][4] + name_at
        name = elf[at:elf.index(b"\0", at)].decode()
        if name.startswith(".text."):
            found[name[len(".text."):]] = elf[offset:offset + length]
    return found
