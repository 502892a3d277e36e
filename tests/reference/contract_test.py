"""Edge cases of every operator, with values derived by hand or from exact rationals.

The oracle nearest() finds a binary32 value by bisection over the bit patterns with
Fractions, independent of the rounding under test.  Shares no code with the program.
"""

import math
import random
import struct
import unittest
from fractions import Fraction

import binary_float as bf
import contract
import functions64
from binary_float import INF, NAN, bits, from_bits
from contract import ContractError
from xxh3 import xxh3_128

TWO24 = 16777216.0


def size_of(pattern):
    """The magnitude of a pattern without sign; infinity counts as 2^128."""
    return Fraction(2) ** 128 if pattern == 0x7F800000 else Fraction(from_bits(pattern))


def nearest(value):
    """The bits of the binary32 value nearest to a Fraction, ties to even."""
    size, low, high = abs(value), 0, 0x7F800000
    if size >= size_of(high):
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size_of(middle) <= size else (low, middle)
    down, up = size - size_of(low), size_of(high) - size
    if low != high and (up < down or (up == down and low & 1)):
        low = high
    return low | (0x80000000 if value < 0 else 0)


def random_f32(source, low=1, high=0x7F7FFFFF):
    """A finite binary32 value of either sign, uniform over patterns."""
    return from_bits(source.randint(low, high) | source.getrandbits(1) << 31)


class ContractCase(unittest.TestCase):
    """Assertions on bits."""

    def same(self, value, expected):
        """Two binary32 values have the same bits."""
        self.assertEqual("%08x %r" % (bits(value), value), "%08x %r" % (bits(expected), expected))

    def same_rows(self, row, expected):
        """Two rows have the same bits."""
        self.assertEqual([bits(v) for v in row], [bits(v) for v in expected])

    def close(self, value, exact, ulps=1):
        """A value lies within some patterns of an exact one of the same sign."""
        self.assertLessEqual(abs(bits(value) - nearest(Fraction(exact))), ulps, (value, exact))


