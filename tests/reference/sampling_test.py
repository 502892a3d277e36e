"""Edge cases of clauses 11 and 12: margin, log probability, penalties, filters, noise.

Shares no code with the program.
"""

import math
import unittest
from fractions import Fraction

import sampling
from binary_float import INF, bits, from_bits
from cases import TWO24, ContractCase, fused, nearest
from contract import ContractError
from sampling import Filters


class ChoiceTest(ContractCase):
    """Clauses 11 to 13."""

    def test_margin(self):
        self.same(sampling.margin([5.0]), INF)
        self.same(sampling.margin([1.0, 5.0, 5.0]), 0.0)
        self.same(sampling.margin([-1.0, -4.0, -2.5]), 1.5)
        self.same(sampling.margin([-TWO24, 1.0]), TWO24)
        # -0 less +0 is -0 without the addition
        self.same(sampling.margin([-0.0, 0.0]), 0.0)
        self.same(sampling.margin([0.0, -0.0]), 0.0)

    def test_log_probability(self):
        self.same(sampling.log_probability([5.0], 0), 0.0)
        self.assertEqual(bits(sampling.log_probability([7.0, 7.0], 1)), 0xBF317218)
        self.same(sampling.log_probability([0.0, -200.0], 1), -200.0)

    def test_choice(self):
        self.assertEqual(sampling.choose_largest([-1.0, -0.0, 0.0]), 1)
        self.assertEqual(sampling.choose_largest([2.0, 3.0, 3.0]), 1)
        self.assertEqual(sampling.choose([2.0, 3.0, 3.0], Filters(), 5, 7), 1)


class PenaltiesTest(ContractCase):
    """Repeat, frequency and presence."""

    def test_repeat(self):
        x = [3.0, -3.0, 0.0, -0.0, 3.0]
        self.same_rows(sampling.penalize(x, [0, 1, 2, 3, 1], repeat=1.5),
                       [2.0, -4.5, 0.0, -0.0, 3.0])
        self.same_rows(sampling.penalize([1.0], [0], repeat=3.0),
                       [from_bits(nearest(Fraction(1, 3)))])
        self.same_rows(sampling.penalize(x, [0, 1], repeat=1.0), x)
        self.same_rows(sampling.penalize(x, [], repeat=2.0, presence=1.0), x)

    def test_frequency_and_presence(self):
        x = [1.0, 1.0, 1.0]
        recent = [2, 1, 2, 2]
        self.same_rows(sampling.penalize(x, recent, frequency=0.25), [1.0, 0.75, 0.25])
        self.same_rows(sampling.penalize(x, recent, presence=0.25), [1.0, 0.75, 0.75])
        self.same_rows(sampling.penalize(x, recent, frequency=0.25, presence=-0.5),
                       [1.0, 1.25, 0.75])

    def test_sum_is_rounded_before_it_is_taken(self):
        tiny = 2.0 ** -24
        self.same_rows(sampling.penalize([-1.0], [0], frequency=1.0, presence=tiny), [-2.0])
        # 1 - (1 + 2^-24) is 0, while (1 - 1) - 2^-24 is not
        self.same_rows(sampling.penalize([1.0], [0], frequency=1.0, presence=tiny), [0.0])
        third = from_bits(nearest(Fraction(1, 3)))
        count = [0] * 5
        product = nearest(5 * Fraction(third))
        self.same_rows(sampling.penalize([1.0], count, frequency=third),
                       [from_bits(nearest(1 - Fraction(from_bits(product))))])

    def test_product_is_rounded_before_presence_is_added(self):
        third = from_bits(nearest(Fraction(1, 3)))
        product = fused(5, third, 0)
        self.assertNotEqual(5 * Fraction(third), Fraction(product))
        self.same_rows(sampling.penalize([0.0], [0] * 5, frequency=third, presence=-product),
                       [0.0])

    def test_repeat_comes_first(self):
        self.same_rows(sampling.penalize([3.0], [0], 2.0, 0.0, 1.0), [0.5])

    def test_logits_that_overflow_are_refused(self):
        for x, repeat in ((3e38, 0.5), (-3e38, 2.0)):
            with self.assertRaises(ContractError):
                sampling.penalize([x], [0], repeat=repeat)
        with self.assertRaises(ContractError):
            sampling.penalize([-3e38], [0, 0], frequency=2e38)


