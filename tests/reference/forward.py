"""Prints what detrun-numerics(7) says about every position of a sequence of tokens.

One line a position: position, token, XXH3-128 of the logits, the chosen id, and the bits
of margin and log probability.  Shares no code with the program.
"""

import argparse

from binary_float import bits
from contract import KV_TYPES
from gguf_model import Model, Row


def main():
    """The command line: MODEL TOKENS [--kv f16|f32]."""
    parser = argparse.ArgumentParser(description="the reference forward pass of detrun")
    parser.add_argument("model")
    parser.add_argument("tokens", help="ids, as in 1,2,3")
    parser.add_argument("--kv", choices=KV_TYPES, default="f16")
    arguments = parser.parse_args()
    model = Model(arguments.model, arguments.kv)
    for position, token in enumerate(int(text) for text in arguments.tokens.split(",")):
        row = Row(model.step(token))
        print("%d %d %s %d 0x%08x 0x%08x" % (position, token, row.hash, row.token,
              bits(row.margin), bits(row.log_probability)), flush=True)


if __name__ == "__main__":
    main()
