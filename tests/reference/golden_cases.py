"""The cases of fixtures/golden/operators.txt: their inputs, and their results by the reference.

The rule for inputs and the layout of results are those of fixtures/golden/README.md.
Shares no code with the program.
"""

import struct

import contract
import functions32
import functions64
import moe
import sampling
from attention import attention, attention_scale
from binary_float import (
    BFLOAT16, BINARY16, add, fma, from_bits, mul, parse_f32, round_to)
from quant_types import QUANT_TYPES, product_quantized, read_row, widen_row
from xxh3 import xxh3_128

MASK64 = (1 << 64) - 1
KINDS = ("plain", "edgy", "tiny", "above", "below", "ties", "zero", "wide", "bits", "finite",
         "positive", "over", "under")
POWERS = {"tiny": 2.0 ** -105, "above": 2.0 ** -99, "below": 2.0 ** -101, "wide": 128.0}
FUNCTIONS = {name: getattr(functions32, name) for name in (
    "exp", "log", "tanh", "erf", "sigmoid", "silu", "gelu_tanh", "gelu_erf")}
GATINGS = {"softmax": moe.SOFTMAX, "sigmoid": moe.SIGMOID, "chosen": moe.SOFTMAX_OF_CHOSEN}


# Inputs

def word(s, t, i):
    """The 64 bits of an element of a tensor of a seed."""
    z = ((s << 40) + (t << 32) + i + 1) * 0x9E3779B97F4A7C15 & MASK64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK64
    return z ^ z >> 31


def plain(w):
    """A number in [-1, 1)."""
    return ((w >> 40) - (1 << 23)) * 2.0 ** -23


def edgy(w, narrow=False):
    """A number, at times one where rounding is hard; narrow: of binary16's range."""
    case = w & 15
    if case == 0:
        return 0.0
    if case == 1:
        return -0.0
    if case == 2:
        return from_bits(w >> 32 & 0x807FFFFF)
    if case == 3:
        return plain(w) * 2.0 ** -110
    if case == 4 and not narrow:
        return plain(w) * 2.0 ** 20
    if case == 5 and not narrow:
        size = 2.0 ** 24 + 2 * (w >> 8 & 255) + 2
        return -size if w >> 63 else size
    if case == 6:
        return (w >> 8 & 127) - 64 + 0.5
    if case == 7:
        return float((w >> 8 & 127) - 64)
    return plain(w)


def value(kind, w):
    """The binary32 value that a kind makes of a word."""
    if kind == "plain":
        return plain(w)
    if kind == "edgy":
        return edgy(w)
    if kind in POWERS:
        return plain(w) * POWERS[kind]
    if kind == "ties":
        if w & 7 == 0:
            return -127.0 if w >> 63 else 127.0
        return (w >> 8 & 127) - 64 + 0.5
    if kind == "zero":
        return -0.0 if w & 1 else 0.0
    if kind in ("positive", "over", "under"):
        return abs(plain(w)) * {"positive": 1.0, "over": 2.0 ** -105, "under": -2.0 ** -105}[kind]
    pattern = w >> 32
    if kind == "finite" and pattern & 0x7F800000 == 0x7F800000:
        pattern &= ~0x00800000
    elif kind not in KINDS:
        raise ValueError("kind %s" % kind)
    return from_bits(pattern)


def tensor(seed, number, count, kind):
    """The values of a tensor."""
    return [value(kind, word(seed, number, i)) for i in range(count)]


def matrix(seed, number, shape, kind):
    """The rows of a matrix (n, k)."""
    n, k = shape
    flat = tensor(seed, number, n * k, kind)
    return [flat[i:i + k] for i in range(0, n * k, k)]


def float_weights(line):
    """The rows of a weight of a float type, widened."""
    label, kind, seed = line["type"], line["w"], line.number("seed")
    n, k = line.number("n"), line.number("k")
    if label == "F16" and kind == "edgy":
        rows = [[edgy(word(seed, 0, r * k + c), True) for c in range(k)] for r in range(n)]
    else:
        rows = matrix(seed, 0, (n, k), kind)
    if label == "F32":
        return rows
    target = BINARY16 if label == "F16" else BFLOAT16
    return [[round_to(number, target) for number in row] for row in rows]


