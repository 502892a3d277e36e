"""The golden hashes of whole models, fixtures/golden/models.txt, recomputed by the reference.

Runs the lines of at most 20 tokens (all with --all: minutes).  A line is PATH TOKENS KV HASH;
TOKENS is N@SEED: N tokens, splitmix64 from SEED, each modulo the vocabulary; HASH is XXH3-128 of
the logits of all positions.  Shares no code with the program.
"""

import struct
import sys
from pathlib import Path

from gguf_model import Model
from xxh3 import xxh3_128

ROOT = Path(__file__).resolve().parent.parent.parent
MASK64 = (1 << 64) - 1
SHORT, LEAST = 20, 3


def tokens_of(text, vocabulary):
    """The tokens of N@SEED."""
    count, state = map(int, text.split("@"))
    tokens = []
    for _ in range(count):
        state = state + 0x9E3779B97F4A7C15 & MASK64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK64
        tokens.append((z ^ z >> 31) % vocabulary)
    return tokens


def logits_hash(path, tokens, kv):
    """XXH3-128 of the logits of every position."""
    model, data = Model(str(path), kv), b""
    for token in tokens_of(tokens, len(model.embedding.rows)):
        logits = model.step(token)
        data += struct.pack("<%df" % len(logits), *logits)
    return xxh3_128(data)


def main():
    """The command line: [--all]."""
    done = wrong = 0
    for line in (ROOT / "fixtures/golden/models.txt").read_text(encoding="ascii").splitlines():
        if line.startswith("#"):
            continue
        name, tokens, kv, expected = line.split(" ")
        if "--all" not in sys.argv[1:] and int(tokens.split("@")[0]) > SHORT:
            continue
        if not (ROOT / name).exists():
            print("skipped: %s is not here" % name)
            continue
        found = logits_hash(ROOT / name, tokens, kv)
        print("%s %s %s %s" % (name, tokens, kv, "equal" if found == expected
                               else "DIFFERS: " + found), flush=True)
        done, wrong = done + 1, wrong + (found != expected)
    print("%d of %d lines differ" % (wrong, done))
    return 0 if wrong == 0 and done >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
