"""Edge cases of the functions of clause 4, and of those in binary64 with their tables.

Shares no code with the program.
"""

import math
import random
import unittest
from fractions import Fraction

import binary_float as bf
import functions32 as f32
import functions64
from binary_float import INF, NAN, bits, from_bits
from cases import ContractCase, fused, nearest, random_f32, ratio


class FunctionsTest(ContractCase):
    """Clause 4 and the functions in binary64."""

    def test_exp_edges(self):
        for x, expected in ((0.0, 1.0), (-0.0, 1.0), (INF, INF), (89.0, INF), (3e38, INF),
                            (-INF, 0.0), (-104.0, 0.0), (-3e38, 0.0), (-103.0, 2.0 ** -149)):
            self.same(f32.exp(x), expected)
        for pattern in (0x7FC00000, 0xFFC12345, 0x7F800001):
            self.assertEqual(bits(f32.exp(from_bits(pattern))), 0x7FC00000)

    def test_exp_and_log_are_close(self):
        source = random.Random(6)
        for _ in range(300):
            x = bf.to_f32(source.uniform(-103, 88.7))
            self.close(f32.exp(x), math.exp(x))
            y = abs(random_f32(source))
            self.close(f32.log(y), math.log(y))
        self.assertLess(f32.exp(from_bits(0x42B17217)), INF)
        self.same(f32.exp(from_bits(0x42B17219)), INF)

    def test_log_edges(self):
        for x, expected in ((0.0, -INF), (-0.0, -INF), (INF, INF), (1.0, 0.0)):
            self.same(f32.log(x), expected)
        for pattern in (0xBF800000, 0xFF800000, 0x7FC00001, 0xFFC00000, 0x80000001):
            self.assertEqual(bits(f32.log(from_bits(pattern))), 0x7FC00000)
        self.assertEqual(bits(f32.log(2.0)), 0x3F317218)
        for pattern in (1, 0x007FFFFF, 0x00800000, 0x3F2AAAAA, 0x3F2AAAAB, 0x3F7FFFFF, 0x3F800001):
            self.close(f32.log(from_bits(pattern)), math.log(from_bits(pattern)))

    def test_silu(self):
        for x, expected in ((0.0, 0.0), (-0.0, -0.0), (100.0, 100.0), (-200.0, -0.0)):
            self.same(f32.silu(x), expected)
        source = random.Random(12)
        for _ in range(100):
            x = bf.to_f32(source.uniform(-20, 20))
            self.same(f32.silu(x), ratio(x, fused(1, 1, f32.exp(-x))))

    def test_tanh_edges(self):
        for x, expected in ((0.0, 0.0), (INF, 1.0), (-INF, -1.0), (20.0, 1.0), (-3e38, -1.0),
                            (2.0 ** -149, 2.0 ** -149), (-2.0 ** -70, -2.0 ** -70)):
            self.same(f32.tanh(x), expected)
        # of -0 the product x * z * p is +0, and so is the sum
        self.same(f32.tanh(-0.0), 0.0)
        for pattern in (0x3F200000, 0x3F1FFFFF, 0x3F200001):
            for x in (from_bits(pattern), -from_bits(pattern)):
                self.close(f32.tanh(x), math.tanh(x))
        for pattern in (0x7FC00000, 0xFFC12345, 0x7F800001):
            self.assertEqual(bits(f32.tanh(from_bits(pattern))), 0x7FC00000)
            self.assertEqual(bits(f32.erf(from_bits(pattern))), 0x7FC00000)

    def test_erf_edges(self):
        for x, expected in ((0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (4.0, 1.0),
                            (-3e38, -1.0), (5.0, 1.0)):
            self.same(f32.erf(x), expected)
        for pattern in (0x3F800000, 0x3F7FFFFF, 0x3F800001, 0x407FFFFF, 0x00800000):
            for x in (from_bits(pattern), -from_bits(pattern)):
                self.close(f32.erf(x), math.erf(x))

    def test_tanh_and_erf_are_close_and_odd(self):
        source = random.Random(8)
        for _ in range(500):
            x = bf.to_f32(source.uniform(0, 1) * source.choice((1e-3, 1, 5, 10)))
            self.close(f32.tanh(x), math.tanh(x))
            self.close(f32.erf(x), math.erf(x))
            self.same(f32.tanh(-x), -f32.tanh(x))
            self.same(f32.erf(-x), -f32.erf(x))

    def test_sigmoid(self):
        for x, expected in ((0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (20.0, 1.0),
                            (-89.0, 0.0)):
            self.same(f32.sigmoid(x), expected)
        # the largest argument below which exp(-x) is finite gives a subnormal
        self.assertLess(0, f32.sigmoid(-88.5))
        source = random.Random(9)
        for _ in range(200):
            x = bf.to_f32(source.uniform(-80, 80))
            self.close(f32.sigmoid(x), 1 / (1 + math.exp(-x)), 3)

    def test_gelu(self):
        for gelu in (f32.gelu_tanh, f32.gelu_erf):
            for x, expected in ((0.0, 0.0), (-0.0, -0.0), (INF, INF), (100.0, 100.0),
                                (-100.0, -0.0), (-3e38, -0.0), (3e38, bf.to_f32(3e38)),
                                (2.0 ** -148, 2.0 ** -149), (2.0 ** -149, 0.0)):
                self.same(gelu(bf.to_f32(x)), expected)
        source = random.Random(10)
        for _ in range(200):
            x = bf.to_f32(source.uniform(-4, 6))
            u = math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)
            self.assertAlmostEqual(f32.gelu_tanh(x), 0.5 * x * (1 + math.tanh(u)), delta=1e-6)
            exact = 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
            self.assertAlmostEqual(f32.gelu_erf(x), exact, delta=1e-6)

    def test_gelu_rounds_as_written(self):
        source = random.Random(11)
        for _ in range(100):
            x = bf.to_f32(source.uniform(-4, 4))
            v = fused(from_bits(nearest(Fraction("0.044715"))), fused(x, x, 0), 1)
            u = fused(fused(from_bits(nearest(Fraction("0.7978845608"))), x, 0), v, 0)
            expected = fused(fused(x, Fraction(1, 2), 0), fused(1, 1, f32.tanh(u)), 0)
            self.same(f32.gelu_tanh(x), expected)
            u = fused(x, from_bits(nearest(Fraction("0.7071067812"))), 0)
            expected = fused(fused(x, Fraction(1, 2), 0), fused(1, 1, f32.erf(u)), 0)
            self.same(f32.gelu_erf(x), expected)

    def test_softcap(self):
        self.same(f32.softcap(200.0, 2.0), 2.0)
        self.same(f32.softcap(-INF, 30.0), -30.0)
        self.same(f32.softcap(1.0, 2.0), 2 * f32.tanh(0.5))
        third = from_bits(nearest(Fraction(1, 3)))
        self.same(f32.softcap(1.0, 3.0), fused(3, f32.tanh(third), 0))
        source = random.Random(13)
        for _ in range(200):
            x = bf.to_f32(source.uniform(-40, 40))
            self.same(f32.softcap(x, 11.0), fused(11, f32.tanh(ratio(x, 11)), 0))


class Functions64Test(ContractCase):
    """The functions in binary64 and the tables of clause 8."""

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

    def test_linear_scaling(self):
        plain = functions64.inverse_frequencies(16, 10000.0)
        scaled = functions64.inverse_frequencies(16, 10000.0, linear=4.0)
        self.assertEqual(scaled, [value / 4 for value in plain])
        both = functions64.inverse_frequencies(16, 10000.0, [3.0] * 8, linear=10.0)
        self.assertEqual(both, [value / 3 / 10 for value in plain])

    def test_yarn(self):
        # corr(32) = 64 ln(128 / (64 pi)) / (2 ln 10000) < 0 and corr(1) = 10.47: low 0, high 11
        yarn = functions64.Yarn(4.0, 128)
        plain = functions64.inverse_frequencies(64, 10000.0)
        scaled = functions64.inverse_frequencies(64, 10000.0, yarn=yarn)
        for i, (value, other) in enumerate(zip(plain, scaled)):
            share = 1 - min(1, i / 11)
            self.assertAlmostEqual(other / value, share + (1 - share) / 4, delta=1e-15)
        self.assertEqual(scaled[0], plain[0])
        self.assertEqual(scaled[11:], [value / 4 for value in plain[11:]])
        self.assertNotEqual(scaled[10], plain[10] / 4)

    def test_yarn_bounds(self):
        # corr(2) = 20.3, corr(1 / 64) = 44.4, and at most n - 1
        yarn = functions64.Yarn(8.0, 4096, 2.0, 1 / 64)
        ratios = [other / value for value, other in zip(
            functions64.inverse_frequencies(64, 10000.0),
            functions64.inverse_frequencies(64, 10000.0, yarn=yarn))]
        self.assertEqual(ratios[:21], [1.0] * 21)
        self.assertLess(ratios[21], 1)
        share = 1 - (31 - 20) / (math.ceil(64 * math.log(4096 * 64 / (2 * math.pi))
                                           / (2 * math.log(1e4))) - 20)
        self.assertAlmostEqual(ratios[31], share + (1 - share) / 8, delta=1e-15)
        # corr(1e-6) = 77.6 is more than n - 1
        yarn = functions64.Yarn(8.0, 4096, 2.0, 1e-6)
        self.assertAlmostEqual(yarn.ramp(31, 64, 10000.0), 1 - 11 / (63 - 20), delta=1e-15)
        # both bounds are 63 or more: low beyond high, a width of 0.001
        yarn = functions64.Yarn(2.0, 1 << 40, 1e-9, 1e-10)
        self.assertEqual(yarn.ramp(31, 64, 10000.0), 1.0)
        yarn = functions64.Yarn(2.0, 1, 1000.0, 900.0)
        self.assertEqual([yarn.ramp(i, 8, 10000.0) for i in range(2)], [1.0, 0.0])

    def test_mscale(self):
        self.assertEqual(functions64.Yarn(1.0, 128).mscale(), 1.0)
        self.assertAlmostEqual(functions64.Yarn(4.0, 128).mscale(2.0),
                               2 + 0.2 * math.log(4), delta=1e-15)
        cos, sin = functions64.rope_row(3, [0.5, 0.25], 1.5)
        for i, angle in enumerate((1.5, 0.75)):
            self.close(cos[i], 1.5 * math.cos(angle), 0)
            self.close(sin[i], 1.5 * math.sin(angle), 0)


if __name__ == "__main__":
    unittest.main()
