#!/usr/bin/env python3
"""Checks the machine code of every CUDA kernel: ptxas fused, flushed and approximated nothing.

    check_sass.py --build FOLDER   the library the build made; needs nvcc's ptxas, cuobjdump and
                                   nvdisasm (scripts/fetch_sass_tools.sh puts these into FOLDER)
    check_sass.py --self-test --build FOLDER   planted bad code must be reported

How. The library's code has to be exactly what ptxas makes of the PTX that check_ptx.py checks.
The PTX is then assembled twice more with marked roundings: once every fma.rn becomes fma.rz, once
every add.rn, sub.rn and mul.rn becomes .rz. ptxas makes the same code but for the marks, so every
FFMA, FADD and FMUL, unrolled or not, tells which PTX operation it stems from. What bears no mark
and still computes has to be ptxas's own expansion of div.rn, sqrt.rn or an integer division: small
kernels with only those give the allowed operations, FCHK, MUFU.RSQ and I2F.RP count the uses.

Shown: no FFMA stems from a multiplication and an addition; nothing but the expansions' inside
flushes subnormals or uses MUFU; the last architecture's PTX is in the library too. Not shown: that
the expansions are right (NVIDIA says div.rn and sqrt.rn round as IEEE 754 does; the smoke test asks
a device), that loads and shuffles read the right places, and what the driver makes of the PTX.
"""
import argparse
import collections
import pathlib
import re
import sys
import tempfile

import cuda_tools as tools

# Whatever computes on floats. Anything else (IMAD, LOP3, LDG, SHFL, IMMA, IDP ...) is exact.
FLOAT_OPERATION = re.compile(r"F[A-Z]|MUFU|HADD|HMUL|HFMA|HMNMX|HSET|HMMA|D(ADD|MUL|FMA|MMA|SET)|"
                             r"I2F|I2FP|F2|RED\S*\.F|ATOM\S*\.F|QGMMA|HGMMA|UF")
NOT_FLOAT = re.compile(r"FLO|FENCE|FSWZADD$")
# Exact, or rounded once to nearest as the PTX demanded: compare, select, convert, move, negate.
EXACT = re.compile(
    r"(FSETP|FSET|FSEL|FMNMX|UFSETP|UFSEL)\b(?!.*FTZ)|"
    r"I2FP?(\.F32)?(\.[SU](8|16|32|64))?(\.B[0-3])? |"
    r"F2I(\.(S|U)(8|16|32|64))?(\.(TRUNC|FLOOR|CEIL))?(\.NTZ)? |"
    r"F2F\.(F16|F32|BF16)\.(F16|F32|BF16) |F2FP\.(F16|BF16)\.(F32)(\.PACK_AB)? RZ|"
    r"F2FP\.(F16|BF16)\.(F32)\.PACK_AB [^,]*, [^,]*, [^,]*$|FRND(\.(TRUNC|FLOOR|CEIL))? |"
    r"HADD2\.F32 R\d+, (-RZ, [-|]*R\d+\.H[01]_H[01]\|?|[-|]*R\d+\.H[01]_H[01]\|?, -RZ\S*)$|"
    r"HFMA2(\.MMA)? R\d+, -RZ, RZ, \S+, \S+$|FADD R\d+, [-|]*(R\d+|c\[\S+\])\|?, -RZ$")
MARKS = {"fma": r"\bfma\.rn\.f32\b", "add, mul": r"\b(add|sub|mul)\.rn\.f32\b"}
MARKED = {"fma": ("FFMA",), "add, mul": ("FADD", "FMUL")}

PROBES = {  # name -> (type, PTX of d = f(a, b))
    "div": ("f32", "div.rn.f32 %d, %a, %b;"), "div_by": ("f32", "div.rn.f32 %d, %a, 0f42FE0000;"),
    "over": ("f32", "div.rn.f32 %d, 0f42FE0000, %a;"), "sqrt": ("f32", "sqrt.rn.f32 %d, %a;"),
    "udiv": ("u32", "div.u32 %d, %a, %b;"), "urem": ("u32", "rem.u32 %d, %a, %b;"),
    "sdiv": ("s32", "div.s32 %d, %a, %b;"), "srem": ("s32", "rem.s32 %d, %a, %b;"),
    "udiv64": ("u64", "div.u64 %d, %a, %b;"), "urem64": ("u64", "rem.u64 %d, %a, %b;"),
    "sdiv64": ("s64", "div.s64 %d, %a, %b;"), "srem64": ("s64", "rem.s64 %d, %a, %b;"),
}
HEAD = ".version {version}\n.target sm_{arch}\n.address_size 64\n"
KERNEL = """
.visible .entry {name}(.param .u64 p)
{{
.reg .{t} %a, %b, %c, %d, %e;
.reg .u64 %p;
ld.param.u64 %p, [p];
ld.global.{t} %a, [%p];
ld.global.{t} %b, [%p+8];
ld.global.{t} %c, [%p+16];
{body}
st.global.{t} [%p], %d;
ret;
}}
"""