class FiltersTest(ContractCase):
    """Which candidates are left, and in which order."""

    def ids(self, logits, temperature=1.0, **filters):
        """The ids of the survivors."""
        return [token for token, _ in sampling.survivors(
            logits, Filters(temperature, **filters))]

    def test_order(self):
        self.assertEqual(self.ids([1.0, 2.0, -0.0, 2.0, 0.0]), [1, 3, 0, 2, 4])

    def test_temperature(self):
        survivors = sampling.survivors([1.0, 3.0, -2.0], Filters(0.5))
        self.same_rows([x for _, x in survivors], [0.0, -4.0, -10.0])
        # the order stays where the quotients are equal: 2^-149 / 4 is a tie and becomes 0
        survivors = sampling.survivors([0.0, 2.0 ** -149], Filters(4.0))
        self.assertEqual([token for token, _ in survivors], [1, 0])
        self.same_rows([x for _, x in survivors], [0.0, -0.0])

    def test_top_k(self):
        logits = [1.0, 2.0, 2.0, 0.0]
        self.assertEqual(self.ids(logits, top_k=2), [1, 2])
        self.assertEqual(self.ids(logits, top_k=1), [1])
        for neutral in (0, 4, 9):
            self.assertEqual(self.ids(logits, top_k=neutral), [1, 2, 0, 3])

    def test_top_p(self):
        logits = [0.0] * 4
        self.assertEqual(self.ids(logits, top_p=0.5), [0, 1])
        self.assertEqual(self.ids(logits, top_p=from_bits(bits(0.5) + 1)), [0, 1, 2])
        self.assertEqual(self.ids(logits, top_p=0.25), [0])
        self.assertEqual(self.ids(logits, top_p=2.0 ** -149), [0])
        self.assertEqual(self.ids(logits, top_p=1.0), [0, 1, 2, 3])
        self.assertEqual(self.ids([0.0, -200.0], top_p=0.999), [0])

    def test_sums_of_a_filter_are_sequential(self):
        # e of the others is below half a unit of 1, and two of them are not
        x = -17.0
        low = sampling.exp(x)
        self.assertTrue(2.0 ** -25 < low < 2.0 ** -24)
        p = sampling.weights([sampling.Candidate(0, 0.0)] + [sampling.Candidate(1, x)] * 40)
        self.same_rows(p, [1.0] + [low] * 40)

    def test_a_mass_that_is_never_reached_keeps_all(self):
        logits = [0.0] + [-17.0] * 3
        self.assertEqual(self.ids(logits, top_p=from_bits(bits(1.0) - 1)), [0])
        logits = [0.0] * 10
        total = 0.0
        for p in sampling.weights([sampling.Candidate(i, 0.0) for i in range(10)]):
            total = sampling.add(total, p)
        above = from_bits(bits(total) + 1)
        self.assertEqual(self.ids(logits, top_p=above), list(range(10)))
        self.assertEqual(self.ids(logits, typical=above), list(range(10)))

    def test_min_p(self):
        logits = [5.0, 4.0, 5.0, 3.0]
        share = sampling.exp(-1.0)
        self.assertEqual(self.ids(logits, min_p=share), [0, 2, 1])
        self.assertEqual(self.ids(logits, min_p=from_bits(bits(share) + 1)), [0, 2])
        self.assertEqual(self.ids(logits, min_p=1.0), [0, 2])
        self.assertEqual(self.ids(logits, 2.0, min_p=share), [0, 2, 1, 3])

    def test_typical_of_equal_candidates(self):
        self.assertEqual(self.ids([1.0] * 4, typical=0.5), [0, 1])
        self.assertEqual(self.ids([1.0] * 4, typical=0.51), [0, 1, 2])

    def test_typical_may_keep_what_lies_behind(self):
        # p = 0.4, 0.2, 0.2, 0.2: surprise 0.92 and 1.61, entropy 1.33; the 0.2 are nearer
        logits = [from_bits(nearest(Fraction(math.log(2.0)))), 0.0, 0.0, 0.0]
        self.assertEqual(self.ids(logits, typical=0.3), [0, 1, 2])
        self.assertEqual(self.ids(logits, typical=0.1), [0, 1])
        self.assertEqual(self.ids(logits, typical=0.55), [0, 1, 2, 3])
        # one far candidate: p = 0.84, 0.11, 0.04: h = 0.17, 2.17, 3.17, entropy 0.53
        self.assertEqual(self.ids([3.0, 1.0, 0.0], typical=0.85), [0, 1])
        self.assertEqual(self.ids([3.0, 1.0, 0.0], typical=0.5), [0])

    def test_typical_with_weights_of_zero(self):
        self.assertEqual(self.ids([0.0, -200.0, 0.0], typical=0.9), [0, 2])
        self.assertEqual(self.ids([0.0, -3e38, 3e38], typical=0.9), [2])
        # they add nothing to the entropy: without the last as in the test above
        logits = [from_bits(nearest(Fraction(math.log(2.0)))), 0.0, 0.0, 0.0, -200.0]
        self.assertEqual(self.ids(logits, typical=0.3), [0, 1, 2])

    def test_every_filter_weighs_what_is_left(self):
        # of two candidates each has half, of four a quarter
        logits = [0.0] * 4
        self.assertEqual(self.ids(logits, top_k=2, top_p=0.5), [0])
        self.assertEqual(self.ids(logits, top_k=2, typical=0.5), [0])
        self.assertEqual(self.ids(logits, typical=0.5, top_p=0.5), [0])
        self.assertEqual(self.ids([0.0, -1.0, -2.0], top_p=0.9, min_p=0.2), [0, 1])


