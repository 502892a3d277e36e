"""Edge cases of the rounding, with values derived by hand or from exact rationals.

Shares no code with the program.
"""

import math
import random
import struct
import unittest
from fractions import Fraction

import binary_float as bf
import contract
from binary_float import INF, NAN, bits, from_bits
from cases import TWO24, ContractCase, nearest, random_f32
from contract import ContractError


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
        self.assertEqual(math.copysign(1, bf.fma64(-0.0, 1.0, -0.0)), -1.0)
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


if __name__ == "__main__":
    unittest.main()
