#!/usr/bin/env python3
"""Measures detrun beside llama.cpp on the same model and prints a Markdown table of ratios.

`bench_peers.py --shape 1.1b --type q8_0,q4_k_m` makes the models (make_synthetic_model.py), then
runs detrun, llama.cpp (the package xllamacpp from PyPI) and, with `--ik PATH`, ik_llama.cpp's
llama-bench in turn, several rounds, each run a process of its own. Work: 64 steps of decode after
a short prompt, prefill of 128 and of 512 tokens. A peer is measured with flash attention on and
off (ik_llama.cpp also with its weights repacked); the best median counts for it. A ratio above 1
says that detrun is faster.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKS = ("decode", "prefill_128", "prefill")
TITLES = {"decode": "decode 64", "prefill_128": "prefill 128", "prefill": "prefill 512"}
STEPS, PROMPT, CONTEXT = 64, 8, 1024
LIMIT_S = 1800
QUIET_SHARE = 0.9  # of the processor time that all threads could have


def fail(message):
    sys.exit(f"bench_peers.py: error: {message}")


# ---- the child that is llama.cpp -----------------------------------------------------------------


def llama_child(model, threads, flash):
    """Loads the model once, does each work twice (the first warms up), prints tokens a second."""
    import xllamacpp  # pylint: disable=import-outside-toplevel
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel = CONTEXT, 512, 512, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_prompt, params.cache_ram_mib, params.warmup = False, 0, True
    kinds = xllamacpp.llama_flash_attn_type
    params.flash_attn_type = (kinds.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash
                              else kinds.LLAMA_FLASH_ATTN_TYPE_DISABLED)
    server = xllamacpp.Server(params)

    def timings(prompt_tokens, steps):
        answer = server.handle_completions({
            "prompt": [3 + i * 2654435761 % 31997 for i in range(prompt_tokens)],
            "n_predict": steps, "temperature": 0, "ignore_eos": True, "cache_prompt": False})
        return (json.loads(answer) if isinstance(answer, str) else answer)["timings"]

    def decode():  # the first of the tokens comes out of the prompt
        found = timings(PROMPT, STEPS + 1)
        return 1e3 * (found["predicted_n"] - 1) / found["predicted_ms"]

    def prefill(rows):
        found = timings(rows, 1)
        return 1e3 * found["prompt_n"] / found["prompt_ms"]

    works = {"decode": decode, "prefill_128": lambda: prefill(128),
             "prefill": lambda: prefill(512)}
    speeds = {}
    for name, work in works.items():
        work()
        speeds[name] = work()
    print(json.dumps({"info": xllamacpp.get_system_info(), "speeds": speeds}), flush=True)


# ---- what is run side by side --------------------------------------------------------------------


def output_of(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=LIMIT_S)
    except FileNotFoundError:
        fail(f"{command[0]} is not there")
    except subprocess.TimeoutExpired:
        fail(f"{command[0]} took longer than {LIMIT_S} s")
    if done.returncode != 0:
        tail = done.stderr.decode(errors="replace").strip().split("\n")[-3:]
        fail(f"{' '.join(map(str, command))} ended with {done.returncode}: " + " | ".join(tail))
    return done.stdout.decode()


def run_detrun(options, model, notes):
    document = json.loads(output_of(
        [options.detrun, "bench", "-m", model, "--json", "--threads", str(options.threads),
         "--repeat", "1", "--only", ",".join(WORKS), "-n", str(STEPS)]))
    cpu = document["machine"]["cpu"]
    notes["machine"] = f"{cpu.get('vendor', '')} {cpu.get('model', '')}".strip()
    notes["detrun"] = document["machine"]["backend"]["isa"]
    shares = [result["cpu_share"] for result in document["results"]]
    notes["share"] = min([notes.get("share", 1.0), *shares])
    return {result["name"]: result["tokens_per_s"] for result in document["results"]}


def run_llama(options, model, flash, notes):
    lines = output_of([options.python, __file__, "--llama-child", model, str(options.threads),
                       str(int(flash))]).strip().split("\n")
    document = json.loads([line for line in lines if line.startswith('{"info"')][-1])
    notes["llama.cpp"] = document["info"]
    return document["speeds"]


def run_ik(options, model, flash, repack):
    text = output_of([options.ik, "-m", model, "-t", str(options.threads), "-n", str(STEPS),
                      "-p", "128,512", "-r", "1", "-fa", str(int(flash)), "-rtr",
                      str(int(repack)), "-ngl", "0", "-o", "json"])
    names = {(0, STEPS): "decode", (128, 0): "prefill_128", (512, 0): "prefill"}
    rows = json.loads(text[text.index("["):text.rindex("]") + 1])
    return {names[row["n_prompt"], row["n_gen"]]: row["avg_ts"] for row in rows}


def variants(options, model, notes):
    """Name of a program, what is varied, and how to run it once."""
    yield "detrun", "", lambda: run_detrun(options, model, notes)
    for flash in (False, True):
        text = f"flash attention {'on' if flash else 'off'}"
        yield "llama.cpp", text, lambda flash=flash: run_llama(options, model, flash, notes)
        for repack in (False, True) if options.ik else ():
            yield ("ik_llama.cpp", text + (", repacked" if repack else ""),
                   lambda flash=flash, repack=repack: run_ik(options, model, flash, repack))


# ---- measuring and the table ---------------------------------------------------------------------


def measure(options, model, notes):
    """{(program, variant): {work: [tokens a second, ...]}}, all variants in turn in each round."""
    speeds = collections.defaultdict(lambda: collections.defaultdict(list))
    for number in range(options.repeat):
        for program, variant, run in variants(options, model, notes):
            print(f"  round {number + 1} of {options.repeat}: {program} {variant}",
                  file=sys.stderr, flush=True)
            for work, speed in run().items():
                speeds[program, variant][work].append(speed)
    return speeds


def best_of(speeds, work):
    """{program: (median of its best variant, that variant)}."""
    best = {}
    for (program, variant), by_work in speeds.items():
        if work in by_work:
            found = statistics.median(by_work[work]), variant
            best[program] = max(best.get(program, found), found)
    return best


def table_rows(label, speeds):
    for work in WORKS:
        best = best_of(speeds, work)
        ours = best.pop("detrun")[0]
        cells = [f"{best[peer][0]:.1f}" if peer in best else "-"
                 for peer in ("llama.cpp", "ik_llama.cpp")]
        peer, variant = max((speed, f"{name} {variant}") for name, (speed, variant) in best.items())
        yield (f"| {label} | {TITLES[work]} | {ours:.1f} | {cells[0]} | {cells[1]} | "
               f"{ours / peer:.2f} |", f"{label} {TITLES[work]}: {variant}")


def model_file(options, folder, shape, kind):
    path = pathlib.Path(folder) / f"synth{shape}-{kind}.gguf"
    if not path.is_file():
        print(f"  making {path}", file=sys.stderr, flush=True)
        output_of([sys.executable, str(ROOT / "scripts/make_synthetic_model.py"), "--shape", shape,
                   "--type", kind, "-o", str(path)])
    return str(path)


def run_all(options, folder):
    notes, lines, best = {}, [], []
    for shape in options.shape.split(","):
        for kind in options.type.split(","):
            model = model_file(options, folder, shape, kind)
            for line, variant in table_rows(f"{shape} {kind}", measure(options, model, notes)):
                lines.append(line)
                best.append(variant)
    print(f"Tokens a second; medians of {options.repeat} rounds, {options.threads} threads, "
          f"{notes['machine']}; detrun with {notes['detrun']}.\n")
    if notes["share"] < QUIET_SHARE:
        print(f"Other work had the cores: detrun got {100 * notes['share']:.0f} % of them at "
              "times. These ratios say little; measure on a quiet machine.\n")
    print("| model | work | detrun | llama.cpp | ik_llama.cpp | detrun / better peer |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    print("\n".join(lines))
    if options.verbose:
        print("\nllama.cpp: " + notes["llama.cpp"] + "\nbetter peer: " + "; ".join(best))


def main():
    if sys.argv[1:2] == ["--llama-child"]:
        llama_child(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", default="1.1b", help="135m, 1.1b, 8b; several with commas")
    parser.add_argument("--type", default="q8_0", help="f16, q8_0, q4_k_m ...; several with commas")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeat", type=int, default=5, help="rounds [5]")
    parser.add_argument("--detrun", default=str(ROOT / "build/bin/detrun"))
    parser.add_argument("--python", default=sys.executable,
                        help="a Python that has xllamacpp [this one]")
    parser.add_argument("--ik", metavar="PATH", help="llama-bench of ik_llama.cpp")
    parser.add_argument("--models", metavar="FOLDER",
                        help="where synthSHAPE-TYPE.gguf lie or are made [a temporary folder]")
    parser.add_argument("--verbose", action="store_true", help="also what each best variant was")
    options = parser.parse_args()
    if options.repeat < 1 or options.threads < 1:
        fail("--repeat and --threads are at least 1")
    if subprocess.run([options.python, "-c", "import xllamacpp"], stderr=subprocess.DEVNULL,
                      check=False).returncode != 0:
        fail(f"{options.python} does not have the package xllamacpp\n"
             "  install it: python3 -m venv peer && peer/bin/pip install xllamacpp, "
             "then give --python peer/bin/python")
    options.shape, options.type = options.shape.lower(), options.type.lower()
    if options.models:
        run_all(options, options.models)
    else:
        with tempfile.TemporaryDirectory() as folder:
            run_all(options, folder)


if __name__ == "__main__":
    main()
