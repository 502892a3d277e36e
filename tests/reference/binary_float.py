"""IEEE-754 arithmetic for the reference implementation of detrun-numerics(7).

A binary32 value is a Python float that holds exactly that value.  Every operation
rounds once: through binary64 where that provably gives the same bits, otherwise from
exact integers.  Shares no code with the program.
"""

import math
import struct
from array import array
from fractions import Fraction

# (bits of precision, exponent of the least subnormal, every finite value is below 2^this)
BINARY16 = (11, -24, 16)
BFLOAT16 = (8, -133, 128)
BINARY32 = (24, -149, 128)
BINARY64 = (53, -1074, 1024)

INF = math.inf
NAN = struct.unpack("<f", struct.pack("<I", 0x7FC00000))[0]

_cell = array("f", [0.0])
_frexp = math.frexp


def exact(value):
    """(m, e) with value = m * 2^e, for a finite Python float."""
    fraction, exponent = math.frexp(value)
    return int(fraction * 9007199254740992.0), exponent - 53


def round_exact(m, e, target):
    """m * 2^e rounded to the format, ties to even.  m is not 0, so the sign is that of m."""
    precision, least, limit = target
    n = -m if m < 0 else m
    quantum = max(n.bit_length() + e - precision, least)
    shift = quantum - e
    if shift <= 0:
        q = n << -shift
    else:
        q, rest = n >> shift, n & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        if rest > half or (rest == half and q & 1):
            q += 1
    if q.bit_length() + quantum > limit:
        result = INF
    else:
        result = math.ldexp(q, quantum)
    return -result if m < 0 else result


def round_rational(value, target):
    """A Fraction other than 0, rounded once to the format."""
    n, d = abs(value.numerator), value.denominator
    shift = 64 + d.bit_length() - n.bit_length()
    quotient, rest = divmod(n << max(shift, 0), d << max(-shift, 0))
    sticky = quotient << 1 | (rest != 0)
    return round_exact(-sticky if value < 0 else sticky, -shift - 1, target)


def parse_f32(text):
    """The binary32 value nearest to a decimal number."""
    value = Fraction(text)
    return round_rational(value, BINARY32) if value else float(text)


def round_to(value, target):
    """A Python float rounded to a narrower format from its exact integer form."""
    if value == 0 or value - value != 0:
        return value
    return round_exact(*exact(value), target)


def to_f32(value):
    """A Python float rounded to binary32: the machine's own conversion, which the tests
    compare with round_to(value, BINARY32)."""
    _cell[0] = value
    return _cell[0]


def bits(value):
    """The 32 bits of a binary32 value."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def from_bits(u):
    """The binary32 value with these 32 bits."""
    return struct.unpack("<f", struct.pack("<I", u))[0]


def _exact_fma(a, b, c, target):
    """a * b + c for finite operands from integers; an exact zero keeps its IEEE sign."""
    m1, e1 = exact(a)
    m2, e2 = exact(b)
    m3, e3 = exact(c)
    m, e = m1 * m2, e1 + e2
    low = min(e, e3)
    total = (m << (e - low)) + (m3 << (e3 - low))
    if total == 0:
        return a * b + c
    return round_exact(total, low, target)


def fma(a, b, c):
    """fma of binary32 values.

    The product is exact in binary64, the sum is rounded to 53 bits.  Rounding it again to
    binary32 can differ from one rounding only where the 53-bit sum lies exactly halfway
    between two neighbours; then its distance to either is a power of two.  Those cases,
    and overflow, are done with integers.
    """
    wide = a * b + c
    _cell[0] = wide
    near = _cell[0]
    part = _frexp(wide - near)[0]
    if part == 0.5 or part == -0.5 or part - part != 0.0:
        if wide - wide != 0.0:
            return near
        return _exact_fma(a, b, c, BINARY32)
    return near


# Two roundings, first to 53 and then to 24 bits, equal one for + - * / and sqrt, because
# 53 >= 2 * 24 + 2; a sum or product in the subnormal range is exact in binary64, and a
# quotient of two 24-bit numbers that is not a tie is farther than 2^-49 from one.

def add(a, b):
    """a + b, rounded once to binary32."""
    return to_f32(a + b)


def sub(a, b):
    """a - b, rounded once to binary32."""
    return to_f32(a - b)


def mul(a, b):
    """a * b, rounded once to binary32."""
    return to_f32(a * b)


def div(a, b):
    """a / b, rounded once to binary32, with the IEEE results for a zero divisor."""
    if b == 0:
        if a == 0 or a != a:
            return NAN
        return math.copysign(INF, a) * math.copysign(1.0, b)
    return to_f32(a / b)


def sqrt(a):
    """The IEEE square root, rounded once to binary32."""
    if a < 0:
        return NAN
    return to_f32(math.sqrt(a))


def fma64(a, b, c):
    """fma of finite binary64 values."""
    return _exact_fma(a, b, c, BINARY64)


def f32_from_integer(i):
    """An integer of any size, rounded once to binary32."""
    return round_exact(i, 0, BINARY32) if i else 0.0


def decode_f16(h):
    """A binary16 pattern widened."""
    sign = -1.0 if h & 0x8000 else 1.0
    exponent, fraction = (h >> 10) & 31, h & 1023
    if exponent == 31:
        return NAN if fraction else sign * INF
    if exponent == 0:
        return sign * math.ldexp(fraction, -24)
    return sign * math.ldexp(1024 + fraction, exponent - 25)


def decode_bf16(h):
    """A bfloat16 pattern widened."""
    return from_bits(h << 16)


def encode_f16(value):
    """The binary16 pattern of a binary32 value, nearest even; a NaN becomes a quiet one."""
    sign = 0x8000 if math.copysign(1.0, value) < 0 else 0
    if value != value:
        return 0x7E00
    size = abs(round_to(value, BINARY16))
    if size == INF:
        return sign | 0x7C00
    if size < 2.0 ** -14:
        return sign | int(math.ldexp(size, 24))
    fraction, exponent = math.frexp(size)
    return sign | ((exponent + 14) << 10) + int(math.ldexp(fraction, 11)) - 1024


def encode_bf16(value):
    """The bfloat16 pattern of a binary32 value, nearest even; a NaN becomes a quiet one."""
    if value != value:
        return 0x7FC0
    return bits(round_to(value, BFLOAT16)) >> 16