class Assembler:
    def __init__(self, build):
        folder = pathlib.Path(build) / "sass-tools"
        self.ptxas = tools.find_tool("ptxas")
        self.nvdisasm = tools.find_tool("nvdisasm", folder)
        self.cuobjdump = tools.find_tool("cuobjdump", folder)
        if self.ptxas is None:
            tools.skip("no ptxas: the machine code of the CUDA kernels is not checked")
        if self.nvdisasm is None or self.cuobjdump is None:
            tools.skip(f"no nvdisasm and cuobjdump: scripts/fetch_sass_tools.sh {build} gets them")

    def assemble(self, text, arch, *flags):
        """What ptxas makes of the text: {kernel: Function}, {kernel: machine code}."""
        with tempfile.TemporaryDirectory() as folder:
            source, code = pathlib.Path(folder) / "a.ptx", pathlib.Path(folder) / "a.cubin"
            source.write_text(text)
            tools.run(self.ptxas, "-m64", f"-arch=sm_{arch}", *(flags or ["--fmad=false"]),
                      source, "-o", code)
            return (tools.parse_sass(tools.run(self.nvdisasm, "-c", code)),
                    tools.text_sections(code.read_bytes()))

    def code_of(self, path):
        """{arch: {kernel: machine code}} of a library's cubins, and its PTX's architectures."""
        code = collections.defaultdict(dict)
        with tempfile.TemporaryDirectory() as folder:
            tools.run("sh", "-c", f"cd {folder} && {self.cuobjdump} -xelf all {path}")
            for cubin in sorted(pathlib.Path(folder).glob("*.cubin")):
                arch = int(re.search(r"\.sm_(\d+)[a-z]?\.cubin$", cubin.name).group(1))
                code[arch].update(tools.text_sections(cubin.read_bytes()))
        listing = tools.run(self.cuobjdump, "-lptx", path)
        return code, {int(n) for n in re.findall(r"\.sm_(\d+)\.ptx", listing)}


def computes(instruction):
    return (FLOAT_OPERATION.match(instruction.operation)
            and not NOT_FLOAT.match(instruction.operation)
            and not EXACT.match(f"{instruction.operation} {instruction.operands}"))


class Expansions:
    """What ptxas makes of div.rn, sqrt.rn and integer division on one architecture."""

    def __init__(self, assembler, arch, version):
        text = HEAD.format(version=version, arch=arch) + "".join(
            KERNEL.format(name=name, t=t, body=body) for name, (t, body) in PROBES.items())
        self.inline = collections.defaultdict(collections.Counter)  # use -> operations, at most
        self.subroutines = collections.defaultdict(set)  # name -> operations
        for function in assembler.assemble(text, arch)[0].values():
            own = collections.Counter(i.operation for i in function.own if computes(i))
            for use in uses(own):
                self.inline[use] |= own
            for name, code in function.subroutines.items():
                self.subroutines[name].update(i.operation for i in code if computes(i))

    def allowed(self, unmarked):
        """At most how often each operation may stand in code with these unmarked operations."""
        limit = collections.Counter()
        for use, count in uses(unmarked).items():
            for operation, n in self.inline.get(use, {}).items():
                limit[operation] += n * count
        return limit


def uses(operations):
    """How often each expansion was used, by the one operation that only it has."""
    return {o: n for o, n in operations.items()
            if o in ("FCHK", "MUFU.RSQ") or re.fullmatch(r"I2F\..*RP", o)}