class RoundingTest(ContractCase):
    """Conversion, fma and the other operations."""

    def test_conversion_to_binary32(self):
        source = random.Random(1)
        values = [2.0 ** -150, 1.5 * 2.0 ** -149, 2.0 ** -151, 2.0 ** 128 - 2.0 ** 103, 2.0 ** 200,
                  math.nextafter(2.0 ** 128 - 2.0 ** 103, 0), 2.0 ** 24 + 1, 2.0 ** 24 + 3,
                  math.nextafter(2.0 ** -150, 1), 2.0 ** -126 - 2.0 ** -150]
        for _ in range(500):
            a = abs(random_f32(source))
            middle = (a + from_bits(bits(a) + 1)) / 2 if bits(a) < 0x7F7FFFFF else a
            values += [middle, math.nextafter(middle, 0), math.nextafter(middle, INF)]
        for value in values:
            expected = nearest(Fraction(value))
            for sign, mask in ((1.0, 0), (-1.0, 0x80000000)):
                self.assertEqual(bits(bf.to_f32(sign * value)), expected | mask, value)
                self.assertEqual(bits(bf.round_to(sign * value, bf.BINARY32)), expected | mask)

    def test_signed_zero_and_specials_keep_their_bits(self):
        for value in (0.0, -0.0, INF, -INF):
            self.same(bf.to_f32(value), value)
            self.same(bf.round_to(value, bf.BINARY32), value)
        self.assertEqual(bits(NAN), 0x7FC00000)

    def test_integers(self):
        self.same(bf.f32_from_integer(16777217), TWO24)
        self.same(bf.f32_from_integer(16777219), 16777220.0)
        self.same(bf.f32_from_integer(-16777217), -TWO24)
        self.same(bf.f32_from_integer(0), 0.0)

    def test_decimals(self):
        for text in ("0.1", "-1.428606765330187e-06", "3.4028236e38", "1e-45", "7.1e-46", "1e-60"):
            self.assertEqual(bits(bf.parse_f32(text)), nearest(Fraction(text)))
        # just above the tie 1 + 2^-24, by less than binary64 can tell
        self.same(bf.parse_f32("1.000000059604644775390625000000001"), 1 + 2.0 ** -23)

    def test_fma_rounds_once(self):
        a = 1 + 2.0 ** -12
        self.same(bf.fma(a, a, -(1 + 2.0 ** -11)), 2.0 ** -24)
        less, more = 1 - 2.0 ** -18, 1 + 2.0 ** -18
        # 1 + 3 * 2^-24 - 2^-60 is a tie after 53 bits, but not a tie
        self.same(bf.fma(less * 2.0 ** -24, more, 1 + 2.0 ** -23), 1 + 2.0 ** -23)
        self.same(bf.fma(-less * 2.0 ** -24, more, -1 - 2.0 ** -23), -1 - 2.0 ** -23)
        # the same at the edge of overflow: 2^128 - 2^103, less 2^67 and exactly
        largest = from_bits(0x7F7FFFFF)
        self.same(bf.fma(less * 2.0 ** 100, more * 8, largest), largest)
        self.same(bf.fma(2.0 ** 100, 8.0, largest), INF)
        self.same(bf.fma(2.0 ** 100, -8.0, -largest), -INF)

    def test_fma_subnormal(self):
        tiny = 2.0 ** -75
        self.same(bf.fma(tiny, tiny, 0.0), 0.0)
        self.same(bf.fma(-tiny, tiny, 0.0), -0.0)
        self.same(bf.fma(tiny, 3 * tiny, 0.0), 2.0 ** -148)
        self.same(bf.fma(tiny, tiny * (1 + 2.0 ** -23), 0.0), 2.0 ** -149)
        self.same(bf.fma(-tiny, tiny, 2.0 ** -149), 0.0)

    def test_fma_signed_zero(self):
        self.same(bf.fma(-0.0, 1.0, -0.0), -0.0)
        self.same(bf.fma(-0.0, 1.0, 0.0), 0.0)
        self.same(bf.fma(1.0, -1.0, 1.0), 0.0)
        self.same(bf.fma(INF, 1.0, 5.0), INF)
        self.assertTrue(math.isnan(bf.fma(INF, 1.0, -INF)))

    def test_fma_against_rationals(self):
        source = random.Random(2)
        for _ in range(1500):
            a, b = random_f32(source), random_f32(source)
            product = Fraction(a) * Fraction(b)
            c = from_bits(nearest(product) & 0x7FFFFFFF)
            if c == INF or c == 0:
                continue
            shifted = max(1, min(0x7F7FFFFF, bits(c) + source.randint(-40, 40) * 0x00800000))
            for other in (-math.copysign(c, product), from_bits(shifted)):
                exact = product + Fraction(other)
                if exact:
                    self.assertEqual(bits(bf.fma(a, b, other)), nearest(exact), (a, b, other))

    def test_operations_against_rationals(self):
        source = random.Random(3)
        for low, high in ((1, 0x7F7FFFFF), (1, 0x01FFFFFF), (0x3F000000, 0x40000000)):
            for _ in range(250):
                a, b = random_f32(source, low, high), random_f32(source, low, high)
                x, y = Fraction(a), Fraction(b)
                self.assertEqual(bits(bf.div(a, b)), nearest(x / y))
                self.assertEqual(bits(bf.mul(a, b)), nearest(x * y))
                if x != y:
                    self.assertEqual(bits(bf.sub(a, b)), nearest(x - y))

    def test_division_and_root_at_the_edges(self):
        self.same(bf.div(1.0, -0.0), -INF)
        self.assertTrue(math.isnan(bf.div(0.0, 0.0)))
        self.same(bf.div(-2.0 ** -149, 2.0), -0.0)
        self.same(bf.div(3 * 2.0 ** -149, 2.0), 2.0 ** -148)
        self.same(bf.sqrt(2.0 ** -148), 2.0 ** -74)
        self.same(bf.sqrt(-0.0), -0.0)

    def test_fma64(self):
        self.assertEqual(bf.fma64(1 + 2.0 ** -30, 1 + 2.0 ** -30, -(1 + 2.0 ** -29)), 2.0 ** -60)
        self.assertEqual(math.copysign(1, bf.fma64(1.0, -1.0, 1.0)), 1.0)
        source = random.Random(4)
        for _ in range(500):
            a, b, c = (math.ldexp(source.uniform(-1, 1), source.randint(-30, 30)) for _ in "abc")
            exact = Fraction(a) * Fraction(b) + Fraction(c)
            self.assertEqual(bf.fma64(a, b, c), exact.numerator / exact.denominator)


