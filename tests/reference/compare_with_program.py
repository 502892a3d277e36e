"""Compares the program, run as a black box, with the reference forward pass, bit for bit.

Runs `DETRUN record --json --no-ledger` on a few tokens and checks the hash of the logits,
the token, the margin and the log probability of every step.  Where the program refuses to
go on, the reference has to refuse as well.  Exit status 0: all agree.  Shares no code with
the program.
"""

import argparse
import json
import subprocess
import sys
import time

from binary_float import bits, parse_f32
from contract import KV_TYPES, ContractError
from gguf_model import Model, Row


def run_program(arguments):
    """(document detrun.run/1 with fractions left as text, error message); one of them None."""
    command = [arguments.detrun, "record", "-m", arguments.model, "--tokens", arguments.tokens,
               "-n", str(arguments.n), "--kv", arguments.kv, "--json", "--no-ledger", "--quiet"]
    result = subprocess.run(command, check=False, capture_output=True, timeout=60)
    if result.returncode != 0:
        return None, result.stderr.decode(errors="replace").strip()
    document = json.loads(result.stdout, parse_float=str)
    if document["schema"] != "detrun.run/1" or not document["steps"]:
        raise ValueError("not a document detrun.run/1 with steps")
    return document, None


def differences(step, row):
    """Lines that say what of a step differs."""
    pairs = [
        ("token", step["token"], row.token),
        ("logits_xxh3", step["logits_xxh3"], row.hash),
        ("margin", "0x%08x" % bits(parse_f32(str(step["margin"]))), "0x%08x" % bits(row.margin)),
        ("logprob", "0x%08x" % bits(parse_f32(str(step["logprob"]))),
         "0x%08x" % bits(row.log_probability)),
    ]
    return ["step %d: %s: program %s, reference %s" % (step["step"], name, theirs, ours)
            for name, theirs, ours in pairs if theirs != ours]


def compare(document, model):
    """Lines that say what differs over the prompt and all steps."""
    lines = []
    for token in document["prompt_tokens"]:
        logits = model.step(token)
    for number, step in enumerate(document["steps"]):
        if step["step"] != number:
            lines.append("step %d is numbered %d" % (number, step["step"]))
        row = Row(logits)
        lines += differences(step, row)
        if number + 1 < len(document["steps"]):
            logits = model.step(row.token)
    return lines


def refuses(model, arguments):
    """Whether the reference ends the run too, on the prompt or a token after it."""
    try:
        for token in arguments.tokens.split(","):
            logits = model.step(int(token))
        for _ in range(1, arguments.n):
            logits = model.step(Row(logits).token)
    except ContractError as error:
        print("reference: %s" % error)
        return True
    return False


def main():
    """The command line: DETRUN MODEL [--tokens IDS] [-n N] [--kv f16|f32]."""
    parser = argparse.ArgumentParser(description="compare detrun with its reference")
    parser.add_argument("detrun")
    parser.add_argument("model")
    parser.add_argument("--tokens", default="0,648,592")
    parser.add_argument("-n", type=int, default=3)
    parser.add_argument("--kv", choices=KV_TYPES, default="f16")
    arguments = parser.parse_args()
    document, error = run_program(arguments)
    model, started = Model(arguments.model, arguments.kv), time.monotonic()
    if document is None:
        print("program: %s" % error)
        lines, steps = [] if refuses(model, arguments) else ["only the program refuses"], 0
    else:
        lines, steps = compare(document, model), len(document["steps"])
    for line in lines:
        print(line)
    print("%s: %s, kv %s, %d positions, %d steps, %.2f s a position" % (
        "DIFFERS" if lines else "agrees", arguments.model, arguments.kv, model.position, steps,
        (time.monotonic() - started) / max(1, model.position)))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
