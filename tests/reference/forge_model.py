"""Writes a small llama model of random weights that reaches corners real files do not.

All four weight types, subnormal weights and scales, q of -128, one kv head for three query
heads, rows that are no multiple of 32, rotation of a part of a head, frequency factors.
The tokenizer comes from a given model.  Shares no code with the program.
"""

import argparse
import random
import struct

from gguf_model import ARRAY, SCALARS, STRING, TENSOR_TYPES, read_gguf

WIDTH, INNER, HEADS, KV_HEADS, LAYERS = 96, 77, 3, 1, 2
NUMBERS = {label: number for number, (label, _, _) in TENSOR_TYPES.items()}


def text(value):
    """A string with its length before it."""
    data = value.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def typed(value):
    """The type and the bytes of a metadata value read by gguf_model."""
    if isinstance(value, str):
        return STRING, text(value)
    if isinstance(value, list):
        inner = typed(value[0])[0]
        if inner != STRING:
            inner = 6 if any(isinstance(item, float) for item in value) else 5
            data = struct.pack("<%d%s" % (len(value), SCALARS[inner]), *value)
        else:
            data = b"".join(map(text, value))
        return ARRAY, struct.pack("<IQ", inner, len(value)) + data
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    return 4, struct.pack("<I", value)


def weight(source, kind, columns, rows, scale):
    """Random weights of a type; one in sixteen is very small, so subnormal where that exists."""
    def number():
        value = source.gauss(0, scale)
        return value * 2.0 ** -source.choice((14, 22, 120)) if source.randrange(16) == 0 else value
    count = columns * rows
    if kind == "Q8_0":
        blocks = []
        for _ in range(count // 32):
            q = [source.choice((-128, 127, source.randint(-128, 127))) for _ in range(32)]
            blocks.append(struct.pack("<e32b", number() / 64, *q))
        return b"".join(blocks)
    values = [number() for _ in range(count)]
    if kind == "F16":
        return struct.pack("<%de" % count, *(max(-65504.0, min(65504.0, v)) for v in values))
    data = struct.pack("<%df" % count, *values)
    if kind == "BF16":
        return b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))
    return data


def shapes(vocabulary, kinds, tied, scale):
    """(name, type, columns, rows, scale) of every tensor; kinds are cycled through."""
    size = WIDTH // HEADS
    plan = [("token_embd", WIDTH, vocabulary)] + ([] if tied else [("output", WIDTH, vocabulary)])
    for i in range(LAYERS):
        plan += [("blk.%d.%s" % (i, name), columns, rows) for name, columns, rows in (
            ("attn_q", WIDTH, WIDTH), ("attn_k", WIDTH, KV_HEADS * size),
            ("attn_v", WIDTH, KV_HEADS * size), ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", WIDTH, INNER), ("ffn_up", WIDTH, INNER), ("ffn_down", INNER, WIDTH))]
    result = []
    for n, (name, columns, rows) in enumerate(plan):
        kind = kinds[n % len(kinds)]
        if kind == "Q8_0" and columns % 32:
            kind = "F32"
        result.append((name + ".weight", kind, columns, rows, scale))
    norms = ["output_norm"] + ["blk.%d.%s_norm" % (i, part) for i in range(LAYERS)
                               for part in ("attn", "ffn")]
    return result + [(name + ".weight", "F32", WIDTH, 1, 1.0) for name in norms]


def forge(tokenizer_model, path, arguments):
    """Writes the file."""
    source = random.Random(arguments.seed)
    old, tensors = read_gguf(tokenizer_model)
    metadata = {key: value for key, value in old.items() if key.startswith("tokenizer.")}
    metadata.update({
        "general.architecture": "llama", "general.name": "forged", "general.alignment": 64,
        "llama.context_length": 256, "llama.embedding_length": WIDTH, "llama.block_count": LAYERS,
        "llama.feed_forward_length": INNER, "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS, "llama.rope.freq_base": arguments.theta,
        "llama.rope.dimension_count": arguments.rotated,
        "llama.attention.layer_norm_rms_epsilon": 1e-6})
    vocabulary = len(metadata["tokenizer.ggml.tokens"])
    parts = [(name, kind, [columns] + ([rows] if rows > 1 else []),
              weight(source, kind, columns, rows, scale)) for name, kind, columns, rows, scale
             in shapes(vocabulary, arguments.types.split(","), arguments.tied,
                       arguments.scale)]
    if arguments.factors:
        data = struct.pack("<%df" % (arguments.rotated // 2),
                           *(1.0 + 0.37 * i for i in range(arguments.rotated // 2)))
        parts.append(("rope_freqs.weight", "F32", [arguments.rotated // 2], data))
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(parts), len(metadata))
    for key, value in metadata.items():
        kind, data = typed(value)
        head += text(key) + struct.pack("<I", kind) + data
    body = b""
    for name, kind, shape, data in parts:
        head += text(name) + struct.pack("<I%dQ" % len(shape), len(shape), *shape)
        head += struct.pack("<IQ", NUMBERS[kind], len(body))
        body += data + bytes(-len(data) % 64)
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 64) + body)


def main():
    """The command line: TOKENIZER_MODEL OUT and the choices."""
    parser = argparse.ArgumentParser(description="a model of random weights")
    parser.add_argument("tokenizer_model")
    parser.add_argument("out")
    parser.add_argument("--types", default="Q8_0,BF16,F16,F32", help="weight types, in turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=0.2, help="of the weights")
    parser.add_argument("--theta", type=float, default=500000.0)
    parser.add_argument("--rotated", type=int, default=WIDTH // HEADS)
    parser.add_argument("--factors", action="store_true", help="with frequency factors")
    parser.add_argument("--tied", action="store_true", help="without an output matrix")
    arguments = parser.parse_args()
    forge(arguments.tokenizer_model, arguments.out, arguments)


if __name__ == "__main__":
    main()