def check_kernel(name, function, marked, expansions):
    """Findings about one kernel, and how many FFMA, FADD and FMUL stem from its PTX."""
    stems = collections.Counter()
    unmarked = list(function.own)
    for what, variant in marked.items():
        if variant is None or len(variant.own) != len(function.own):
            return [f"{name}: marking {what} changes more than roundings"], {}
        for at, (ours, theirs) in enumerate(zip(function.own, variant.own)):
            if ours.text == theirs.text:
                continue
            if (theirs.text.replace(".RZ", "") != ours.text
                    or ours.operation not in MARKED[what]):
                return [f"{name}: marking {what} turns '{ours.text}' into '{theirs.text}'"], {}
            stems[ours.operation] += 1
            unmarked[at] = None
    left = collections.Counter(i.operation for i in unmarked if i and computes(i))
    limit = expansions.allowed(left)
    findings = []
    for operation, n in sorted(left.items()):
        if n > limit[operation]:
            findings.append(f"{name}: {n} {operation}, of which the expansions of division and "
                            f"square root explain {limit[operation]}")
    for subroutine, code in function.subroutines.items():
        known = expansions.subroutines.get(subroutine, set())
        findings += [f"{name}: {i.text} in the subroutine {subroutine}" for i in code
                     if computes(i) and i.operation not in known]
    return findings, stems


def check_ptx(assembler, text, shipped, expansions, report=print):
    """Findings about all kernels of one PTX text; shipped: {kernel: machine code}."""
    ptx = tools.Ptx(text)
    functions, code = assembler.assemble(text, ptx.arch)
    variants = {what: assembler.assemble(
        re.sub(pattern, lambda m: m.group(0).replace(".rn", ".rz"), text), ptx.arch)[0]
        for what, pattern in MARKS.items()}
    findings = []
    for kernel in ptx.kernels:
        name = f"{tools.short_name(kernel)} sm_{ptx.arch}"
        if shipped.get(kernel) != code[kernel]:
            findings.append(f"{name}: the library has not the code that ptxas makes of the PTX")
        found, stems = check_kernel(name, functions[kernel],
                                    {w: v.get(kernel) for w, v in variants.items()}, expansions)
        findings += found
        n_uses = uses(collections.Counter(i.operation for i in functions[kernel].own))
        integer = sum(n for o, n in n_uses.items() if o.startswith("I2F"))
        report(f"{tools.short_name(kernel):36} {ptx.arch:3} {stems.get('FFMA', 0):6} "
               f"{stems.get('FMUL', 0):6} {stems.get('FADD', 0):6} {n_uses.get('FCHK', 0):5} "
               f"{n_uses.get('MUFU.RSQ', 0):5} {integer:5}")
    return findings


def merge(texts):
    """One PTX text of several for the same architecture."""
    head = r"^\.(version|target|address_size)[^\n]*\n"
    lines = [re.search(fr"^\.{word}[^\n]*\n", texts[0], re.M).group(0)
             for word in ("version", "target", "address_size")]
    return "".join(lines + [re.sub(head, "", text, flags=re.M) for text in texts])


def check_build(build):
    assembler = Assembler(build)
    by_arch = collections.defaultdict(list)
    for path in tools.ptx_files(build):
        text = path.read_text()
        by_arch[tools.Ptx(text).arch].append(text)
    library = (pathlib.Path(build) / "kernels/cuda/library.txt").read_text().strip()
    shipped, ptx_inside = assembler.code_of(pathlib.Path(library).resolve())

    def one(arch):
        lines = []
        text = merge(by_arch[arch])
        version = re.search(r"^\.version\s+(\S+)", text, re.M).group(1)
        found = check_ptx(assembler, text, shipped[arch], Expansions(assembler, arch, version),
                          lines.append)
        return found, lines

    architectures = sorted(by_arch)
    findings, n_kernels = [], 0
    print(f"{'from PTX, unrolled: kernel':36} {'sm':>3} {'FFMA':>6} {'FMUL':>6} {'FADD':>6} "
          f"{'div':>5} {'sqrt':>5} {'idiv':>5}")
    for found, lines in tools.parallel(one, architectures):
        findings += found
        n_kernels += len(lines)
        print("\n".join(lines))
    if architectures[-1] not in ptx_inside:
        findings.append(f"the library holds no PTX for sm_{architectures[-1]}")
    for finding in findings:
        print(finding)
    print(f"SASS: {n_kernels} kernels on {architectures}, PTX inside for {sorted(ptx_inside)}, "
          f"{len(findings)} findings")
    return 1 if findings or n_kernels == 0 else 0


LOOP = """.reg .pred %q;
.reg .u32 %n;
ld.global.u32 %n, [%p+24];
mov.f32 %d, 0f00000000;
$L:
{step}
add.u32 %n, %n, 4294967295;
setp.ne.u32 %q, %n, 0;
@%q bra $L;"""
GOOD_STEPS = ["fma.rn.f32 %d, %a, %b, %d;", "mul.rn.f32 %e, %a, %d; add.rn.f32 %d, %e, %b;",
              "div.rn.f32 %e, %d, %b; sqrt.rn.f32 %d, %e;",
              "div.rn.f32 %d, %a, %d; fma.rn.f32 %d, %d, %b, %c; sub.rn.f32 %d, %d, %a;"]