class HalfFormatsTest(ContractCase):
    """binary16 and bfloat16."""

    def test_every_binary16_pattern(self):
        for h in range(0x10000):
            value = bf.decode_f16(h)
            if h & 0x7C00 == 0x7C00 and h & 0x03FF:
                self.assertTrue(math.isnan(value))
                continue
            self.assertEqual(struct.pack("<e", value), struct.pack("<H", h))
            self.assertEqual(bf.encode_f16(value), h)

    def test_binary16_ties_and_overflow(self):
        for value, pattern in (
                (65519.99609375, 0x7BFF), (65520.0, 0x7C00), (-65520.0, 0xFC00), (INF, 0x7C00),
                (2.0 ** -25, 0x0000), (-2.0 ** -25, 0x8000), (3 * 2.0 ** -25, 0x0002),
                (from_bits(bits(2.0 ** -25) + 1), 0x0001), (2.0 ** -14 - 2.0 ** -25, 0x0400),
                (2049.0, 0x6800), (2051.0, 0x6802), (1 + 2.0 ** -11, 0x3C00)):
            self.assertEqual(bf.encode_f16(value), pattern, value)

    def test_bfloat16(self):
        for source, pattern in (
                (0x3F808000, 0x3F80), (0x3F818000, 0x3F82), (0x3F808001, 0x3F81),
                (0x7F7FFFFF, 0x7F80), (0xFF7F7FFF, 0xFF7F), (0x00008000, 0x0000),
                (0x80018000, 0x8002), (0x80000000, 0x8000), (0x7F800001, 0x7FC0)):
            self.assertEqual(bf.encode_bf16(from_bits(source)), pattern, hex(source))
        self.same(bf.decode_bf16(0x0001), 2.0 ** -133)

    def test_widening_of_weights(self):
        words = struct.pack("<4H", 0x3C00, 0x8000, 0x0001, 0x7BFF)
        self.same_rows(contract.widen(words, "F16"), [1.0, -0.0, 2.0 ** -24, 65504.0])
        words = struct.pack("<3H", 0x3F80, 0x8001, 0x7F7F)
        self.same_rows(contract.widen(words, "BF16"), [1.0, -2.0 ** -133, from_bits(0x7F7F0000)])
        for kind, word in (("F16", 0x7C00), ("BF16", 0xFF80), ("BF16", 0x7FC0)):
            with self.assertRaises(ContractError):
                contract.widen(struct.pack("<H", word), kind)