def weight_block(seed, b, quant, kind):
    """The bytes of block b of an integer weight."""
    if kind == "random":
        raw = bytearray(word(seed, 0, b * 1024 + j) & 255 for j in range(quant.size))
    else:
        raw = bytearray([{"low": 0, "high": 255}[kind]] * quant.size)
    for f, at in enumerate(quant.scales_at):
        v = word(seed, 0, b * 1024 + 1000 + f)
        pattern = v & 1023 | (v >> 10 & 31) % 20 << 10 | (v >> 15 & 1) << 15
        struct.pack_into("<H", raw, at, pattern)
    return bytes(raw)


# Results as bytes

def floats(values):
    """Binary32 values, little-endian."""
    return struct.pack("<%df" % len(values), *values)


def integers(values):
    """32-bit integers, little-endian."""
    return struct.pack("<%dI" % len(values), *values)


class Line(dict):
    """A line of the file: operator, parameters as text, and the hash that is expected."""

    def __init__(self, text):
        self.operator, *fields, self.hash = text.split()
        super().__init__(field.split("=", 1) for field in fields)
        self.unread = set(self)

    def __getitem__(self, key):
        self.unread.discard(key)
        return super().__getitem__(key)

    def number(self, key):
        """An integer."""
        return int(self[key])

    def fraction(self, key):
        """A decimal as the nearest binary32."""
        return parse_f32(self[key])

    def input(self, number=0, size="n"):
        """A tensor of the line's kind and size."""
        return tensor(self.number("seed"), number, self.number(size), self["x"])


def product(line):
    """y and the last row."""
    n, k, x = line.number("n"), line.number("k"), line.input(1, "k")
    contract.finite(x, "input")
    if line["type"] not in QUANT_TYPES:
        rows = float_weights(line)
        return floats(contract.product_float(x, rows) + list(rows[-1]))
    quant = QUANT_TYPES[line["type"]]
    count = k // quant.elements
    raw = [weight_block(line.number("seed"), b, quant, line["w"]) for b in range(n * count)]
    rows = [read_row(line["type"], b"".join(raw[i:i + count])) for i in range(0, n * count, count)]
    return floats(product_quantized(contract.quantize(x), rows) + widen_row(rows[-1]))


def quantize(line):
    """The blocks."""
    return b"".join(struct.pack("<f32b", d, *q) for d, q in contract.quantize(line.input(0, "k")))


def function(line):
    """A function of one argument."""
    return floats([FUNCTIONS[line.operator](x) for x in line.input()])


def softcap(line):
    """Soft cap."""
    cap = line.fraction("cap")
    return floats([functions32.softcap(x, cap) for x in line.input()])


def sum32(line):
    """S32."""
    return floats([contract.sum32(line.input())])


def rms_norm(line):
    """RMSNorm."""
    weight = tensor(line.number("seed"), 1, line.number("n"), "plain")
    return floats(contract.rms_norm(line.input(), weight, line.fraction("eps")))


def layer_norm(line):
    """LayerNorm."""
    seed, n = line.number("seed"), line.number("n")
    bias = tensor(seed, 2, n, "plain") if line.number("bias") else None
    return floats(contract.layer_norm(line.input(), tensor(seed, 1, n, "plain"),
                                      line.fraction("eps"), bias))


def attend(line):
    """One head over the positions first .. visible - 1."""
    seed, d, visible = line.number("seed"), line.number("d"), line.number("visible")
    keys, values = ([contract.kv_round(row, line["kv"])
                     for row in matrix(seed, t, (visible, d), "plain")] for t in (1, 2))
    return floats(attention(
        line.input(0, "d"), keys, values, attention_scale(d),
        window=visible - line.number("first"), cap=line.fraction("softcap") or None,
        sink=tensor(seed, 3, 1, "plain")[0] if line.number("sink") else None))


def cache(line):
    """A row through the cache."""
    return floats(contract.kv_round(line.input(), line["kv"]))


