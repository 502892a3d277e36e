"""Clauses 1, 2, 5, 7, 8, 10 and 13 of detrun-numerics(7), profile portable, version 1.

The other clauses: quant_types.py 3, functions32.py 4, attention.py 6, moe.py 9,
sampling.py 11 and 12; the tables of 8 are in functions64.py.  Written from the manual
page alone, as a second opinion on it: shares no code with the program.  Values are Python
floats that hold binary32 values exactly; see binary_float.py for the rounding.
"""

import struct
from array import array

from binary_float import (
    add, bits, decode_f16, div, encode_f16, f32_from_integer, fma, from_bits, mul, sqrt, sub)
from functions32 import silu, softcap
from xxh3 import xxh3_128

KV_TYPES = ("f16", "f32")
LEAST_AMAX = 0x0D800000


class ContractError(ValueError):
    """The contract says that this input ends the run."""


def finite(values, what):
    """The values, if all are finite."""
    for value in values:
        if value - value != 0.0:
            raise ContractError("%s: a value that is not finite" % what)
    return values


# Ground rules

def tree_sum(lanes):
    """T: pairwise sum of a power of two of lanes."""
    a = list(lanes)
    off = len(a) // 2
    while off:
        for i in range(off):
            a[i] = add(a[i], a[i + off])
        off //= 2
    return add(a[0], 0.0)


def sum32(values):
    """S32: a sum over 32 lanes."""
    a = [0.0] * 32
    for i, value in enumerate(values):
        a[i % 32] = add(a[i % 32], value)
    return tree_sum(a)


def fma_lanes(x, y, lanes):
    """The lanes a[k mod lanes] = fma(x[k], y[k], a[k mod lanes]) in ascending k."""
    a = [0.0] * lanes
    for k in range(0, len(x), lanes):
        head = list(map(fma, x[k:k + lanes], y[k:k + lanes], a))
        a[:len(head)] = head
    return a


# 1. Product with F32, F16 and BF16 weights

def product_float(x, rows):
    """y[n] for rows of widened weights."""
    return [tree_sum(fma_lanes(x, row, 32)) for row in rows]


def add_bias(y, bias):
    """The outputs of a product, of any type of weight, with the bias."""
    return add_rows(y, bias)


# 2. Quantization of activations

def quantize_block(x):
    """(d, q) of 32 elements."""
    amax = max(bits(value) & 0x7FFFFFFF for value in x)
    if amax >= 0x7F800000:
        raise ContractError("quantization: a value that is not finite")
    if amax < LEAST_AMAX:
        return 0.0, (0,) * len(x)
    largest = from_bits(amax)
    inverse = div(127.0, largest)
    q = tuple(max(-127, min(127, round(mul(value, inverse)))) for value in x)
    return div(largest, 127.0), q


def quantize(x):
    """The blocks (d, q) of a row whose length is a multiple of 32."""
    if len(x) % 32:
        raise ContractError("quantization: %d elements are no multiple of 32" % len(x))
    return [quantize_block(x[k:k + 32]) for k in range(0, len(x), 32)]


# 5. RMSNorm and LayerNorm

def _inverse_deviation(x, eps):
    (total,) = finite([tree_sum(fma_lanes(x, x, 32))], "sum of squares")
    mean = div(total, f32_from_integer(len(x)))
    return div(1.0, sqrt(add(mean, eps)))


def _scaled(x, r, weight):
    return [mul(mul(value, r), w) for value, w in zip(x, weight, strict=True)]


def rms_norm(x, weight, eps):
    """The row over the root of its mean square."""
    return _scaled(x, _inverse_deviation(x, eps), weight)


def layer_norm(x, weight, eps, bias=None):
    """The row less its mean, over its deviation."""
    mean = div(sum32(x), f32_from_integer(len(x)))
    c = [sub(value, mean) for value in x]
    y = _scaled(c, _inverse_deviation(c, eps), weight)
    return y if bias is None else add_rows(y, bias)


# 7. KV cache

def kv_round(values, kv_type):
    """A row of K or V as the cache gives it back."""
    finite(values, "kv cache")
    if kv_type == "f32":
        return list(values)
    if any(abs(value) >= 65520.0 for value in values):
        raise ContractError("kv cache: a magnitude of 65520 or more")
    return [decode_f16(encode_f16(value)) for value in values]


# 8. Rotary position embedding; the tables are in functions64.py

def rotate(head, cos, sin, half_split=False):
    """A head with its first 2 * len(cos) elements rotated."""
    y, count = list(head), len(cos)
    for i, (c, s) in enumerate(zip(cos, sin, strict=True)):
        first, second = (i, i + count) if half_split else (2 * i, 2 * i + 1)
        x0, x1 = head[first], head[second]
        y[first] = fma(-x1, s, mul(x0, c))
        y[second] = fma(x0, s, mul(x1, c))
    return y


# 10. Residual, products, multipliers

def add_rows(x, y, scale=None):
    """x + y, or with a residual scale x + y * scale."""
    if scale is not None:
        y = scale_row(y, scale)
    return [add(a, b) for a, b in zip(x, y, strict=True)]


def gate_rows(gate, up, function=silu):
    """function(gate) * up."""
    return [mul(function(a), b) for a, b in zip(gate, up, strict=True)]


def scale_row(x, scale):
    """x * scale."""
    return [mul(value, scale) for value in x]


def embedding_scale(width):
    """sqrt(f32(n_embd))."""
    return sqrt(f32_from_integer(width))


def finish_logits(x, scale=None, cap=None):
    """The logits with the multiplier and the soft cap of the file."""
    if scale is not None:
        x = scale_row(x, scale)
    return x if cap is None else [softcap(value, cap) for value in x]


# 13. Hash of the logits

def logits_hash(logits):
    """XXH3-128 over the row as little-endian binary32 values."""
    return xxh3_128(struct.pack("<%df" % len(logits), *logits))


def widen(data, kind):
    """Bytes of F32, F16 or BF16 weights as an array of binary32 values; all must be finite."""
    if kind == "F16":
        result = array("f", struct.unpack("<%de" % (len(data) // 2), data))
    elif kind == "BF16":
        words = struct.unpack("<%dH" % (len(data) // 2), data)
        result = array("f", struct.pack("%dI" % len(words), *(word << 16 for word in words)))
    else:
        result = array("f", struct.unpack("<%df" % (len(data) // 4), data))
    return finite(result, "weights")