class SumsAndProductsTest(ContractCase):
    """T, S32 and clauses 1 to 3."""

    def test_tree_sum(self):
        # (2^24 + 1) + (1 + 1): the first is a tie and goes down
        self.same(contract.tree_sum([TWO24, 1.0, 1.0, 1.0]), TWO24 + 2)
        self.same(contract.tree_sum([-0.0] * 8), 0.0)
        self.same(contract.tree_sum([-0.0]), 0.0)

    def test_sum32(self):
        values = [0.0] * 33
        values[0], values[16], values[32] = TWO24, 1.0, 1.0
        self.same(contract.sum32(values), TWO24)
        values[16], values[17], values[1] = 0.0, 1.0, 1.0
        self.same(contract.sum32(values), TWO24 + 2)
        self.same(contract.sum32([]), 0.0)

    def test_product_lanes_for_any_length(self):
        source = random.Random(5)
        for length in (1, 2, 31, 32, 33, 64, 65, 172):
            x = [bf.to_f32(source.gauss(0, 1)) for _ in range(length)]
            w = [bf.to_f32(source.gauss(0, 1)) for _ in range(length)]
            lanes = [0] * 32
            for k in range(length):
                exact = Fraction(x[k]) * Fraction(w[k]) + Fraction(lanes[k % 32])
                lanes[k % 32] = from_bits(nearest(exact))
            for off in (16, 8, 4, 2, 1):
                for i in range(off):
                    exact = Fraction(lanes[i]) + Fraction(lanes[i + off])
                    lanes[i] = from_bits(nearest(exact))
            self.same_rows(contract.product_float(x, [w]), [lanes[0]])

    def test_product_by_hand(self):
        self.same_rows(contract.product_float([-0.0], [[1.0]]), [0.0])
        # lane 0 keeps the rounding error of the product for the element 32 after it
        a = 1 + 2.0 ** -12
        x = [1 + 2.0 ** -11] + [0.0] * 31 + [a]
        self.same_rows(contract.product_float(x, [[-1.0] + [0.0] * 31 + [a]]), [2.0 ** -24])

    def test_quantization_threshold(self):
        below = [from_bits(0x0D7FFFFF), -from_bits(0x0D7FFFFF)] + [0.0] * 30
        d, q = contract.quantize_block(below)
        self.same(d, 0.0)
        self.assertEqual(set(q), {0})
        d, q = contract.quantize_block([-2.0 ** -100, 2.0 ** -101, 3 * 2.0 ** -102] + [-0.0] * 29)
        self.assertEqual(bits(d), nearest(Fraction(1, 127 * 2 ** 100)))
        # the products are 127, 63.5 and 95.25: the tie 63.5 goes to 64
        self.assertEqual(q, (-127, 64, 95) + (0,) * 29)

    def test_quantization_ties_and_rounded_product(self):
        x = [127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, -126.5, 125.5] + [0.0] * 22
        d, q = contract.quantize_block(x)
        self.same(d, 1.0)
        self.assertEqual(q[:10], (127, 0, 2, 2, 0, -2, -2, 126, -126, 126))
        largest = from_bits(0x7F7FFFFF)
        d, q = contract.quantize_block([-largest, largest] + [1.0] * 30)
        self.assertEqual(bits(d), nearest(Fraction(largest) / 127))
        self.assertEqual(q, (-127, 127) + (0,) * 30)

    def test_quantization_refuses(self):
        for pattern in (0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001):
            with self.assertRaises(ContractError):
                contract.quantize_block([from_bits(pattern)] + [0.0] * 31)
        with self.assertRaises(ContractError):
            contract.quantize([1.0] * 33)

    def test_integer_product(self):
        row = [(1.0, (-128,) * 32)]
        self.same_rows(contract.product_q8_0([(1.0, (127,) * 32)], [row]), [-520192.0])
        self.same_rows(contract.product_q8_0([(0.0, (0,) * 32)], [[(-1.0, (1,) * 32)]]), [0.0])
        one = (1,) + (0,) * 31
        blocks, row = [(0.0, one)] * 10, [(1.0, one)] * 10
        blocks[0] = (TWO24, one)
        blocks[1] = blocks[8] = (1.0, one)
        self.same_rows(contract.product_q8_0(blocks, [row]), [TWO24])
        blocks[8], blocks[9] = (0.0, one), (1.0, one)
        self.same_rows(contract.product_q8_0(blocks, [row]), [TWO24 + 2])

    def test_integer_product_rounds_the_block_first(self):
        third = from_bits(nearest(Fraction(1, 3)))
        q_w = (-128,) * 31 + (-127,)
        total = sum(w * 127 for w in q_w)
        self.assertEqual(total, -520065)
        e = from_bits(nearest(Fraction(third) * total))
        expected = nearest(Fraction(e) * Fraction(2047, 1024))
        result = contract.product_q8_0([(third, (127,) * 32)], [[(2047 / 1024, q_w)]])
        self.assertEqual(bits(result[0]), expected)