class NoiseTest(ContractCase):
    """Philox and the choice with noise."""

    # kat_vectors of the Random123 distribution, the lines of philox4x32 with 10 rounds
    KNOWN = (
        ("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"))

    def test_known_answers(self):
        for counter, key, expected in self.KNOWN:
            words = [tuple(int(word, 16) for word in text.split())
                     for text in (counter, key, expected)]
            self.assertEqual(sampling.philox(words[0], words[1]), words[2])

    def test_where_seed_step_and_id_enter(self):
        seed, step = 0x0123456789ABCDEF, 0xFEDCBA9876543210
        w = sampling.philox((77, 0x76543210, 0xFEDCBA98, 0), (0x89ABCDEF, 0x01234567))[0]
        self.same(sampling.uniform(seed, step, 77), (2 * (w >> 9) + 1) * 2.0 ** -24)
        # 0x6627e8d5 >> 9 = 0x3313f4
        self.same(sampling.uniform(0, 0, 0), (2 * 0x3313F4 + 1) * 2.0 ** -24)

    def test_noise(self):
        for seed, step, token in ((0, 0, 0), (1, 2, 3), (2 ** 64 - 1, 2 ** 64 - 1, 2 ** 32 - 1)):
            u = sampling.uniform(seed, step, token)
            self.assertTrue(0 < u < 1)
            noise = sampling.noise(seed, step, token)
            self.assertAlmostEqual(noise, -math.log(-math.log(u)), delta=1e-6)
        self.same(sampling.noise(0, 0, 0), -sampling.log(-sampling.log(0x6627E9 * 2.0 ** -24)))

    def test_choice_adds_the_noise(self):
        logits = [0.5, 0.25, -1.0, 0.75, 0.0]
        for step in range(20):
            sums = [sampling.add(sampling.sub(x, 0.75), sampling.noise(9, step, i))
                    for i, x in enumerate(logits)]
            self.assertEqual(sampling.choose(logits, Filters(1.0), 9, step),
                             sums.index(max(sums)))

    def test_filters_do_not_change_the_noise(self):
        logits = [1.0, 0.0, 1.5, 0.5]
        for step in range(20):
            free = sampling.choose(logits, Filters(1.0), 3, step)
            kept = sampling.choose(logits, Filters(1.0, top_k=2), 3, step)
            if free in (0, 2):
                self.assertEqual(kept, free)
            self.assertIn(kept, (0, 2))
            self.assertEqual(sampling.choose(logits, Filters(1.0, top_k=1), 3, step), 2)

    def test_equal_sums_go_to_the_lowest_id(self):
        # two ids with the same 23 bits of noise, and nobody else near
        seen = {}
        for token in range(20000):
            u = sampling.uniform(0, 0, token)
            if u in seen:
                break
            seen[u] = token
        first, second = seen[u], token
        for low, high in ((first, second), (second, first)):
            logits = [-3e38] * (second + 1)
            logits[first] = logits[second] = 1.0
            self.assertEqual(sampling.choose(logits, Filters(1.0), 0, 0), first)
        # the order of candidates is no tie-break: the higher id is the first of them here
        logits[second] = from_bits(bits(1.0) + 1)
        self.assertEqual(sampling.survivors(logits, Filters(1.0, top_k=2))[0].token, second)
        self.assertEqual(sampling.choose(logits, Filters(2.0 ** 23, top_k=2), 0, 0), first)

    def test_frequencies_follow_the_weights(self):
        logits, counts = [0.0, 1.0, 2.0, -1.0], [0] * 4
        for step in range(2000):
            counts[sampling.choose(logits, Filters(1.0), 12345, step)] += 1
        total = sum(math.exp(x) for x in logits)
        chi2 = sum((count - 2000 * math.exp(x) / total) ** 2 / (2000 * math.exp(x) / total)
                   for count, x in zip(counts, logits))
        self.assertLess(chi2, 16.3)  # one in a thousand, three degrees of freedom


if __name__ == "__main__":
    unittest.main()
