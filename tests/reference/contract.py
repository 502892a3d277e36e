"""The operators of detrun-numerics(7), profile portable, version 1, in plain Python.

Written from the manual page alone, as a second opinion on it: shares no code with the
program.  Clause numbers are those of the page.  Values are Python floats that hold
binary32 values exactly; see binary_float.py for the rounding.
"""

import math
import struct
from array import array
from operator import mul as _integer_mul

from binary_float import (
    BINARY32, INF, NAN, add, bits, decode_f16, div, encode_f16, f32_from_integer, fma, from_bits,
    mul, parse_f32, round_to, sqrt, sub)
from xxh3 import xxh3_128

KV_TYPES = ("f16", "f32")
ATTENTION_BLOCK = 64
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


def _fma_lanes(x, y, lanes):
    """a[k mod lanes] = fma(x[k], y[k], a[k mod lanes]) in ascending k."""
    a = [0.0] * lanes
    for k in range(0, len(x), lanes):
        head = list(map(fma, x[k:k + lanes], y[k:k + lanes], a))
        a[:len(head)] = head
    return a


# 1. Product with F32, F16 and BF16 weights

def product_float(x, rows):
    """y[n] for rows of widened weights."""
    return [tree_sum(_fma_lanes(x, row, 32)) for row in rows]


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


# 3. Product with integer weights

def product_q8_0(blocks, rows):
    """y[n] for rows of groups (d_w, q_w), one block a group, and quantized input."""
    result = []
    for row in rows:
        a = [0.0] * 8
        for g, ((d_w, q_w), (d_x, q_x)) in enumerate(zip(row, blocks, strict=True)):
            total = sum(map(_integer_mul, q_w, q_x))
            e = fma(d_x, f32_from_integer(total), 0.0)
            a[g % 8] = fma(d_w, e, a[g % 8])
        result.append(tree_sum(a))
    return result


# 4. Exponential, logarithm, SiLU

EXP_LOG2E = parse_f32("1.44269504088896341")
EXP_LN2 = (parse_f32("-0.693145751953125"), parse_f32("-1.428606765330187e-06"))
EXP_TERMS = tuple(map(parse_f32, (
    "0.0014035551575943828", "0.008372284471988678", "0.04166555032134056",
    "0.16666488349437714", "0.5", "1", "1")))
EXP_ROUNDER = 12582912.0

LOG_TERMS = tuple(map(parse_f32, (
    "-0.13188140094280243", "0.1396193653345108", "-0.1211593970656395", "0.14011041820049286",
    "-0.16685406863689423", "0.2001003473997116", "-0.24999690055847168", "0.33333224058151245",
    "-0.5")))
LOG_LN2 = parse_f32("0.693147182")


def _horner(terms, x):
    p = terms[0]
    for term in terms[1:]:
        p = fma(p, x, term)
    return p


def exp(x):
    """e^x."""
    if x != x:
        return NAN
    c = min(max(x, -104.0), 89.0)
    t = fma(c, EXP_LOG2E, EXP_ROUNDER)
    n = sub(t, EXP_ROUNDER)
    r = fma(n, EXP_LN2[0], c)
    r = fma(n, EXP_LN2[1], r)
    p = _horner(EXP_TERMS, r)
    k = bits(t) - 0x4B400000
    k1 = k // 2
    k2 = k - k1
    return mul(mul(p, from_bits((k1 + 127) << 23)), from_bits((k2 + 127) << 23))


def log(x):
    """The natural logarithm."""
    if x == 0:
        return -INF
    if x == INF:
        return x
    if x < 0 or x != x:
        return NAN
    u, e = bits(x), 0.0
    if u < 0x00800000:
        u, e = bits(mul(x, 8388608.0)), -23.0
    step = (u - 0x3F2AAAAB) % (1 << 32) & 0xFF800000
    signed = step - (1 << 32) if step & 0x80000000 else step
    e = add(e, f32_from_integer(signed // (1 << 23)))
    f = sub(from_bits((u - step) % (1 << 32)), 1.0)
    p = _horner(LOG_TERMS, f)
    low = fma(p, mul(f, f), f)
    return fma(e, LOG_LN2, low)


def silu(x):
    """x / (1 + exp(-x))."""
    return div(x, add(1.0, exp(-x)))


# 5. RMSNorm

def rms_norm(x, weight, eps):
    """The normalized row."""
    (total,) = finite([tree_sum(_fma_lanes(x, x, 32))], "sum of squares")
    mean = div(total, f32_from_integer(len(x)))
    r = div(1.0, sqrt(add(mean, eps)))
    return [mul(mul(value, r), w) for value, w in zip(x, weight, strict=True)]


# 6. Attention

def attention_scale(head_size):
    """1 / sqrt(D), in binary64, then rounded to binary32."""
    return round_to(1.0 / math.sqrt(head_size), BINARY32)


def _attention_block(q, keys, values, scale):
    scores = [mul(tree_sum(_fma_lanes(q, key, 8)), scale) for key in keys]
    m = max(scores)
    p = [exp(sub(score, m)) for score in scores]
    o = [0.0] * len(q)
    for weight, value in zip(p, values, strict=True):
        o = [fma(weight, v, before) for v, before in zip(value, o, strict=True)]
    return m, sum32(p), o


def attention(q, keys, values, scale):
    """One query head over the cached positions 0 .. P of its kv head."""
    m, length, o = 0.0, 0.0, []
    for start in range(0, len(keys), ATTENTION_BLOCK):
        end = start + ATTENTION_BLOCK
        m_b, l_b, o_b = _attention_block(q, keys[start:end], values[start:end], scale)
        if start == 0:
            m, length, o = m_b, l_b, o_b
            continue
        top = max(m, m_b)
        a, b = exp(sub(m, top)), exp(sub(m_b, top))
        length = fma(length, a, mul(l_b, b))
        o = [fma(before, a, mul(value, b)) for before, value in zip(o, o_b)]
        m = top
    return [add(div(value, length), 0.0) for value in o]


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


# 10. Residual and products

def add_rows(x, y):
    """x + y."""
    return [add(a, b) for a, b in zip(x, y, strict=True)]


def gate_rows(gate, up):
    """silu(gate) * up."""
    return [mul(silu(a), b) for a, b in zip(gate, up, strict=True)]


# 11. Margin and log probability

def margin(logits):
    """The largest logit less the second largest."""
    if len(logits) == 1:
        return INF
    first, second = sorted(logits, reverse=True)[:2]
    return sub(first, second)


def log_probability(logits, chosen):
    """The log probability of an id."""
    m = max(logits)
    total = sum32(exp(sub(value, m)) for value in logits)
    return sub(sub(logits[chosen], m), log(total))


# 12. Choice at temperature 0

def choose(logits):
    """The lowest id of the largest logit."""
    return logits.index(max(logits))


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
