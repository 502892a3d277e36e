"""Edge cases of the mixture of experts (clause 9).

Shares no code with the program.
"""

import math
import random
import unittest
from fractions import Fraction

import moe
from binary_float import INF, bits, from_bits, to_f32
from cases import TWO24, ContractCase, fused, nearest, ratio
from contract import ContractError, tree_sum
from functions32 import exp, sigmoid


class RouteTest(ContractCase):
    """The choice of experts and their weights."""

    def test_softmax(self):
        self.same_rows(moe.softmax([7.0]), [1.0])
        self.same_rows(moe.softmax([7.0] * 8), [0.125] * 8)
        self.same_rows(moe.softmax([0.0, -200.0, -INF]), [1.0, 0.0, 0.0])
        source = random.Random(31)
        values = [to_f32(source.gauss(0, 2)) for _ in range(40)]
        m = max(values)
        e = [1.0 if value == m else exp(fused(value, 1, -m)) for value in values]
        # lanes 0 .. 7 hold two values
        z = tree_sum([fused(e[i], 1, e[i + 32]) if i < 8 else e[i] for i in range(32)])
        self.same_rows(moe.softmax(values), [ratio(value, z) for value in e])

    def test_logits_that_are_not_finite_are_refused(self):
        for bad in (INF, -INF, math.nan):
            for gating in moe.GATINGS:
                with self.assertRaises(ContractError):
                    moe.route([5.0, bad, 1.0], 1, gating)

    def test_equal_keys_go_to_the_lower_number(self):
        self.assertEqual(moe.largest([1.0, 3.0, 3.0, 2.0, 3.0], 2), [1, 2])
        self.assertEqual(moe.largest([-0.0, 0.0, -0.0, 1.0], 3), [3, 0, 1])
        self.assertEqual(moe.largest([-INF, -INF, 0.0], 2), [2, 0])

    def test_ranks_are_in_the_order_of_the_keys(self):
        x = [1.0, 3.0, -2.0, 2.0]
        p = moe.softmax(x)
        self.assertEqual(moe.route(x, 3, moe.SOFTMAX), ([1, 3, 0], [p[1], p[3], p[0]]))
        experts, w = moe.route(x, 3, moe.SIGMOID)
        self.assertEqual(experts, [1, 3, 0])
        self.same_rows(w, [sigmoid(3.0), sigmoid(2.0), sigmoid(1.0)])
        experts, w = moe.route(x, 2, moe.SOFTMAX_OF_CHOSEN)
        self.assertEqual(experts, [1, 3])
        self.same_rows(w, moe.softmax([3.0, 2.0]))
        with self.assertRaises(ValueError):
            moe.route(x, 2, "linear")

    def test_keys_that_round_to_the_same(self):
        # the sigmoid of both is 1, so that the lower number wins although its logit is smaller
        x = [30.0, 40.0, 20.0]
        self.assertEqual(moe.route(x, 2, moe.SIGMOID), ([0, 1], [1.0, 1.0]))
        self.assertEqual(moe.route(x, 2, moe.SOFTMAX_OF_CHOSEN)[0], [1, 0])

    def test_selection_bias_is_not_in_the_weights(self):
        x, bias = [0.0, -1.0, 1.0], [0.0, 10.0, 0.0]
        experts, w = moe.route(x, 2, moe.SIGMOID, bias=bias)
        self.assertEqual(experts, [1, 2])
        self.same_rows(w, [sigmoid(-1.0), sigmoid(1.0)])
        experts, w = moe.route(x, 2, moe.SOFTMAX, bias=bias)
        p = moe.softmax(x)
        self.assertEqual(experts, [1, 2])
        self.same_rows(w, [p[1], p[2]])
        experts, w = moe.route(x, 2, moe.SOFTMAX_OF_CHOSEN, bias=bias)
        self.assertEqual(experts, [1, 2])
        self.same_rows(w, moe.softmax([-1.0, 1.0]))

    def test_selection_bias_is_added_in_binary32(self):
        # 2^24 + 0.5 and 2^24 + 0.25 round to the same key
        bias = [TWO24, TWO24]
        self.assertEqual(moe.route([-1.0, 0.0], 1, moe.SIGMOID, bias=bias)[0], [0])

    def test_renormalization(self):
        x = [0.0, 0.0, -200.0, -200.0]
        self.same_rows(moe.route(x, 2, moe.SIGMOID, renormalize=True)[1], [0.5, 0.5])
        x = [1.0, 0.25, -0.5, 2.0, 0.75]
        w = [sigmoid(x[i]) for i in (3, 0, 4)]
        # lane 0 takes lane 2 before lane 1
        total = fused(fused(w[0], 1, w[2]), 1, w[1])
        self.same_rows(moe.route(x, 3, moe.SIGMOID, renormalize=True)[1],
                       [ratio(value, total) for value in w])

    def test_scale_comes_last(self):
        third = from_bits(nearest(Fraction(1, 3)))
        self.same_rows(moe.route([0.0, 0.0], 2, moe.SIGMOID, renormalize=True, scale=third)[1],
                       [third / 2] * 2)
        self.same_rows(moe.route([0.0, -200.0], 1, moe.SIGMOID, scale=2.5)[1], [1.25])

    def test_sums_of_many_chosen_use_32_lanes(self):
        source = random.Random(32)
        x = sorted((to_f32(source.gauss(0, 1)) for _ in range(40)), reverse=True)
        w = [sigmoid(value) for value in x]
        total = tree_sum([fused(w[i], 1, w[i + 32]) if i < 8 else w[i] for i in range(32)])
        self.same_rows(moe.route(x, 40, moe.SIGMOID, renormalize=True)[1],
                       [ratio(value, total) for value in w])


class CombineTest(ContractCase):
    """The sum of the outputs."""

    def test_ranks_ascend(self):
        self.same_rows(moe.combine([1.0] * 3, [[TWO24], [1.0], [1.0]]), [TWO24])
        self.same_rows(moe.combine([1.0] * 3, [[1.0], [1.0], [TWO24]]), [TWO24 + 2])

    def test_one_rounding_a_rank(self):
        a = 1 + 2.0 ** -12
        self.same_rows(moe.combine([1.0, a], [[-(1 + 2.0 ** -11)], [a]]), [2.0 ** -24])

    def test_zeros(self):
        self.same_rows(moe.combine([1.0], [[-0.0, 2.0]]), [0.0, 2.0])
        self.same_rows(moe.combine([1.0, 0.0], [[-0.0, 2.0], [5.0, 5.0]]), [0.0, 2.0])

    def test_shared_experts_come_last(self):
        self.same_rows(moe.combine([1.0, 1.0], [[1.0], [1.0]], [TWO24]), [TWO24 + 2])
        self.same_rows(moe.combine([1.0, 1.0], [[TWO24], [1.0]], [1.0]), [TWO24])
        self.same_rows(moe.combine([0.5], [[-0.0]], [-0.0]), [0.0])

    def test_gate_of_shared_experts(self):
        self.same_rows(moe.combine([1.0], [[3.0]], [4.0], 0.0), [5.0])
        s = sigmoid(1.5)
        third = from_bits(nearest(Fraction(1, 3)))
        self.same_rows(moe.combine([1.0], [[-0.25]], [third], 1.5), [fused(s, third, -0.25)])
        self.assertNotEqual(bits(fused(s, third, -0.25)),
                            bits(fused(fused(s, third, 0), 1, -0.25)))
        self.assertTrue(math.isclose(s, 1 / (1 + math.exp(-1.5)), rel_tol=1e-6))


if __name__ == "__main__":
    unittest.main()
