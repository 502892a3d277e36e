"""Edge cases of clause 3: every block layout bit by bit, products by hand and from rationals.

Shares no code with the program.
"""

import random
import struct
import unittest
from fractions import Fraction

from binary_float import bits, from_bits
from cases import TWO24, ContractCase, fused, nearest
from contract import ContractError, quantize, tree_sum
from quant_types import QUANT_TYPES, Group, product_quantized, read_row, widen_row

ONE = struct.pack("<e", 1.0)

# Bytes of blocks whose scales and sub-block scales are 1 and whose q are all the same, and
# that q; the minima are 0.
PLAIN = {
    "Q8_0": (ONE + bytes(32), 0),
    "Q4_0": (ONE + bytes(16), -8),
    "Q4_1": (ONE + bytes(18), 0),
    "Q5_0": (ONE + bytes(20), -16),
    "Q5_1": (ONE + bytes(22), 0),
    "IQ4_NL": (ONE + bytes(16), -127),
    "Q2_K": (bytes([1] * 16 + [0] * 64) + ONE + bytes(2), 0),
    # 33 = 1 or 2 << 4: low halves of 1, all pairs of high bits 2
    "Q3_K": (bytes([0] * 96 + [0x11] * 8 + [0xAA] * 4) + ONE, -4),
    # sc of s < 4 in t[0 .. 3], of s >= 4 in the low halves of t[8 .. 11]
    "Q4_K": (ONE + bytes([0, 0] + [1] * 4 + [0] * 4 + [1] * 4 + [0] * 128), 0),
    "Q5_K": (ONE + bytes([0, 0] + [1] * 4 + [0] * 4 + [1] * 4 + [0] * 160), 0),
    "Q6_K": (bytes([0] * 192 + [1] * 16) + ONE, -32),
    "IQ4_XS": (ONE + struct.pack("<H", 0xAAAA) + bytes([0x11] * 4 + [0] * 128), -127),
}

# type, offset in the block, byte written there, the elements that change and their q
SPOTS = [
    ("Q8_0", 2, 0x80, {0: -128}), ("Q8_0", 33, 0x7F, {31: 127}),
    ("Q4_0", 2, 0x0F, {0: 7}), ("Q4_0", 17, 0x90, {31: 1}),
    ("Q4_1", 4, 0x0F, {0: 15}), ("Q4_1", 19, 0x90, {31: 9}),
    ("Q5_0", 2, 0x01, {0: 0}), ("Q5_0", 5, 0x80, {31: 0}), ("Q5_0", 4, 0x01, {16: 0}),
    ("Q5_0", 6, 0x0F, {0: -1}), ("Q5_0", 21, 0x90, {31: -7}),
    ("Q5_1", 4, 0x01, {0: 16}), ("Q5_1", 7, 0x80, {31: 16}), ("Q5_1", 6, 0x01, {16: 16}),
    ("Q5_1", 8, 0x0F, {0: 15}), ("Q5_1", 23, 0x90, {31: 9}),
    ("IQ4_NL", 2, 0x0F, {0: 113}), ("IQ4_NL", 17, 0x80, {31: 1}),
    # e = 128 n + 32 j + 16 h + l has the bits 2 j of byte 32 n + 16 h + l
    ("Q2_K", 16, 0x03, {0: 3}), ("Q2_K", 16 + 21, 0x10, {85: 1}),
    ("Q2_K", 16 + 63, 0xC0, {255: 3}), ("Q2_K", 16 + 37, 0x0C, {165: 3}),
    ("Q3_K", 32, 0x03, {0: -1}), ("Q3_K", 32 + 21, 0x10, {85: -3}),
    ("Q3_K", 32 + 63, 0xC0, {255: -1}), ("Q3_K", 0, 0x01, {0: 0}),
    ("Q3_K", 21, 0x04, {85: 0}), ("Q3_K", 31, 0x80, {255: 0}), ("Q3_K", 5, 0x20, {165: 0}),
    # e = 64 p + l low half, 64 p + 32 + l high half, of byte 32 p + l
    ("Q4_K", 16, 0x0F, {0: 15}), ("Q4_K", 16 + 31, 0x90, {63: 9}),
    ("Q4_K", 16 + 37, 0x21, {69: 1, 101: 2}), ("Q4_K", 16 + 127, 0xF0, {255: 15}),
    ("Q5_K", 48, 0x0F, {0: 15}), ("Q5_K", 48 + 127, 0xF0, {255: 15}),
    ("Q5_K", 48 + 37, 0x21, {69: 1, 101: 2}),
    ("Q5_K", 16, 0x01, {0: 16}), ("Q5_K", 47, 0x80, {255: 16}), ("Q5_K", 21, 0x04, {69: 16}),
    # e = 128 n + 32 j + l: byte 64 n + 32 (j mod 2) + l, high bits 2 j of byte 32 n + l
    ("Q6_K", 0, 0x0F, {0: -17}), ("Q6_K", 0, 0x10, {64: -31}), ("Q6_K", 37, 0x21, {37: -31,
     101: -30}), ("Q6_K", 127, 0xF0, {255: -17}), ("Q6_K", 64 + 5, 0x01, {133: -31}),
    ("Q6_K", 128, 0x03, {0: 16}), ("Q6_K", 128 + 5, 0x04, {37: -16}),
    ("Q6_K", 128 + 63, 0xC0, {255: 16}), ("Q6_K", 128 + 37, 0x10, {197: -16}),
    ("IQ4_XS", 8, 0x0F, {0: 113}), ("IQ4_XS", 8 + 15, 0x80, {31: 1}),
    ("IQ4_XS", 8 + 21, 0x12, {37: -83, 53: -104}), ("IQ4_XS", 8 + 127, 0xF0, {255: 113}),
]


