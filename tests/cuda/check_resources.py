#!/usr/bin/env python3
"""Registers, stack, spills and shared memory of every CUDA kernel, guarded by a recorded table.

    check_resources.py --build FOLDER           print the table and compare it with the record
    check_resources.py --build FOLDER --write   record it: fixtures/cuda/resources.txt
    check_resources.py --self-test              each rule must report a planted change

The numbers are ptxas's, for the PTX the build made; they belong to one version of nvcc, so with
another one the table is printed and the comparison skipped. A kernel fails when its stack or its
spills grow, when it takes more than 8 registers above the record, or more than 255, or when it has
no record. Not shown: occupancy and speed.
"""
import argparse
import re
import sys
import tempfile

import cuda_tools as tools

RECORD = tools.ROOT / "fixtures/cuda/resources.txt"
REGISTER_SLACK = 8
REGISTERS_MAX = 255
COLUMNS = ("registers", "stack", "spilled", "shared")
USED = re.compile(r"Used (\d+) registers")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def parse_report(text):
    """ptxas -v: {(kernel, arch): (registers, stack, spilled bytes, shared bytes)}."""
    found = {}
    pieces = re.split(r"Compiling entry function '(\w+)' for 'sm_(\d+)'", text)
    for name, arch, report in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
        stack, stores, loads = map(int, SPILLS.search(report).groups())
        shared = re.search(r"(\d+) bytes smem", report)
        found[tools.short_name(name), int(arch)] = (
            int(USED.search(report).group(1)), stack, stores + loads,
            int(shared.group(1)) if shared else 0)
    return found


def measure(ptxas, path):
    arch = tools.Ptx(path.read_text()).arch
    with tempfile.NamedTemporaryFile(suffix=".cubin") as output:
        return parse_report(tools.run(ptxas, "-v", "-m64", f"-arch=sm_{arch}", "--fmad=false", path,
                                      "-o", output.name))


def table(version, found):
    lines = [f"# Made by tests/cuda/check_resources.py --write. nvcc {version}", "#",
             f"{'# kernel':36} {'sm':>3} " + " ".join(f"{c:>9}" for c in COLUMNS)]
    for (name, arch), numbers in sorted(found.items()):
        lines.append(f"{name:36} {arch:3} " + " ".join(f"{n:9}" for n in numbers))
    return "\n".join(lines) + "\n"


def parse_table(text):
    version = re.search(r"nvcc (\S+)", text)
    found = {}
    for line in text.split("\n"):
        words = line.split()
        if words and not line.startswith("#"):
            found[words[0], int(words[1])] = tuple(map(int, words[2:]))
    return version.group(1) if version else None, found


def compare(recorded, found):
    findings = []
    for key, (registers, stack, spilled, _) in sorted(found.items()):
        where = f"{key[0]} sm_{key[1]}"
        if registers > REGISTERS_MAX:
            findings.append(f"{where}: {registers} registers, at most {REGISTERS_MAX}")
        if key not in recorded:
            findings.append(f"{where}: no record")
            continue
        had = recorded[key]
        if registers > had[0] + REGISTER_SLACK:
            findings.append(f"{where}: {registers} registers, recorded {had[0]}")
        if stack > had[1]:
            findings.append(f"{where}: {stack} bytes of stack, recorded {had[1]}")
        if spilled > had[2]:
            findings.append(f"{where}: {spilled} bytes spilled, recorded {had[2]}")
    built = {arch for _, arch in found}
    findings += [f"{name} sm_{arch}: recorded, but not built"
                 for name, arch in sorted(recorded.keys() - found.keys()) if arch in built]
    return findings


def check_build(build, write):
    ptxas = tools.find_tool("ptxas")
    if ptxas is None:
        tools.skip("no ptxas: registers and spills of the CUDA kernels are not checked")
    version = re.search(r"V(\d+\.\d+\.\d+)", tools.run(ptxas, "--version")).group(1)
    found = {}
    for part in tools.parallel(lambda path: measure(ptxas, path), tools.ptx_files(build)):
        found.update(part)
    print(table(version, found), end="")
    if write:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(table(version, found))
        return 0
    if not RECORD.is_file():
        sys.exit(f"{RECORD.relative_to(tools.ROOT)} is missing (--write makes it)")
    recorded_version, recorded = parse_table(RECORD.read_text())
    if recorded_version != version:
        tools.skip(f"the record is of nvcc {recorded_version}, this is {version}: not compared")
    findings = compare(recorded, found)
    for finding in findings:
        print(finding)
    print(f"resources: {len(found)} kernels, {len(findings)} findings "
          f"(check_resources.py --write records a wanted change)")
    return 1 if findings or not found else 0


def self_test():
    report = ("ptxas info : Compiling entry function '_ZN6detrun6device10detrun_addEPf' "
              "for 'sm_75'\n"
              "ptxas info : Function properties for x\n"
              "    32 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
              "ptxas info : Used 24 registers, used 1 barriers, 512 bytes smem, 8 bytes cmem\n")
    base = parse_report(report)
    key = ("detrun_add", 75)
    failed = []
    if base != {key: (24, 32, 12, 512)}:
        failed.append(f"the report of ptxas was read as {base}")
    template = "_ZN6detrun6device17detrun_gemm_quantINS_7kernels10TypeIQ4_XSEEEvNS_4cuda6PlanesE"
    if tools.short_name(template) != "detrun_gemm_quant<IQ4_XS>":
        failed.append(f"a kernel of a type is called {tools.short_name(template)}")
    if parse_table(table("1.2.3", base)) != ("1.2.3", base):
        failed.append("a written table does not come back")
    for change, word in (((25 + 8, 32, 12, 512), "registers, recorded"),
                         ((24, 33, 12, 512), "stack"), ((24, 32, 13, 512), "spilled"),
                         ((256, 32, 12, 512), "at most 255")):
        if not any(word in f for f in compare(base, {key: change})):
            failed.append(f"{change} should be reported with '{word}'")
    if compare(base, {key: (32, 0, 0, 9999)}):
        failed.append("a change within the limits was reported")
    if not compare({}, base) or not compare({**base, ("gone", 75): (1, 0, 0, 0)}, base):
        failed.append("a kernel without record, or a record without kernel, should be reported")
    for line in failed:
        print(f"self-test: {line}")
    print(f"check_resources self-test: {len(failed)} failures")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", help="the build folder")
    parser.add_argument("--write", action="store_true", help="record the table")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    return self_test() if arguments.self_test else check_build(arguments.build, arguments.write)


if __name__ == "__main__":
    sys.exit(main())