class FunctionsTest(ContractCase):
    """Clause 4 and the functions in binary64."""

    def test_exp_edges(self):
        for x, expected in ((0.0, 1.0), (-0.0, 1.0), (INF, INF), (89.0, INF), (3e38, INF),
                            (-INF, 0.0), (-104.0, 0.0), (-3e38, 0.0), (-103.0, 2.0 ** -149)):
            self.same(contract.exp(x), expected)
        for pattern in (0x7FC00000, 0xFFC12345, 0x7F800001):
            self.assertEqual(bits(contract.exp(from_bits(pattern))), 0x7FC00000)

    def test_exp_and_log_are_close(self):
        source = random.Random(6)
        for _ in range(300):
            x = bf.to_f32(source.uniform(-103, 88.7))
            self.close(contract.exp(x), math.exp(x))
            y = abs(random_f32(source))
            self.close(contract.log(y), math.log(y))
        self.assertLess(contract.exp(from_bits(0x42B17217)), INF)
        self.same(contract.exp(from_bits(0x42B17219)), INF)

    def test_log_edges(self):
        for x, expected in ((0.0, -INF), (-0.0, -INF), (INF, INF), (1.0, 0.0)):
            self.same(contract.log(x), expected)
        for pattern in (0xBF800000, 0xFF800000, 0x7FC00001, 0xFFC00000, 0x80000001):
            self.assertEqual(bits(contract.log(from_bits(pattern))), 0x7FC00000)
        self.assertEqual(bits(contract.log(2.0)), 0x3F317218)
        for pattern in (1, 0x007FFFFF, 0x00800000, 0x3F2AAAAA, 0x3F2AAAAB, 0x3F7FFFFF, 0x3F800001):
            self.close(contract.log(from_bits(pattern)), math.log(from_bits(pattern)))

    def test_silu(self):
        for x, expected in ((0.0, 0.0), (-0.0, -0.0), (100.0, 100.0), (-200.0, -0.0)):
            self.same(contract.silu(x), expected)

    def test_functions_in_binary64(self):
        source = random.Random(7)
        for _ in range(100):
            x = source.uniform(-20, 20)
            self.assertAlmostEqual(functions64.exp64(x) / math.exp(x), 1, delta=1e-15)
            y = math.exp(x)
            self.assertAlmostEqual(functions64.log64(y), math.log(y), delta=1e-14)
            angle = source.uniform(0, 1e5)
            s, c = functions64.sin_cos64(angle)
            self.assertAlmostEqual(s, math.sin(angle), delta=1e-15)
            self.assertAlmostEqual(c, math.cos(angle), delta=1e-15)
        self.assertEqual(functions64.log64(1.0), 0.0)
        self.assertEqual(functions64.exp64(-0.0), 1.0)
        self.assertEqual(functions64.sin_cos64(0.0), (0.0, 1.0))