def rope(line):
    """Three heads, rotated."""
    seed, d, n = line.number("seed"), line.number("d"), line.number("n")
    theta, scaling, mscale = line.fraction("theta"), line["scaling"], 1.0
    options = {}
    if scaling == "factors":
        options["factors"] = [add(1.0, abs(x)) for x in tensor(seed, 1, n // 2, "plain")]
    elif scaling == "linear":
        options["linear"] = 4.0
    elif scaling == "yarn":
        options["yarn"] = functions64.Yarn(4.0, 128, 32.0, 1.0)
        mscale = options["yarn"].mscale()
    elif scaling != "none":
        raise ValueError("scaling %s" % scaling)
    cos, sin = functions64.rope_row(
        line.number("position"), functions64.inverse_frequencies(n, theta, **options), mscale)
    half_split = {"adjacent": False, "halves": True}[line["pairs"]]
    result = []
    for head in matrix(seed, 0, (3, d), line["x"]):
        result += contract.rotate(head, cos, sin, half_split)
    return floats(result)


def experts(line):
    """Ids, weights and the sum of the outputs."""
    seed, e, d, scale = line.number("seed"), line.number("e"), line.number("d"), line["scale"]
    outputs = matrix(seed, 2, (e, d), "plain")
    chosen, weights = moe.route(
        line.input(0, "e"), line.number("k"), GATINGS[line["gating"]],
        bias=tensor(seed, 1, e, "plain") if line.number("bias") else None,
        renormalize=bool(line.number("norm")), scale=None if scale == "1" else parse_f32(scale))
    y = moe.combine(weights, [outputs[i] for i in chosen])
    return integers(chosen) + floats(weights + y)


def elementwise(line):
    """Four rows."""
    a, b, factor = line.input(0), line.input(1), line.fraction("factor")
    return floats(contract.add_rows(a, b) + list(map(mul, a, b)) + contract.scale_row(a, factor)
                  + [fma(factor, y, x) for x, y in zip(a, b)])


def choice(line):
    """Id at temperature 0, margin, log probability."""
    logits = line.input()
    token = sampling.choose_largest(logits)
    return integers([token]) + floats([sampling.margin(logits),
                                       sampling.log_probability(logits, token)])


def sample(line):
    """Id after penalties and filters."""
    n, seed = line.number("n"), line.number("seed")
    history = [word(seed, 1, i) % n for i in range(line.number("history"))]
    logits = sampling.penalize(line.input(), history, line.fraction("repeat"),
                               line.fraction("frequency"), line.fraction("presence"))
    filters = sampling.Filters(line.fraction("temp"), line.number("top_k"),
                               line.fraction("typical"), line.fraction("top_p"),
                               line.fraction("min_p"))
    return integers([sampling.choose(logits, filters, line.number("rng"), line.number("step"))])


def noise(line):
    """The noise of an id."""
    line.unread.discard("seed")
    return floats([sampling.noise(line.number("rng"), line.number("step"), line.number("id"))])


def row_hash(line):
    """The row itself."""
    return floats(line.input())


def shared_experts(line):
    """The output of the shared experts added to that of the others."""
    y, shared = line.input(0, "d"), line.input(1, "d")
    gate = value("wide", word(line.number("seed"), 2, 0))
    return floats(moe.add_shared(y, shared, gate if line.number("gate") else None))


def gated(line):
    """f(gate) * up."""
    gate, up, f = line.input(), line.input(1), FUNCTIONS[line["f"]]
    return floats([mul(f(a), b) for a, b in zip(gate, up, strict=True)])


def confidence(line):
    """Margin and log probability of any id."""
    logits = line.input()
    chosen = word(line.number("seed"), 1, 0) % len(logits)
    return integers([chosen]) + floats([sampling.margin(logits),
                                        sampling.log_probability(logits, chosen)])


OPERATORS = {
    "moe_shared": shared_experts, "gated": gated, "confidence": confidence,
    "product": product, "quantize": quantize, "softcap": softcap, "sum32": sum32,
    "rmsnorm": rms_norm, "layernorm": layer_norm, "attention": attend, "kv": cache, "rope": rope,
    "moe": experts, "elementwise": elementwise, "choice": choice, "sample": sample,
    "noise": noise, "hash": row_hash, **dict.fromkeys(FUNCTIONS, function)}


def result(line):
    """The bytes of the result of a line; every parameter must have been used."""
    data = OPERATORS[line.operator](line)
    if line.unread:
        raise ValueError("%s: unknown parameters %s" % (line.operator, sorted(line.unread)))
    return data


def result_hash(line):
    """The hash that a line should end with."""
    return xxh3_128(result(line))