def group_of(kind, raw):
    """The only group of the bytes of one block."""
    (group,) = read_row(kind, bytes(raw))
    return group


def products_of(group):
    """sc * q of all elements."""
    return [value for piece in group.pieces for value in piece]


class LayoutTest(ContractCase):
    """Where the numbers of a block lie."""

    def test_plain_blocks(self):
        self.assertEqual(set(PLAIN), set(QUANT_TYPES))
        for kind, (raw, q) in PLAIN.items():
            quant = QUANT_TYPES[kind]
            self.assertEqual(len(raw), quant.size, kind)
            group = group_of(kind, raw)
            self.assertEqual(products_of(group), [q] * quant.elements, kind)
            self.assertEqual({len(piece) for piece in group.pieces}, {32})
            self.assertEqual(group.d, 1.0)
            self.assertEqual(set(group.minima), {0.0} if group.minima else set())

    def test_every_quant_has_its_place(self):
        for kind, offset, byte, changes in SPOTS:
            raw, q = bytearray(PLAIN[kind][0]), PLAIN[kind][1]
            raw[offset] = byte
            changed = {e: value for e, value in enumerate(products_of(group_of(kind, raw)))
                       if value != q}
            self.assertEqual(changed, changes, (kind, offset))

    def test_every_byte_counts(self):
        source = random.Random(23)
        for kind, quant in QUANT_TYPES.items():
            raw = bytearray(source.randbytes(quant.size))
            scales = {at + n for at in quant.scales_at for n in range(2)}
            for at in quant.scales_at:
                raw[at:at + 2] = ONE
            seen = {group_of(kind, raw)}
            for offset in sorted(set(range(quant.size)) - scales):
                raw[offset] ^= 0xFF
                seen.add(group_of(kind, raw))
                raw[offset] ^= 0xFF
            self.assertEqual(len(seen), quant.size - len(scales) + 1, kind)

    def test_scales_of_a_block(self):
        for kind, (raw, _) in PLAIN.items():
            fields = QUANT_TYPES[kind].scales_at
            raw = bytearray(raw)
            for at, value in zip(fields, (-0.5, 3.0)):
                struct.pack_into("<e", raw, at, value)
            group = group_of(kind, raw)
            self.assertEqual(group.d, -0.5, kind)
            second = group.dmin if group.m is None else group.m
            self.assertEqual(second, 3.0 if len(fields) == 2 else None, kind)
            for at in fields:
                for pattern in (0x7C00, 0xFC00, 0x7E00):
                    changed = bytearray(raw)
                    struct.pack_into("<H", changed, at, pattern)
                    with self.assertRaises(ContractError):
                        read_row(kind, bytes(changed))

    def test_scales_and_minima_of_q2_k(self):
        raw = bytearray(PLAIN["Q2_K"][0])
        raw[16:80] = bytes([0x55] * 64)
        raw[:16] = bytes(s | (15 - s) << 4 for s in range(16))
        group = group_of("Q2_K", raw)
        self.assertEqual(products_of(group), [e // 16 for e in range(256)])
        self.assertEqual(group.minima, tuple(15.0 - s for s in range(16)))

    def test_scales_of_q3_k(self):
        raw = bytearray(PLAIN["Q3_K"][0])
        raw[:32] = bytes([0xFF] * 32)
        raw[32:96] = bytes([0x55] * 64)
        # six bits 0 .. 63 in steps of 4, and 1 in one of them, less 32
        wanted = [4 * s + (s == 9) for s in range(16)]
        t = [0] * 12
        for s, value in enumerate(wanted):
            t[s % 8] |= (value & 15) << (0 if s < 8 else 4)
            t[8 + s % 4] |= (value >> 4) << 2 * (s // 4)
        raw[96:108] = bytes(t)
        self.assertEqual(t, [0x00, 0x54, 0x88, 0xCC, 0x00, 0x44, 0x88, 0xCC] + [0xE4] * 4)
        self.assertEqual(products_of(group_of("Q3_K", raw)),
                         [wanted[e // 16] - 32 for e in range(256)])

    def test_scales_and_minima_of_q4_k_and_q5_k(self):
        # s: 0 .. 3 six bits; 4 .. 7 four bits here and two on top of t[s - 4] or t[s]
        t = [1, 2 | 0x40, 3 | 0x80, 63 | 0xC0, 9, 10 | 0xC0, 11 | 0x80, 63 | 0x40,
             0x21, 0x43, 0x65, 0xF7]
        scales = [1, 2, 3, 63, 1, 3 + 16, 5 + 32, 7 + 48]
        minima = (9.0, 10.0, 11.0, 63.0, 2.0, 4.0 + 48, 6.0 + 32, 15.0 + 16)
        for kind in ("Q4_K", "Q5_K"):
            raw = bytearray(PLAIN[kind][0])
            raw[4:16] = bytes(t)
            raw[-128:] = bytes([0x11] * 128)
            group = group_of(kind, raw)
            self.assertEqual(products_of(group), [scales[e // 32] for e in range(256)])
            self.assertEqual(group.minima, minima)

    def test_scales_of_q6_k(self):
        raw = bytearray(PLAIN["Q6_K"][0])
        raw[:128] = bytes([0x11] * 128)
        raw[128:192] = bytes([0xAA] * 64)
        raw[192:208] = struct.pack("<16b", *range(-128, 112, 16)[:15], 127)
        self.assertEqual(products_of(group_of("Q6_K", raw)),
                         [-128 + 16 * (e // 16) if e < 240 else 127 for e in range(256)])

    def test_scales_of_iq4_xs(self):
        raw = bytearray(PLAIN["IQ4_XS"][0])
        raw[8:] = bytes([0x88] * 128)
        wanted = [0, 63, 17, 33, 2, 50, 31, 32]
        raw[2:4] = struct.pack("<H", sum((value >> 4) << 2 * s for s, value in enumerate(wanted)))
        raw[4:8] = bytes([0xF0, 0x11, 0x22, 0x0F])
        self.assertEqual(products_of(group_of("IQ4_XS", raw)),
                         [wanted[e // 32] - 32 for e in range(256)])

    def test_rows_are_whole_blocks(self):
        for kind, (raw, _) in PLAIN.items():
            self.assertEqual(len(read_row(kind, raw * 3)), 3)
            with self.assertRaises(ValueError):
                read_row(kind, raw + raw[:-1])


class EmbeddingTest(ContractCase):
    """Elements of rows."""

    def test_scale_only(self):
        raw = struct.pack("<e16B", -0.5, *(l | (15 - l) << 4 for l in range(16)))
        self.same_rows(widen_row(read_row("Q4_0", raw)),
                       [-0.5 * (l - 8) for l in range(16)] + [-0.5 * (7 - l) for l in range(16)])
        # a least subnormal d times the least sc * q, exact
        raw = bytearray(PLAIN["Q6_K"][0])
        raw[192:208] = bytes([0x80] * 16)
        struct.pack_into("<H", raw, 208, 0x8001)
        self.same_rows(widen_row(read_row("Q6_K", bytes(raw))), [-2.0 ** -12] * 256)

    def test_sign_of_zero(self):
        self.same_rows(widen_row([Group(-1.0, ((0,) * 32,))]), [-0.0] * 32)
        self.same_rows(widen_row([Group(-1.0, ((0,) * 32,), 0.0)]), [0.0] * 32)
        self.same_rows(widen_row([Group(-1.0, ((0,) * 32,), None, 0.0, (0.0,))]), [-0.0] * 32)
        self.same_rows(widen_row([Group(1.0, ((0,) * 32,), None, 0.0, (5.0,))]), [0.0] * 32)

    def test_minimum_is_added_with_one_rounding(self):
        raw = struct.pack("<2H16B", 0x0001, 0x3C00, *range(16))
        elements = widen_row(read_row("Q4_1", raw))
        # 1 + q * 2^-24 in steps of 2^-23: ties go to even
        self.same_rows(elements[:8], [1 + k * 2.0 ** -23 for k in (0, 0, 1, 2, 2, 2, 3, 4)])

    def test_minima_of_sub_blocks_with_one_rounding(self):
        raw = bytearray(PLAIN["Q2_K"][0])
        raw[:16] = bytes([0x3F] * 8 + [0x11] * 8)
        raw[16:80] = bytes([0xFF] * 64)
        raw[80:84] = struct.pack("<2H", 0x0001, 0x6400)
        # 15 * 3 * 2^-24 - 1024 * 3 and 3 * 2^-24 - 1024, with 13 and 14 bits below the point
        elements = widen_row(read_row("Q2_K", bytes(raw)))
        self.same_rows(elements, [-3072.0] * 128 + [-1024.0] * 128)
        raw[80:84] = struct.pack("<2e", 1 / 1024, 1024.0)
        elements = widen_row(read_row("Q2_K", bytes(raw)))
        self.same_rows(elements, [45 / 1024 - 3072] * 128 + [3 / 1024 - 1024] * 128)


class IntegerProductTest(ContractCase):
    """Products by hand and from exact rationals."""

    def test_lanes_of_groups(self):
        row = [Group(1.0, ((-128,) * 32,))]
        self.same_rows(product_quantized([(1.0, (127,) * 32)], [row]), [-520192.0])
        row = [Group(-1.0, ((1,) * 32,))]
        self.same_rows(product_quantized([(0.0, (0,) * 32)], [row]), [0.0])
        one = (1,) + (0,) * 31
        blocks, row = [(0.0, one)] * 10, [Group(1.0, (one,))] * 10
        blocks[0] = (TWO24, one)
        blocks[1] = blocks[8] = (1.0, one)
        self.same_rows(product_quantized(blocks, [row]), [TWO24])
        blocks[8], blocks[9] = (0.0, one), (1.0, one)
        self.same_rows(product_quantized(blocks, [row]), [TWO24 + 2])

    def test_a_block_is_rounded_before_its_scale(self):
        third = from_bits(nearest(Fraction(1, 3)))
        q_w = (-128,) * 31 + (-127,)
        total = sum(w * 127 for w in q_w)
        self.assertEqual(total, -520065)
        e = from_bits(nearest(Fraction(third) * total))
        expected = nearest(Fraction(e) * Fraction(2047, 1024))
        result = product_quantized([(third, (127,) * 32)], [[Group(2047 / 1024, (q_w,))]])
        self.assertEqual(bits(result[0]), expected)

    def test_lanes_of_groups_of_256(self):
        one = ((1,) + (0,) * 31,) + ((0,) * 32,) * 7
        x = [(0.0, (1,) + (0,) * 31)] * 80
        row = [Group(1.0, one)] * 10
        x[0] = (TWO24, x[0][1])
        x[8] = x[64] = (1.0, x[0][1])
        self.same_rows(product_quantized(x, [row]), [TWO24])
        x[64], x[72] = x[1], x[64]
        self.same_rows(product_quantized(x, [row]), [TWO24 + 2])

    def test_blocks_of_a_group_are_summed_in_order(self):
        # e = 2^24 + 1 + 1 in order: each 1 is lost; and 1 + 1 + 2^24 is not
        one = ((1,) + (0,) * 31,) * 8
        row = [Group(1.0, one)]
        x = [(d, (1,) + (0,) * 31) for d in (TWO24, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)]
        self.same_rows(product_quantized(x, [row]), [TWO24])
        self.same_rows(product_quantized(x[1:] + x[:1], [row]), [TWO24 + 2])

    def test_extremes_stay_below_two_to_24(self):
        for kind, (raw, _) in PLAIN.items():
            largest = 0
            for byte in (0x00, 0x80, 0xFF, 0x7F):
                for other in (0x00, 0x80, 0xFF):
                    changed = bytearray([byte] * len(raw))
                    half = len(raw) * 3 // 4
                    changed[half:] = bytes([other] * (len(raw) - half))
                    for at in QUANT_TYPES[kind].scales_at:
                        changed[at:at + 2] = ONE
                    group = group_of(kind, changed)
                    largest = max(largest, *(sum(127 * abs(v) for v in p) for p in group.pieces))
            self.assertLess(largest, 2 ** 24, kind)
        self.assertLess(32 * 32 * 127 * 127, 2 ** 24)
        raw = bytes(192) + bytes([0x80] * 16) + ONE
        blocks = [(1.0, (127,) * 32)] * 8
        self.same_rows(product_quantized(blocks, [read_row("Q6_K", raw)]),
                       [8.0 * 4096 * 127 * 32])

    def test_minimum_by_hand(self):
        # d * e + m * (d_x * B): 3 * (2 * 32) + 5 * (2 * 32)
        row = [Group(3.0, ((1,) * 32,), 5.0)]
        self.same_rows(product_quantized([(2.0, (1,) * 32)], [row]), [512.0])
        # the scale comes first: 2^24 is reached before the minimum adds 1
        row = [Group(1.0, ((1,) + (0,) * 31,), 1.0)]
        self.same_rows(product_quantized([(TWO24, (1,) + (0,) * 31)], [row]), [2 * TWO24])
        row = [Group(1.0, ((-1,) + (0,) * 31,), 1.0)]
        self.same_rows(product_quantized([(TWO24, (1,) + (0,) * 31)], [row]), [0.0])

    def test_minima_by_hand(self):
        minima = tuple(map(float, range(16)))
        row = [Group(0.0, ((0,) * 32,) * 8, None, 0.5, minima)]
        x = [(1.0, (1,) * 16 + (2,) * 16)] * 8
        even, odd = sum(range(0, 16, 2)), sum(range(1, 16, 2))
        self.same_rows(product_quantized(x, [row]), [-0.5 * 16 * (even + 2 * odd)])
        row = [Group(0.0, ((0,) * 32,) * 8, None, 0.5, minima[:8])]
        x = [(1.0, (k,) + (0,) * 31) for k in range(8)]
        self.same_rows(product_quantized(x, [row]), [-0.5 * sum(k * k for k in range(8))])

    def test_length_is_checked(self):
        row = [Group(1.0, ((1,) * 32,))]
        for count in (0, 2):
            with self.assertRaises((ValueError, IndexError)):
                product_quantized([(1.0, (1,) * 32)] * count, [row])

    def expected(self, blocks, groups):
        """Clause 3 with every rounding done by bisection."""
        lanes, i = [0] * 8, 0
        for g, group in enumerate(groups):
            e = 0
            for n, piece in enumerate(group.pieces):
                d_x, q_x = blocks[i + n]
                e = fused(d_x, sum(a * b for a, b in zip(piece, q_x)), e)
            lane = fused(group.d, e, lanes[g % 8])
            if group.m is not None:
                d_x, q_x = blocks[i]
                lane = fused(group.m, fused(d_x, sum(q_x), 0), lane)
            if group.dmin is not None:
                f, size = 0, 256 // len(group.minima)
                for s, m_s in enumerate(group.minima):
                    d_x, q_x = blocks[i + s * size // 32]
                    start = s * size % 32
                    f = fused(m_s, fused(d_x, sum(q_x[start:start + size]), 0), f)
                lane = fused(-group.dmin, f, lane)
            lanes[g % 8] = lane
            i += len(group.pieces)
        return tree_sum(lanes)

    def test_every_type_against_rationals(self):
        source = random.Random(21)
        for kind, quant in QUANT_TYPES.items():
            count = 11 if quant.elements == 32 else 3
            raw = bytearray(source.randbytes(quant.size * count))
            for start in range(0, len(raw), quant.size):
                for at in quant.scales_at:
                    struct.pack_into("<e", raw, start + at, source.gauss(0, 1))
            groups = read_row(kind, bytes(raw))
            x = [from_bits(nearest(Fraction(source.gauss(0, 1))))
                 for _ in range(count * quant.elements)]
            blocks = quantize(x)
            self.same_rows(product_quantized(blocks, [groups]), [self.expected(blocks, groups)])

    def test_a_product_is_near_that_of_the_elements(self):
        source = random.Random(22)
        for kind, quant in QUANT_TYPES.items():
            raw = bytearray(source.randbytes(quant.size * 8))
            for start in range(0, len(raw), quant.size):
                for at in quant.scales_at:
                    struct.pack_into("<e", raw, start + at, source.uniform(0.5, 1))
            groups = read_row(kind, bytes(raw))
            x = [float(source.randint(-127, 127)) for _ in range(8 * quant.elements)]
            x[::32] = [127.0] * (len(x) // 32)
            exact = sum(a * b for a, b in zip(x, widen_row(groups)))
            size = sum(abs(a * b) for a, b in zip(x, widen_row(groups)))
            (y,) = product_quantized(quantize(x), [groups])
            self.assertLess(abs(y - exact), 1e-5 * size, kind)


if __name__ == "__main__":
    unittest.main()
