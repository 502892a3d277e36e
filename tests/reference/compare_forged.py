"""Compares the program with the reference on forged models of every weight type, bit for bit.

Each model is random; its types are mixed, so that every type is met as an embedding, as an
output or in a layer.  Exit status 0: all agree.  Shares no code with the program.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import forge_model
from quant_types import QUANT_TYPES

HERE = os.path.dirname(os.path.abspath(__file__))
WIDE = ("--width", "256", "--inner", "256", "--heads", "8", "--kv-heads", "2", "--layers", "1")
# kinds in turn over token_embd, output, and the seven matrices of every layer
MODELS = [(",".join(QUANT_TYPES), WIDE)]
MODELS += [(kind, WIDE + ("--tied",)) for kind in QUANT_TYPES]
MODELS += [
    ("Q4_K,Q6_K,F16,Q5_K,Q8_0", WIDE + ("--rotated", "16", "--factors")),
    ("Q4_0,BF16,Q5_1,IQ4_NL,F32", ("--seed", "2")),
    ("IQ4_XS,Q3_K,Q2_K", WIDE + ("--seed", "3", "--scale", "3")),
]


def main():
    """The command line: DETRUN TOKENIZER_MODEL."""
    parser = argparse.ArgumentParser(description="compare detrun on forged models")
    parser.add_argument("detrun")
    parser.add_argument("tokenizer_model")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "forged.gguf")
        for kinds, options in MODELS:
            print("%s %s" % (kinds, " ".join(options)), flush=True)
            choices = forge_model.command_line().parse_args(
                [arguments.tokenizer_model, path, "--types", kinds, *options])
            forge_model.forge(arguments.tokenizer_model, path, choices)
            command = [sys.executable, os.path.join(HERE, "compare_with_program.py"),
                       arguments.detrun, path, "--tokens", "0,648", "-n", "2"]
            failed += subprocess.run(command, check=False, timeout=120).returncode != 0
    print("%d of %d models differ" % (failed, len(MODELS)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