# (what, step, ptxas flags of the library, the word that has to be in a finding)
PLANTED = [
    ("a fused multiply-add", "mul.f32 %e, %a, %d; add.f32 %d, %e, %b;", "--fmad=true",
     "not the code"),
    ("a flushed product", "mul.rn.ftz.f32 %d, %a, %d;", "--fmad=false", "FMUL.FTZ"),
    ("a flushed fma", "fma.rn.ftz.f32 %d, %a, %b, %d;", "--fmad=false", "FFMA.FTZ"),
    ("a fast exponential", "ex2.approx.f32 %d, %d;", "--fmad=false", "MUFU.EX2"),
    ("a fast quotient", "div.approx.f32 %d, %a, %d;", "--fmad=false", "MUFU.RCP"),
    ("a fast root", "sqrt.approx.f32 %d, %d;", "--fmad=false", "MUFU"),
    ("a flushed comparison", "setp.lt.ftz.f32 %q, %d, %b; selp.f32 %d, %a, %d, %q;",
     "--fmad=false", "FTZ"),
    ("half precision", "{.reg .b16 %h; cvt.rn.f16.f32 %h, %d; add.rn.f16 %h, %h, %h; "
     "cvt.f32.f16 %d, %h;}", "--fmad=false", "HADD2"),
]


def planted_text(arch, steps):
    return HEAD.format(version="8.0", arch=arch) + "".join(
        KERNEL.format(name=f"planted_{i}", t="f32", body=LOOP.format(step=step))
        for i, step in enumerate(steps))


def self_test_on(assembler, arch):
    """What went wrong on one architecture."""
    expansions = Expansions(assembler, arch, "8.0")

    def findings(steps, flags, checker_flags="--fmad=false"):
        text = planted_text(arch, steps)
        shipped = assembler.assemble(text, arch, flags)[1]
        checker = Assembler.__new__(Assembler)
        vars(checker).update(vars(assembler))
        checker.assemble = lambda t, a: assembler.assemble(t, a, checker_flags)
        return check_ptx(checker, text, shipped, expansions, lambda _: None)

    failed = []
    bad = [(step, what, word) for what, step, flags, word in PLANTED if flags == "--fmad=false"]
    found = findings(GOOD_STEPS + [step for step, _, _ in bad], "--fmad=false")
    of = lambda i: [f for f in found if f.startswith(f"planted_{i} ")]  # noqa: E731
    for i, step in enumerate(GOOD_STEPS):
        if of(i):
            failed.append(f"sm_{arch}: '{step}' is good, but was reported: {of(i)}")
    for i, (_, what, word) in enumerate(bad, len(GOOD_STEPS)):
        if not any(word in f for f in of(i)):
            failed.append(f"sm_{arch}: {what} should be reported with '{word}': {of(i)}")
    for what, step, flags, word in PLANTED:
        if flags == "--fmad=false":
            continue
        if not any(word in f for f in findings([step], flags)):
            failed.append(f"sm_{arch}: {what} should be reported with '{word}'")
        # A checker that errs in the same way: the missing mark alone has to tell.
        if not any("FFMA" in f for f in findings([step], flags, flags)):
            failed.append(f"sm_{arch}: {what} should be reported by its missing mark")
    return failed


def self_test_subroutine(expansions):
    """ptxas writes subroutines itself, so a bad one has to be made up."""
    function = tools.Function()
    name = next(n for n in expansions.subroutines if "sqrt_rn" in n)
    function.subroutines[name] = [tools.Instruction("", "MUFU.EX2", "R0, R0")]
    if check_kernel("planted", function, {}, expansions)[0]:
        return []
    return ["MUFU.EX2 in a subroutine of ptxas should be reported"]


def self_test(build):
    assembler = Assembler(build)
    failed = sum(tools.parallel(lambda arch: self_test_on(assembler, arch), (75, 80, 90)), [])
    failed += self_test_subroutine(Expansions(assembler, 75, "8.0"))
    for line in failed:
        print(f"self-test: {line}")
    print(f"check_sass self-test: {len(GOOD_STEPS)} good, {len(PLANTED) + 1} bad kernels on three "
          f"architectures, {len(failed)} failures")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    return self_test(arguments.build) if arguments.self_test else check_build(arguments.build)


if __name__ == "__main__":
    sys.exit(main())