class LayersTest(ContractCase):
    """Clauses 5 to 8 and 10."""

    def test_rms_norm(self):
        self.same_rows(contract.rms_norm([1.0, -1.0, 1.0, 1.0, -0.0, 0.0, 2.0, 0.0],
                                         [2.0, 3.0, -4.0, 0.0, 1.0, 1.0, 1.0, 1.0], 3.0),
                       [1.0, -1.5, -2.0, 0.0, -0.0, 0.0, 1.0, 0.0])
        self.same_rows(contract.rms_norm([0.0] * 33, [1.0] * 33, 2.0 ** -20), [0.0] * 33)
        # (x * r) * w, not x * (r * w): 2^-149 * 0.5 is a tie and becomes 0
        self.same_rows(contract.rms_norm([2.0 ** -149], [2.0], 4.0), [0.0])
        with self.assertRaises(contract.ContractError):
            contract.rms_norm([2.0 ** 64], [1.0], 1e-5)

    def test_attention_scale(self):
        self.same(contract.attention_scale(64), 0.125)
        self.assertEqual(bits(contract.attention_scale(8)), nearest(Fraction(1 / math.sqrt(8))))

    def test_attention_of_one_position(self):
        values = [1.5, -0.0, 0.0, -3.0, 2.0 ** -149, 1.0, 1.0, 1.0]
        result = contract.attention([5.0] * 8, [[7.0] * 8], [values], 0.5)
        self.same_rows(result, [value + 0.0 for value in values])

    def even_attention(self, spots, positions=66):
        """Attention with equal scores over values of 0 but for the spots."""
        values = [[spots.get(j, 0.0)] * 8 for j in range(positions)]
        return contract.attention([0.0] * 8, [[1.0] * 8] * positions, values, 1.0)[0]

    def test_attention_blocks_of_64(self):
        inside = self.even_attention({0: TWO24, 62: 1.0, 63: 1.0})
        self.assertEqual(bits(inside), nearest(Fraction(2 ** 24, 66)))
        across = self.even_attention({0: TWO24, 64: 1.0, 65: 1.0})
        self.assertEqual(bits(across), nearest(Fraction(2 ** 24 + 2, 66)))
        edge = self.even_attention({0: TWO24, 63: 1.0, 64: 1.0})
        self.assertEqual(bits(edge), nearest(Fraction(2 ** 24, 66)))
        last = self.even_attention({0: TWO24, 63: 3.0}, 64)
        self.assertEqual(bits(last), nearest(Fraction(2 ** 24 + 4, 64)))

    def test_attention_with_a_larger_score_later_or_earlier(self):
        low, high = [0.0] * 8, [200.0] + [0.0] * 7
        values = [[3.0] * 8] * 64 + [[5.0] * 8]
        q = [1.0] + [0.0] * 7
        later = contract.attention(q, [low] * 64 + [high], values, 1.0)
        self.same_rows(later, [5.0] * 8)
        earlier = contract.attention(q, [high] * 64 + [low], values, 1.0)
        self.same_rows(earlier, [3.0] * 8)

    def test_attention_against_rationals(self):
        source = random.Random(15)
        q, *rows = [[bf.to_f32(source.gauss(0, 1.5)) for _ in range(8)] for _ in range(261)]
        keys, values, scale = rows[:130], rows[130:], 0.5

        def fused(a, b, c):
            return from_bits(nearest(Fraction(a) * Fraction(b) + Fraction(c)))
        state = None
        for start in (0, 64, 128):
            block = range(start, min(start + 64, 130))
            scores = []
            for j in block:
                lanes = [fused(a, b, 0) for a, b in zip(q, keys[j])]
                scores.append(fused(contract.tree_sum(lanes), scale, 0))
            m = max(scores)
            p = [contract.exp(fused(score, 1, -m)) if score != m else 1.0 for score in scores]
            o = [0] * 8
            for weight, j in zip(p, block):
                o = [fused(weight, v, before) for v, before in zip(values[j], o)]
            length = contract.sum32(p)
            if state:
                top = max(state[0], m)
                a, b = (contract.exp(bf.sub(old, top)) for old in (state[0], m))
                length = fused(state[1], a, fused(length, b, 0))
                o = [fused(old, a, fused(new, b, 0)) for old, new in zip(state[2], o)]
                m = top
            state = (m, length, o)
        expected = [from_bits(nearest(Fraction(v) / Fraction(state[1]))) for v in state[2]]
        self.same_rows(contract.attention(q, keys, values, scale), expected)

    def test_cache(self):
        self.same_rows(contract.kv_round([65519.99609375, -2.0 ** -24, 2.0 ** -25, -2.0 ** -26,
                                          3 * 2.0 ** -25, 1 + 3 * 2.0 ** -11], "f16"),
                       [65504.0, -2.0 ** -24, 0.0, -0.0, 2.0 ** -23, 1 + 2.0 ** -9])
        self.same_rows(contract.kv_round([65520.0, 2.0 ** -149], "f32"),
                       [65520.0, 2.0 ** -149])
        for value, kind in ((65520.0, "f16"), (-65520.0, "f16"), (INF, "f32"), (NAN, "f32"),
                            (NAN, "f16")):
            with self.assertRaises(ContractError):
                contract.kv_round([value], kind)

    def test_rotation(self):
        self.same_rows(contract.rotate([3.0, 5.0, 7.0], [0.0], [1.0]), [-5.0, 3.0, 7.0])
        self.same_rows(contract.rotate([1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0], [1.0, 0.0], True),
                       [-3.0, 2.0, 1.0, 4.0, 5.0])
        # x0 * c is rounded, -x1 * s is not: (1 + 2^-12)^2 less its rounding
        a = 1 + 2.0 ** -12
        self.same_rows(contract.rotate([a, a], [a], [a]), [-2.0 ** -24, 2 + 2.0 ** -10])

    def test_rotary_tables(self):
        inverse = functions64.inverse_frequencies(8, 10000.0)
        self.assertEqual(inverse[0], 1.0)
        for i, value in enumerate(inverse):
            self.assertAlmostEqual(value * 10000.0 ** (i / 4), 1, delta=1e-15)
        halved = functions64.inverse_frequencies(8, 10000.0, [2.0] * 4)
        self.assertEqual(halved, [value / 2 for value in inverse])
        self.assertEqual(functions64.rope_row(0, inverse), ([1.0] * 4, [0.0] * 4))
        cos, sin = functions64.rope_row(511, inverse)
        for i, value in enumerate(inverse):
            self.close(cos[i], math.cos(511 * value), 0)
            self.close(sin[i], math.sin(511 * value), 0)

    def test_rows(self):
        self.same_rows(contract.add_rows([TWO24, -0.0], [1.0, -0.0]), [TWO24, -0.0])
        self.same_rows(contract.gate_rows([100.0, -0.0], [0.25, 3.0]), [25.0, -0.0])


