#!/usr/bin/env python3
"""Checks the PTX of every CUDA kernel: every floating-point operation names its rounding.

    check_ptx.py --build FOLDER    what the build made, every architecture; needs nvcc
    check_ptx.py --self-test       each rule must report a planted bad line; needs nothing

Shown: nvcc's front end left no approximation, no flush to zero, no unnamed rounding, no float
atomic, no tensor-core operation on floats and no call to a library; every kernel that the sources
declare is there for every architecture; and compiling with --fmad=true gives the very same PTX, so
no source line holds a plain a*b+c that only a flag keeps apart. Not shown: what ptxas makes of it
(check_sass.py), and that the operations are in the contract's order (the emulated tests).
"""
import argparse
import collections
import pathlib
import re
import sys
import tempfile

import cuda_tools as tools

FLOATS = {"f32", "f64", "f32x2"}
SMALL_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "tf32", "e4m3", "e5m2", "e4m3x2", "e5m2x2"}
ROUNDED = {"add", "sub", "mul", "div", "sqrt", "fma"}  # must say .rn
ARITHMETIC = ROUNDED | {"mad", "min", "max", "ex2", "tanh", "neg", "abs"}
APPROXIMATE = {"rcp", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh"}
DIRECTED = {"rz", "rm", "rp", "rna", "rs"}
COUNTED = ("fma.rn", "mul.rn", "add.rn", "div.rn", "sqrt.rn")


def fault(operation):
    """What is wrong with one PTX operation such as `mul.rn.f32`; None when nothing is."""
    base, *modifiers = operation.split(".")
    have = set(modifiers)
    floats = have & FLOATS
    if "ftz" in have:
        return "flushes subnormals to zero"
    if have & {"approx", "full"}:
        return "an approximation"
    if base in APPROXIMATE and have & (FLOATS | SMALL_FLOATS):
        return "a function the contract writes out itself"
    if base.startswith("mad") and floats:
        return "a multiply-add whose rounding depends on the architecture"
    if base in ROUNDED and floats and "rn" not in have:
        return "no rounding to nearest named: ptxas may fuse or round it otherwise"
    if base in ARITHMETIC and have & SMALL_FLOATS:
        return "arithmetic in a type smaller than binary32"
    if floats and "sat" in have:
        return "saturates"
    if base == "cvt" and modifiers[-2:-1] and modifiers[-2] in FLOATS | SMALL_FLOATS | {"sat"}:
        if have & DIRECTED:
            return "a conversion to floating point that does not round to nearest"
    if base in {"atom", "red", "multimem"} and have & (FLOATS | SMALL_FLOATS):
        return "a float atomic: its order is the scheduler's"
    if base in {"mma", "wmma", "wgmma", "tcgen05"} and have & (FLOATS | SMALL_FLOATS):
        return "a matrix operation on floats: its order of summation is the chip's"
    if base == "call":
        return "a call: kernels are complete in themselves"
    return None


def check_text(name, ptx):
    """One line a finding."""
    findings = [f"{name}: a function of its own: {line}" for line in ptx.functions]
    for kernel, instructions in ptx.kernels.items():
        for operation, text in instructions:
            why = fault(operation)
            if why:
                findings.append(f"{name}: {tools.short_name(kernel)}: {why}: {text}")
    return findings


def counts(instructions):
    found = collections.Counter()
    for operation, _ in instructions:
        base, *modifiers = operation.split(".")
        if "rn" in modifiers and set(modifiers) & FLOATS:
            found[("add" if base == "sub" else base) + ".rn"] += 1
    return [found[key] for key in COUNTED]


def declared_kernels():
    names = set()
    for path in sorted((tools.ROOT / "kernels/cuda").glob("*.cu*")):
        names.update(re.findall(r"\bDETRUN_KERNEL(?:_OF\([^)]*\))?\s+void\s+(\w+)\s*\(",
                                path.read_text()))
    return names


def ignores_fmad(nvcc, source, include):
    """True when the PTX of `source` is the same with and without --fmad."""
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        for fmad in ("true", "false"):
            output = pathlib.Path(folder) / "out.ptx"
            tools.run(nvcc, "-ptx", "-arch=sm_90", "-std=c++17", "-O3", "-DNDEBUG",
                      f"--fmad={fmad}", "-I", include, source, "-o", output)
            texts.append(output.read_text())
    return texts[0] == texts[1]


def check_build(build):
    nvcc = tools.find_tool("nvcc")
    if nvcc is None:
        tools.skip("no nvcc: the PTX of the CUDA kernels is not checked")
    findings, seen = [], collections.defaultdict(set)
    print(f"{'kernel':36} {'sm':>3} " + " ".join(f"{c:>7}" for c in COUNTED))
    for path in tools.ptx_files(build):
        ptx = tools.Ptx(path.read_text())
        findings += check_text(f"{path.name} sm_{ptx.arch}", ptx)
        for kernel, instructions in ptx.kernels.items():
            seen[ptx.arch].add(tools.short_name(kernel).split("<")[0])
            numbers = " ".join(f"{n:7}" for n in counts(instructions))
            print(f"{tools.short_name(kernel):36} {ptx.arch:3} {numbers}")
    for arch, names in seen.items():
        findings += [f"sm_{arch}: the kernel {name} is in kernels/cuda, but not in the PTX"
                     for name in sorted(declared_kernels() - names)]
    sources = sorted((tools.ROOT / "kernels/cuda").glob("*.cu"))
    same = tools.parallel(lambda source: ignores_fmad(nvcc, source, tools.ROOT), sources)
    findings += [f"{source.name}: --fmad changes its PTX: some operation names no rounding"
                 for source, equal in zip(sources, same) if not equal]
    for finding in findings:
        print(finding)
    n_kernels = sum(map(len, seen.values()))
    print(f"PTX: {n_kernels} kernels, {len(seen)} architectures, {len(findings)} findings")
    return 1 if findings or n_kernels == 0 else 0


GOOD = """fma.rn.f32 mul.rn.f32 add.rn.f32 sub.rn.f32 div.rn.f32 sqrt.rn.f32 max.f32 neg.f32 abs.f32
cvt.rn.f32.s32 cvt.f32.f16 cvt.rn.f16.f32 cvt.rni.s32.f32 cvt.rzi.s32.f32 setp.lt.f32 selp.f32
mad.lo.s32 atom.global.add.u32 ld.global.nc.f32 mov.f32 shfl.sync.bfly.b32 dp4a.s32.s32
mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 fma.rn.f64 mul.wide.u32 add.s64""".split()
BAD = {
    "add.rn.ftz.f32": "flushes", "setp.lt.ftz.f32": "flushes", "div.approx.f32": "approximation",
    "sqrt.approx.f32": "approximation", "div.full.f32": "approximation",
    "mad.f32": "multiply-add", "mad.rn.f64": "multiply-add", "add.f32": "rounding",
    "sub.f32": "rounding", "mul.f64": "rounding", "fma.rz.f32": "rounding",
    "div.rz.f32": "rounding", "sqrt.rp.f32": "rounding", "add.f32x2": "rounding",
    "rcp.rn.f32": "writes out", "rsqrt.f64": "writes out", "sin.f32": "writes out",
    "cos.f32": "writes out", "ex2.f32": "writes out", "lg2.f32": "writes out",
    "tanh.f32": "writes out", "add.rn.f16": "smaller", "fma.rn.bf16x2": "smaller",
    "add.rn.sat.f32": "saturates", "cvt.rz.f32.s32": "nearest", "cvt.rm.f16.f32": "nearest",
    "atom.global.add.f32": "atomic", "red.global.add.f32": "atomic", "red.add.f64": "atomic",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": "matrix",
    "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32": "matrix", "call.uni": "call",
}


def self_test():
    failed = []
    shell = ".version 8.0\n.target sm_90\n.visible .entry k(\n.param .u64 p\n)\n{\n%s\n}\n"

    def findings(line):
        return check_text("planted", tools.Ptx(shell % line))

    for operation in GOOD:
        if findings(f"$L_1:\n @%p1 {operation} \t%f1, %f2;"):
            failed.append(f"{operation} is allowed, but was reported")
    for operation, wanted in BAD.items():
        line = f"mov.f32 %f2, %f3; $L_1: @!%p1 {operation} %f1, %f2, %f3; // fine"
        if not any(wanted in f for f in findings(line)):
            failed.append(f"{operation} should be reported with '{wanted}'")
    if findings("// add.f32 %f1;\n/* rcp.approx.f32 */"):
        failed.append("a comment was reported")
    if not check_text("planted", tools.Ptx(".extern .func (.param .b32 r) expf\n" + shell % "")):
        failed.append("an external function should be reported")
    nvcc = tools.find_tool("nvcc")
    if nvcc:
        with tempfile.TemporaryDirectory() as folder:
            for expression, same in (("a * b + 1.0f", False), ("a * b", False),
                                     ("__fmaf_rn(a, b, 1.0f)", True)):
                source = pathlib.Path(folder) / "planted.cu"
                source.write_text("__global__ void k(float* x, float a, float b) "
                                  "{ x[0] = %s; }\n" % expression)
                if ignores_fmad(nvcc, source, folder) != same:
                    failed.append(f"{expression}: --fmad should {'not ' * same}change the PTX")
    else:
        print("skipped: no nvcc: that --fmad leaves the PTX alone is not tested")
    for line in failed:
        print(f"self-test: {line}")
    print(f"check_ptx self-test: {len(GOOD)} good, {len(BAD)} bad operations, "
          f"{len(failed)} failures")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", help="the build folder")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    return check_build(arguments.build)


if __name__ == "__main__":
    sys.exit(main())
