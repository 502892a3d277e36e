"""What the tests of the reference share: an oracle for rounding, and assertions on bits.

nearest() finds a binary32 value by bisection over the bit patterns with Fractions,
independent of the rounding under test.  Shares no code with the program.
"""

import unittest
from fractions import Fraction

from binary_float import bits, from_bits

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
        """Two binary32 values have the same bits, and are binary32 values."""
        self.same_rows([value], [expected])

    def same_rows(self, row, expected):
        """Two rows have the same bits, and are of binary32 values."""
        self.assertEqual(["%08x %r" % (bits(v), v) for v in row],
                         ["%08x %r" % (bits(v), v) for v in expected])
        self.assertEqual([v for v in expected if v == v and from_bits(bits(v)) != v], [])

    def close(self, value, exact, ulps=1):
        """A value lies within some patterns of an exact one of the same sign."""
        self.assertLessEqual(abs(bits(value) - nearest(Fraction(exact))), ulps, (value, exact))


def fused(a, b, c):
    """a * b + c from exact rationals, rounded once; an exact zero is +0."""
    return from_bits(nearest(Fraction(a) * Fraction(b) + Fraction(c)))


def ratio(a, b):
    """a / b rounded once; an exact zero is +0."""
    return from_bits(nearest(Fraction(a) / Fraction(b)))