class ChoiceTest(ContractCase):
    """Clauses 11 to 13."""

    def test_margin(self):
        self.same(contract.margin([5.0]), INF)
        self.same(contract.margin([1.0, 5.0, 5.0]), 0.0)
        self.same(contract.margin([-1.0, -4.0, -2.5]), 1.5)
        self.same(contract.margin([-TWO24, 1.0]), TWO24)

    def test_log_probability(self):
        self.same(contract.log_probability([5.0], 0), 0.0)
        self.assertEqual(bits(contract.log_probability([7.0, 7.0], 1)), 0xBF317218)
        self.same(contract.log_probability([0.0, -200.0], 1), -200.0)

    def test_choice(self):
        self.assertEqual(contract.choose([-1.0, -0.0, 0.0]), 1)
        self.assertEqual(contract.choose([2.0, 3.0, 3.0]), 1)

    def test_hash_against_vectors_of_the_xxhash_library(self):
        vectors = {
            0: "99aa06d3014798d86001c324468d497f", 1: "22bbb76b211a39ba13e608bc156defed",
            3: "177c74b530cb001328a0ae50c894ce7d", 4: "09892d75f136d11a31d7a7adc5c5f14f",
            8: "750f0c2b349bcdfd565ebd9f20b1dfaf", 9: "9a0296c52529a89398b723824f56fee8",
            16: "e2d3b6c0b67a832a21e19851b7572e1d", 17: "a52601937efc47623d23f34c395c2740",
            128: "b94c150dd2816a5a003d6063e7c2cd05", 129: "283feae52a24740a9f10f40b7ce3c4bd",
            240: "c5e661dc9607d88d4a773d5a538e86e1", 241: "53d808fe1a24a81b91fe0cd804a16881",
            1024: "cff70d6ee98af9a509e8d9f8047d2433", 1025: "98ff86cf4f6cb64b7653598446a5ecde",
            2048: "9fdf8b9eb5dca7162991587dda02f1dc"}
        for size, expected in vectors.items():
            self.assertEqual(xxh3_128(bytes(i * i * 7 + 3 & 255 for i in range(size))), expected)

    def test_hash_of_a_row(self):
        row = struct.pack("<2f", 1.0, -2.5)
        self.assertEqual(contract.logits_hash([1.0, -2.5]), xxh3_128(row))


if __name__ == "__main__":
    unittest.main()
