"""Writes a small llama model of random weights that reaches corners real files do not.

All weight types and any mixture of them, subnormal weights and scales, extreme quants, one
kv head for three query heads, rows that are no multiple of 32, rotation of a part of a
head, frequency factors.  The tokenizer comes from a given model.  Shares no code with the
program.
"""

import argparse
import math
import random
import struct

from gguf_model import ARRAY, SCALARS, STRING, TENSOR_TYPES, read_gguf
from quant_types import QUANT_TYPES

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
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    return 4, struct.pack("<I", value)


def small_or_not(source, scale):
    """A random number; one in sixteen is very small, so subnormal where that exists."""
    value = source.gauss(0, scale)
    return value * 2.0 ** -source.choice((14, 22, 120)) if source.randrange(16) == 0 else value


def random_block(source, quant):
    """The bytes of a block, extreme ones often."""
    raw = bytearray(source.randbytes(quant.size))
    for at in source.choices(range(quant.size), k=quant.size // 3):
        raw[at] = (0, 128, 255)[at % 3]
    return raw


def block(source, quant, scale):
    """A block of an integer type; its minimum or minima lie near the middle of its quants."""
    raw = random_block(source, quant)
    group = quant.read(bytes(raw))
    products = [value for piece in group.pieces for value in piece]
    middle = sum(products) / len(products)
    size = math.sqrt(sum(value * value for value in products) / len(products)) + 1
    d = small_or_not(source, scale) / size
    second = -d * middle * source.uniform(0.5, 1.5)
    if group.dmin is not None:
        second /= -(sum(group.minima) / len(group.minima) + 1)
    for at, value in zip(quant.scales_at, (d, second)):
        struct.pack_into("<e", raw, at, max(-65504.0, min(65504.0, value)))
    return raw


def weight(source, kind, columns, rows, scale):
    """Random weights of a type."""
    count = columns * rows
    if kind in QUANT_TYPES:
        quant = QUANT_TYPES[kind]
        return b"".join(block(source, quant, scale) for _ in range(count // quant.elements))
    values = [small_or_not(source, scale) for _ in range(count)]
    if kind == "F16":
        return struct.pack("<%de" % count, *(max(-65504.0, min(65504.0, v)) for v in values))
    data = struct.pack("<%df" % count, *values)
    if kind == "BF16":
        return b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))
    return data


def shapes(vocabulary, arguments):
    """(name, type, columns, rows) of every tensor; the types are cycled through.

    A type whose blocks do not fit a row gives way to F32.
    """
    width, inner, kinds = arguments.width, arguments.inner, arguments.types.split(",")
    kv_width = arguments.kv_heads * (width // arguments.heads)
    plan = [("token_embd", width, vocabulary)]
    if not arguments.tied:
        plan.append(("output", width, vocabulary))
    for i in range(arguments.layers):
        plan += [("blk.%d.%s" % (i, name), columns, rows) for name, columns, rows in (
            ("attn_q", width, width), ("attn_k", width, kv_width), ("attn_v", width, kv_width),
            ("attn_output", width, width), ("ffn_gate", width, inner), ("ffn_up", width, inner),
            ("ffn_down", inner, width))]
    result = []
    for n, (name, columns, rows) in enumerate(plan):
        kind = kinds[n % len(kinds)]
        if kind in QUANT_TYPES and columns % QUANT_TYPES[kind].elements:
            kind = "F32"
        result.append((name + ".weight", kind, columns, rows))
    norms = ["output_norm"] + ["blk.%d.%s_norm" % (i, part) for i in range(arguments.layers)
                               for part in ("attn", "ffn")]
    return result + [(name + ".weight", "F32", width, 1) for name in norms]


def forge(tokenizer_model, path, arguments):
    """Writes the file."""
    source = random.Random(arguments.seed)
    rotated = arguments.rotated or arguments.width // arguments.heads
    old, tensors = read_gguf(tokenizer_model)
    metadata = {key: value for key, value in old.items() if key.startswith("tokenizer.")}
    metadata.update({
        "general.architecture": "llama", "general.name": "forged", "general.alignment": 64,
        "llama.context_length": 256, "llama.embedding_length": arguments.width,
        "llama.block_count": arguments.layers, "llama.feed_forward_length": arguments.inner,
        "llama.attention.head_count": arguments.heads,
        "llama.attention.head_count_kv": arguments.kv_heads,
        "llama.rope.freq_base": arguments.theta, "llama.rope.dimension_count": rotated,
        "llama.attention.layer_norm_rms_epsilon": 1e-6})
    vocabulary = len(metadata["tokenizer.ggml.tokens"])
    parts = [(name, kind, [columns] + ([rows] if rows > 1 else []),
              weight(source, kind, columns, rows, arguments.scale if rows > 1 else 1.0))
             for name, kind, columns, rows in shapes(vocabulary, arguments)]
    if arguments.factors:
        data = struct.pack("<%df" % (rotated // 2),
                           *(1.0 + 0.37 * i for i in range(rotated // 2)))
        parts.append(("rope_freqs.weight", "F32", [rotated // 2], data))
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


def command_line():
    """The command line: TOKENIZER_MODEL OUT and the choices."""
    parser = argparse.ArgumentParser(description="a model of random weights")
    parser.add_argument("tokenizer_model")
    parser.add_argument("out")
    parser.add_argument("--types", default="Q8_0,BF16,F16,F32",
                        help="weight types, in turn, of " + ",".join(NUMBERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=0.2, help="of the weights")
    parser.add_argument("--width", type=int, default=96, help="256 for types with such blocks")
    parser.add_argument("--inner", type=int, default=77, help="width of the feed-forward part")
    parser.add_argument("--heads", type=int, default=3)
    parser.add_argument("--kv-heads", type=int, default=1)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--theta", type=float, default=500000.0)
    parser.add_argument("--rotated", type=int, default=0, help="elements of a head, 0 for all")
    parser.add_argument("--factors", action="store_true", help="with frequency factors")
    parser.add_argument("--tied", action="store_true", help="without an output matrix")
    return parser


def main():
    """Writes the model that the command line asks for."""
    arguments = command_line().parse_args()
    forge(arguments.tokenizer_model, arguments.out, arguments)


if __name__ == "__main__":
    main()
