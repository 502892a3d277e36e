"""Edge cases of clauses 1, 2, 5, 7, 8, 10 and 13, derived by hand or from exact rationals.

Shares no code with the program.
"""

import random
import struct
import unittest
from fractions import Fraction

import binary_float as bf
import contract
from binary_float import INF, NAN, bits, from_bits
from cases import TWO24, ContractCase, fused, nearest
from contract import ContractError
from functions32 import gelu_erf, sigmoid, tanh
from xxh3 import xxh3_128


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
        # lane 0 has 1 + 1 before lane 16 comes
        values = [0.0] * 33
        values[0], values[16], values[32] = 1.0, TWO24, 1.0
        self.same(contract.sum32(values), TWO24 + 2)

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

    def test_layer_norm(self):
        # mean 1, c = (1, -1, 1, 1, -1, -1, 1, -1), mean square 1, r = 1 / sqrt(1 + 3)
        x = [2.0, 0.0, 2.0, 2.0, 0.0, -0.0, 2.0, 0.0]
        weight = [2.0, 3.0, -4.0, 0.0, 1.0, -1.0, 8.0, -0.0]
        expected = [1.0, -1.5, -2.0, 0.0, -0.5, 0.5, 4.0, 0.0]
        self.same_rows(contract.layer_norm(x, weight, 3.0), expected)
        bias = [TWO24, 1.5, 0.0, -0.0, 0.5, 0.0, 1.0, -0.0]
        self.same_rows(contract.layer_norm(x, weight, 3.0, bias),
                       [TWO24, 0.0, -2.0, 0.0, 0.0, 0.5, 5.0, 0.0])
        self.same_rows(contract.layer_norm([5.0] * 33, [1.0] * 33, 2.0 ** -20), [0.0] * 33)
        for row in ([2.0 ** 65, 0.0], [from_bits(0x7F7FFFFF)] * 2):
            with self.assertRaises(ContractError):
                contract.layer_norm(row, [1.0, 1.0], 1e-5)

    def test_layer_norm_against_rationals(self):
        source = random.Random(16)
        for n in (7, 33, 100):
            x, weight, bias = ([bf.to_f32(source.gauss(1, 2)) for _ in range(n)] for _ in "xwb")
            mean = from_bits(nearest(Fraction(contract.sum32(x)) / n))
            c = [fused(value, 1, -mean) for value in x]
            lanes = [0.0] * 32
            for i, value in enumerate(c):
                lanes[i % 32] = fused(value, value, lanes[i % 32])
            variance = from_bits(nearest(Fraction(contract.tree_sum(lanes)) / n))
            root = bf.sqrt(fused(variance, 1, 0.5))
            r = from_bits(nearest(1 / Fraction(root)))
            expected = [fused(fused(fused(a, r, 0), w, 0), 1, b)
                        for a, w, b in zip(c, weight, bias)]
            self.same_rows(contract.layer_norm(x, weight, 0.5, bias), expected)

    def test_bias_comes_after_the_tree(self):
        # 2^24 + 1 of lanes 0 and 16 is a tie that goes down; the bias of 1 is lost as well
        y = contract.product_float([TWO24] + [0.0] * 15 + [1.0], [[1.0] * 17])
        self.same_rows(contract.add_bias(y, [1.0]), [TWO24])
        self.same_rows(contract.add_bias([1.0, 0.0], [2.0, -0.0]), [3.0, 0.0])

    def test_multipliers(self):
        third = from_bits(nearest(Fraction(1, 3)))
        # y * c is rounded before it is added
        expected = fused(fused(3.5, third, 0), 1, -1.0)
        self.same_rows(contract.add_rows([-1.0, 1.0], [3.5, -0.0], third), [expected, 1.0])
        self.assertNotEqual(bits(expected), bits(fused(3.5, third, -1.0)))
        self.same_rows(contract.scale_row([3.0, -0.0], third), [1.0, -0.0])
        self.same(contract.embedding_scale(2304), 48.0)
        self.assertEqual(bits(contract.embedding_scale(2048)), 0x423504F3)

    def test_finish_of_logits(self):
        row = [4.0, -200.0, 0.0]
        self.same_rows(contract.finish_logits(row), row)
        self.same_rows(contract.finish_logits(row, 0.5), [2.0, -100.0, 0.0])
        self.same_rows(contract.finish_logits(row, 0.5, 2.0), [2 * tanh(1.0), -2.0, 0.0])
        self.same_rows(contract.finish_logits(row, None, 4.0), [4 * tanh(1.0), -4.0, 0.0])

    def test_rows(self):
        self.same_rows(contract.add_rows([TWO24, -0.0], [1.0, -0.0]), [TWO24, -0.0])
        self.same_rows(contract.gate_rows([100.0, -0.0], [0.25, 3.0]), [25.0, -0.0])
        self.same_rows(contract.gate_rows([100.0, -200.0], [0.25, 3.0], gelu_erf), [25.0, -0.0])
        self.same_rows(contract.gate_rows([0.0], [3.0], sigmoid), [1.5])


class HashTest(ContractCase):
    """Clause 13."""

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
