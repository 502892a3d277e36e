"""Edge cases of attention (clause 6): blocks, windows, soft cap, sinks.

Shares no code with the program.
"""

import math
import random
import unittest
from fractions import Fraction

import binary_float as bf
import attention
from binary_float import NAN, bits
from cases import TWO24, ContractCase, fused, nearest, ratio
from contract import sum32, tree_sum
from functions32 import exp, softcap


class AttentionTest(ContractCase):
    """One query head."""

    def test_attention_scale(self):
        self.same(attention.attention_scale(64), 0.125)
        for d in (8, 80, 96):
            scale = attention.attention_scale(d)
            self.assertEqual(bits(scale), nearest(Fraction(1 / math.sqrt(d))))
            self.assertEqual(scale, bf.to_f32(scale))

    def test_attention_of_one_position(self):
        values = [1.5, -0.0, 0.0, -3.0, 2.0 ** -149, 1.0, 1.0, 1.0]
        result = attention.attention([5.0] * 8, [[7.0] * 8], [values], 0.5)
        self.same_rows(result, [value + 0.0 for value in values])

    def test_a_quotient_of_minus_zero_becomes_zero(self):
        # -2^-149 / 2 is a tie and becomes -0
        values = [[-2.0 ** -149] * 8, [0.0] * 8]
        result = attention.attention([0.0] * 8, [[1.0] * 8] * 2, values, 1.0)
        self.same_rows(result, [0.0] * 8)

    def even_attention(self, spots, positions=66):
        """Attention with equal scores over values of 0 but for the spots."""
        values = [[spots.get(j, 0.0)] * 8 for j in range(positions)]
        return attention.attention([0.0] * 8, [[1.0] * 8] * positions, values, 1.0)[0]

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
        later = attention.attention(q, [low] * 64 + [high], values, 1.0)
        self.same_rows(later, [5.0] * 8)
        earlier = attention.attention(q, [high] * 64 + [low], values, 1.0)
        self.same_rows(earlier, [3.0] * 8)

    def test_window(self):
        self.assertEqual([attention.first_visible(p, 3) for p in range(5)], [0, 0, 0, 1, 2])
        self.assertEqual(attention.first_visible(99), 0)
        rows = [[NAN] * 8] * 7 + [[3.0] * 8] * 2 + [[NAN] * 8]
        result = attention.attention([1.0] * 8, rows, rows, 1.0, position=8, window=2)
        self.same_rows(result, [3.0] * 8)
        # the window is as long as what there is, or longer
        rows = [[3.0] * 8] * 9
        for window in (9, 10, None):
            result = attention.attention([1.0] * 8, rows, rows, 1.0, window=window)
            self.same_rows(result, [3.0] * 8)

    def test_blocks_of_a_window_are_of_absolute_positions(self):
        def windowed(spots):
            values = [[NAN] * 8] * 10 + [[spots.get(j, 0.0)] * 8 for j in range(10, 70)]
            keys = [[NAN] * 8] * 10 + [[1.0] * 8] * 60
            return attention.attention([0.0] * 8, keys, values, 1.0, window=60)[0]
        inside = windowed({10: TWO24, 62: 1.0, 63: 1.0})
        self.assertEqual(bits(inside), nearest(Fraction(2 ** 24, 60)))
        across = windowed({10: TWO24, 64: 1.0, 65: 1.0})
        self.assertEqual(bits(across), nearest(Fraction(2 ** 24 + 2, 60)))

    def test_blocks_without_a_visible_position_are_left_out(self):
        rows = [[NAN] * 8] * 128 + [[3.0] * 8] * 4
        result = attention.attention([1.0] * 8, rows, rows, 1.0, window=4)
        self.same_rows(result, [3.0] * 8)

    def test_sink(self):
        keys, values = [[0.0] * 8] * 3, [[12.0] * 8] * 3
        q = [1.0] * 8
        # weights 1, 1, 1 and 1 of the sink
        self.same_rows(attention.attention(q, keys, values, 1.0, sink=0.0), [9.0] * 8)
        self.same_rows(attention.attention(q, keys, values, 1.0, sink=-200.0), [12.0] * 8)
        self.same_rows(attention.attention(q, keys, values, 1.0, sink=200.0), [0.0] * 8)
        third = bits(attention.attention(q, keys, [[1.0] * 8] * 3, 1.0, sink=1.0)[0])
        exact = 3 / (3 + math.e)
        self.assertLessEqual(abs(third - nearest(Fraction(exact))), 2)

    def test_sink_comes_before_the_blocks(self):
        # the sink's 1 and the first block meet before the second block, which has the largest
        # score
        keys = [[0.0] * 8] * 64 + [[1.0] * 8]
        values = [[1.0] * 8] * 65
        q, t = [1.0] + [0.0] * 7, 0.5
        a, b = exp(-0.5), exp(0.5 - 1.0)
        length = fused(1, 1, fused(64, a, 0))
        o = fused(0, 1, fused(64, a, 0))
        length, o = (fused(value, b, 1) for value in (length, o))
        self.same(attention.attention(q, keys, values, 1.0, sink=t)[0], ratio(o, length))

    def test_soft_cap(self):
        keys = [[0.0] * 8, [200.0] + [0.0] * 7]
        values = [[0.0] * 8, [1.0] * 8]
        result = attention.attention([1.0] * 8, keys, values, 1.0, cap=1.0)[0]
        e = exp(-1.0)
        self.same(result, ratio(1.0, fused(1, 1, e)))
        # the scale comes before the cap
        result = attention.attention([1.0] * 8, keys, values, 2.0 ** -8, cap=1.0)[0]
        e = exp(-softcap(200.0 / 256, 1.0))
        self.same(result, ratio(1.0, fused(1, 1, e)))

    def test_a_score_of_minus_infinity_has_no_weight(self):
        keys = [[-3e38] * 8, [0.0] * 8]
        values = [[5.0] * 8, [7.0] * 8]
        result = attention.attention([3e38] * 8, keys, values, 1.0)
        self.same_rows(result, [7.0] * 8)
        keys = [[0.0] * 8] * 64 + [[-3e38] * 8, [0.0] * 8]
        result = attention.attention([3e38] * 8, keys, [[7.0] * 8] * 66, 1.0)
        self.same_rows(result, [7.0] * 8)

    def test_heads(self):
        self.assertEqual([attention.kv_head(h, 6, 2) for h in range(6)], [0, 0, 0, 1, 1, 1])

    def expected(self, q, keys, values, scale, visible, cap=None, sink=None):
        """Clause 6 with every rounding done by bisection."""
        state = None if sink is None else (sink, 1.0, [0.0] * 8)
        for number in range(len(keys) // 64 + 1):
            block = [j for j in visible if j // 64 == number]
            if not block:
                continue
            scores = []
            for j in block:
                lanes = [0] * 8
                for d, (a, b) in enumerate(zip(q, keys[j])):
                    lanes[d % 8] = fused(a, b, lanes[d % 8])
                score = fused(tree_sum(lanes), scale, 0)
                scores.append(score if cap is None else softcap(score, cap))
            m = max(scores)
            p = [exp(fused(score, 1, -m)) if score != m else 1.0 for score in scores]
            o = [0] * len(values[0])
            for weight, j in zip(p, block):
                o = [fused(weight, v, before) for v, before in zip(values[j], o)]
            # padded with +0 to the absolute positions
            length = sum32([0.0] * (block[0] % 64) + p)
            if state:
                top = max(state[0], m)
                a, b = (exp(bf.sub(old, top)) for old in (state[0], m))
                length = fused(state[1], a, fused(length, b, 0))
                o = [fused(old, a, fused(new, b, 0)) for old, new in zip(state[2], o)]
                m = top
            state = (m, length, o)
        return [ratio(v, state[1]) for v in state[2]]

    def test_attention_against_rationals(self):
        source = random.Random(15)
        q, *rows = [[bf.to_f32(source.gauss(0, 1.5)) for _ in range(8)] for _ in range(261)]
        keys, values, scale = rows[:130], rows[130:260], 0.5
        for position, options in (
                (129, {}), (100, {"window": 37}), (70, {"sink": 1.5}), (64, {"cap": 1.25}),
                (128, {"window": 66, "cap": 2.5, "sink": -0.75})):
            first = attention.first_visible(position, options.get("window"))
            expected = self.expected(q, keys, values, scale, range(first, position + 1),
                                     options.get("cap"), options.get("sink"))
            self.same_rows(attention.attention(q, keys, values, scale, position=position,
                                               **options), expected)

    def test_head_of_another_size(self):
        source = random.Random(17)
        rows = [[bf.to_f32(source.gauss(0, 1)) for _ in range(20)] for _ in range(7)]
        expected = self.expected(rows[0], rows[1:4], rows[4:], 0.25, range(3))
        self.assertEqual(attention.attention(rows[0], rows[1:4], rows[4:], 0.25)[:8],
                         expected[:8])


if __name__ == "__main__":
    unittest.main()
