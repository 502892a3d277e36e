"""The binary64 functions of detrun-numerics(7) and the rotary tables made with them.

Python's + - * / on floats are binary64 operations rounded once; fma64 is done with
integers.  Shares no code with the program.
"""

import math
from typing import NamedTuple

from binary_float import fma64, to_f32

ROUNDER = 6755399441055744.0

LOG_TERMS = tuple(1.0 / n for n in range(27, 2, -2))
EXP_TERMS = tuple(1.0 / math.factorial(n) for n in range(13, 2, -1)) + (0.5, 1.0, 1.0)
SIN_TERMS = tuple((-1.0 if n % 4 == 3 else 1.0) / math.factorial(n) for n in range(15, 2, -2))
COS_TERMS = (tuple((-1.0 if n % 4 == 2 else 1.0) / math.factorial(n) for n in range(16, 3, -2))
             + (-0.5, 1.0))


def horner(terms, x):
    """The polynomial, highest power first."""
    p = terms[0]
    for term in terms[1:]:
        p = fma64(p, x, term)
    return p


def log64(x):
    """The natural logarithm of a normal positive number."""
    fraction, exponent = math.frexp(x)
    m, e = fraction * 2.0, exponent - 1
    if m > 1.4142135623730951:
        m, e = m * 0.5, e + 1
    f = m - 1.0
    s = f / (m + 1.0)
    z = s * s
    p = horner(LOG_TERMS, z)
    t = s * z
    low = fma64(2.0 * t, p, 2.0 * s)
    low = fma64(float(e), 1.9082149292705877e-10, low)
    return fma64(float(e), 0.69314718036912382, low)


def exp64(x):
    """e^x for |x| < 700."""
    n = fma64(x, 1.4426950408889634, ROUNDER) - ROUNDER
    r = fma64(n, -0.69314718036912382, x)
    r = fma64(n, -1.9082149292705877e-10, r)
    return horner(EXP_TERMS, r) * math.ldexp(1.0, int(n))


def sin_cos64(x):
    """(sin64(x), cos64(x)) for |x| < 2^32."""
    n = fma64(x, 0.63661977236758134, ROUNDER) - ROUNDER
    r = fma64(n, -1.5707963267948966, x)
    r = fma64(n, -6.123233995736766e-17, r)
    z = r * r
    s = fma64(horner(SIN_TERMS, z) * z, r, r)
    c = horner(COS_TERMS, z)
    return ((s, c), (c, -s), (-s, -c), (-c, s))[int(n) % 4]


class Yarn(NamedTuple):
    """The parameters of YaRN, binary64; original is the original context length."""

    factor: float
    original: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0

    def correction(self, beta, count, theta):
        """corr(b): the number of the pair that turns b times in the original context."""
        turns = log64(self.original / (beta * 6.283185307179586))
        return count * turns / (2.0 * log64(theta))

    def ramp(self, i, count, theta):
        """R, the share of the pair i that is not scaled."""
        low = max(0.0, float(math.floor(self.correction(self.beta_fast, count, theta))))
        high = min(count - 1.0, float(math.ceil(self.correction(self.beta_slow, count, theta))))
        width = max(0.001, high - low)
        return 1.0 - min(1.0, max(0.0, (i - low) / width))

    def mscale(self, attention_factor=1.0):
        """The factor of sine and cosine."""
        return attention_factor * (1.0 + 0.1 * log64(self.factor))


def inverse_frequencies(count, theta, factors=None, linear=None, yarn=None):
    """inv[i] for the count / 2 pairs of a head."""
    result = []
    for i in range(count // 2):
        inverse = exp64((-(2.0 * i) / count) * log64(theta))
        if factors is not None:
            inverse = inverse / factors[i]
        if linear is not None:
            inverse = inverse / linear
        if yarn is not None:
            r = yarn.ramp(i, count, theta)
            inverse = (inverse / yarn.factor) * (1.0 - r) + inverse * r
        result.append(inverse)
    return result


def rope_row(position, inverse, mscale=1.0):
    """The binary32 lists (cos, sin) of one position."""
    pairs = [sin_cos64(position * value) for value in inverse]
    return [to_f32(c * mscale) for _, c in pairs], [to_f32(s * mscale) for s, _ in pairs]
