"""Clause 3 of detrun-numerics(7): the integer weight types, their blocks and products.

A row of weights is a list of groups, one a block of the file.  Written from the manual
page alone.  Shares no code with the program.
"""

import struct
from operator import mul as _integer_mul
from typing import Callable, NamedTuple

from binary_float import fma, mul, to_f32
from contract import finite, tree_sum

IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


class Group(NamedTuple):
    """One block: sc * q in pieces of 32 elements, and its minimum or minima, if any."""

    d: float
    pieces: tuple
    m: float | None = None
    dmin: float | None = None
    minima: tuple = ()


class QuantType(NamedTuple):
    """Elements and bytes of a block, how it is read, and where its binary16 scales are."""

    elements: int
    size: int
    read: Callable
    scales_at: tuple


def _pieces(products):
    return tuple(tuple(products[i:i + 32]) for i in range(0, len(products), 32))


def _scaled(q, scales):
    """The pieces of sc * q; the sub-blocks are of equal size."""
    size = len(q) // len(scales)
    return _pieces([scales[e // size] * value for e, value in enumerate(q)])


def _halves(b):
    """The four-bit numbers of a block of 32: all low halves, then all high ones."""
    return [byte & 15 for byte in b] + [byte >> 4 for byte in b]


# Blocks of 32

def _read_q8_0(raw):
    d, *q = struct.unpack("<e32b", raw)
    return Group(d, (tuple(q),))


def _read_q4_0(raw):
    d, b = struct.unpack("<e16s", raw)
    return Group(d, _pieces([value - 8 for value in _halves(b)]))


def _read_q4_1(raw):
    d, m, b = struct.unpack("<2e16s", raw)
    return Group(d, _pieces(_halves(b)), m)


def _with_fifth_bit(h, b):
    return [value | (h >> e & 1) << 4 for e, value in enumerate(_halves(b))]


def _read_q5_0(raw):
    d, h, b = struct.unpack("<eI16s", raw)
    return Group(d, _pieces([value - 16 for value in _with_fifth_bit(h, b)]))


def _read_q5_1(raw):
    d, m, h, b = struct.unpack("<2eI16s", raw)
    return Group(d, _pieces(_with_fifth_bit(h, b)), m)


def _read_iq4_nl(raw):
    d, b = struct.unpack("<e16s", raw)
    return Group(d, _pieces([IQ4_VALUES[value] for value in _halves(b)]))


# Blocks of 256

def _read_q2_k(raw):
    t, b, d, dmin = struct.unpack("<16s64s2e", raw)
    q = [b[32 * n + 16 * h + i] >> 2 * j & 3
         for n in range(2) for j in range(4) for h in range(2) for i in range(16)]
    return Group(d, _scaled(q, [byte & 15 for byte in t]), None, dmin,
                 tuple(float(byte >> 4) for byte in t))


def _read_q3_k(raw):
    u, b, t, d = struct.unpack("<32s64s12se", raw)
    q = [(b[32 * n + 16 * h + i] >> 2 * j & 3) - (0 if u[16 * h + i] >> (4 * n + j) & 1 else 4)
         for n in range(2) for j in range(4) for h in range(2) for i in range(16)]
    scales = []
    for s in range(16):
        low = t[s] & 15 if s < 8 else t[s - 8] >> 4
        high = t[8 + s % 4] >> 2 * (s // 4) & 3
        scales.append((low | high << 4) - 32)
    return Group(d, _scaled(q, scales))


def _scales_and_minima(t):
    """The sc and m of the 8 sub-blocks of Q4_K and Q5_K."""
    scales = [t[s] & 63 for s in range(4)]
    scales += [t[s + 4] & 15 | (t[s - 4] >> 6) << 4 for s in range(4, 8)]
    minima = [t[s + 4] & 63 for s in range(4)]
    minima += [t[s + 4] >> 4 | (t[s] >> 6) << 4 for s in range(4, 8)]
    return scales, tuple(map(float, minima))


def _quarter_halves(b):
    """The four-bit numbers of Q4_K: of every 32 bytes the low halves, then the high ones."""
    return [value for p in range(4) for value in _halves(b[32 * p:32 * p + 32])]


def _read_q4_k(raw):
    d, dmin, t, b = struct.unpack("<2e12s128s", raw)
    scales, minima = _scales_and_minima(t)
    return Group(d, _scaled(_quarter_halves(b), scales), None, dmin, minima)


def _read_q5_k(raw):
    d, dmin, t, h, b = struct.unpack("<2e12s32s128s", raw)
    scales, minima = _scales_and_minima(t)
    q = [value | (h[e % 32] >> e // 32 & 1) << 4 for e, value in enumerate(_quarter_halves(b))]
    return Group(d, _scaled(q, scales), None, dmin, minima)


def _read_q6_k(raw):
    b, h, *t, d = struct.unpack("<128s64s16be", raw)
    q = []
    for n in range(2):
        for j in range(4):
            for i in range(32):
                byte = b[64 * n + 32 * (j % 2) + i]
                low = byte & 15 if j < 2 else byte >> 4
                q.append((low | (h[32 * n + i] >> 2 * j & 3) << 4) - 32)
    return Group(d, _scaled(q, t))


def _read_iq4_xs(raw):
    d, h, t, b = struct.unpack("<eH4s128s", raw)
    scales = [((t[s // 2] >> 4 * (s % 2) & 15) | (h >> 2 * s & 3) << 4) - 32 for s in range(8)]
    q = [IQ4_VALUES[value] for s in range(8) for value in _halves(b[16 * s:16 * s + 16])]
    return Group(d, _scaled(q, scales))


QUANT_TYPES = {
    "Q4_0": QuantType(32, 18, _read_q4_0, (0,)),
    "Q4_1": QuantType(32, 20, _read_q4_1, (0, 2)),
    "Q5_0": QuantType(32, 22, _read_q5_0, (0,)),
    "Q5_1": QuantType(32, 24, _read_q5_1, (0, 2)),
    "Q8_0": QuantType(32, 34, _read_q8_0, (0,)),
    "Q2_K": QuantType(256, 84, _read_q2_k, (80, 82)),
    "Q3_K": QuantType(256, 110, _read_q3_k, (108,)),
    "Q4_K": QuantType(256, 144, _read_q4_k, (0, 2)),
    "Q5_K": QuantType(256, 176, _read_q5_k, (0, 2)),
    "Q6_K": QuantType(256, 210, _read_q6_k, (208,)),
    "IQ4_NL": QuantType(32, 18, _read_iq4_nl, (0,)),
    "IQ4_XS": QuantType(256, 136, _read_iq4_xs, (0,)),
}


def read_row(kind, data):
    """The groups of a row of whole blocks; their scales must be finite."""
    quant = QUANT_TYPES[kind]
    if len(data) % quant.size:
        raise ValueError("%s: %d bytes are no whole blocks" % (kind, len(data)))
    groups = [quant.read(data[i:i + quant.size]) for i in range(0, len(data), quant.size)]
    for group in groups:
        finite([group.d, group.m or 0.0, group.dmin or 0.0], "block scales of " + kind)
    return groups


def widen_row(groups):
    """The elements of a row."""
    result = []
    for group in groups:
        products = [group.d * value for piece in group.pieces for value in piece]
        # in binary64 the sums below are exact, so that they are rounded once
        if group.m is not None:
            products = [to_f32(value + group.m) for value in products]
        elif group.dmin is not None:
            size = len(products) // len(group.minima)
            products = [to_f32(value - group.dmin * group.minima[e // size])
                        for e, value in enumerate(products)]
        result += products
    return result


class Input:
    """A quantized row of activations, with what all rows of weights need of it."""

    def __init__(self, blocks):
        self.blocks = blocks
        self._sums = {}

    def sums(self, size):
        """d_x * f32(B) of every run of that many elements, 16 or 32."""
        if size not in self._sums:
            self._sums[size] = [mul(d, float(sum(q[i:i + size])))
                                for d, q in self.blocks for i in range(0, 32, size)]
        return self._sums[size]


def _product_row(x, groups):
    a = [0.0] * 8
    blocks, i = x.blocks, 0
    for g, group in enumerate(groups):
        e, first = 0.0, i
        for piece in group.pieces:
            d_x, q_x = blocks[i]
            # below 2^24, so the conversion is exact
            e = fma(d_x, float(sum(map(_integer_mul, piece, q_x))), e)
            i += 1
        lane = fma(group.d, e, a[g % 8])
        if group.m is not None:
            lane = fma(group.m, x.sums(32)[first], lane)
        elif group.dmin is not None:
            size = 32 * len(group.pieces) // len(group.minima)
            start = 32 // size * first
            f = 0.0
            for m_s, part in zip(group.minima, x.sums(size)[start:start + len(group.minima)],
                                 strict=True):
                f = fma(m_s, part, f)
            lane = fma(-group.dmin, f, lane)
        a[g % 8] = lane
    if i != len(blocks):
        raise ValueError("%d blocks of weights for %d of input" % (i, len(blocks)))
    return tree_sum(a)


def product_quantized(blocks, rows):
    """y[n] for rows of groups and the blocks (d, q) of the quantized input."""
    x = Input(blocks)
    return [_product_row(x, groups) for groups in rows]
