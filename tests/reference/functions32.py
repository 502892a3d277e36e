"""Clause 4 of detrun-numerics(7): the elementwise functions of binary32.

Written from the manual page alone.  Values are Python floats that hold binary32 values
exactly; see binary_float.py for the rounding.  Shares no code with the program.
"""

import math

from binary_float import (
    INF, NAN, add, bits, div, f32_from_integer, fma, from_bits, mul, parse_f32, sub)


def _terms(*texts):
    return tuple(map(parse_f32, texts))


EXP_LOG2E = parse_f32("1.44269504088896341")
EXP_LN2 = _terms("-0.693145751953125", "-1.428606765330187e-06")
EXP_TERMS = _terms(
    "0.0014035551575943828", "0.008372284471988678", "0.04166555032134056",
    "0.16666488349437714", "0.5", "1", "1")
EXP_ROUNDER = 12582912.0

LOG_TERMS = _terms(
    "-0.13188140094280243", "0.1396193653345108", "-0.1211593970656395", "0.14011041820049286",
    "-0.16685406863689423", "0.2001003473997116", "-0.24999690055847168", "0.33333224058151245",
    "-0.5")
LOG_LN2 = parse_f32("0.693147182")

TANH_LIMIT = 0.625
TANH_TERMS = _terms("-0.005900859", "0.020838568", "-0.05381102", "0.13332477", "-0.3333333")

ERF_TERMS = _terms(
    "7.648383e-05", "-0.000794175", "0.0051800134", "-0.02684937", "0.11283488", "-0.3761262",
    "0.12837917")
ERFC_TERMS = _terms(
    "0.00017059321", "-0.0028053855", "0.021311956", "-0.10208209", "-0.63925606", "-1.126452",
    "-0.0004925754")

GELU_CUBE = parse_f32("0.044715")
GELU_ROOT = parse_f32("0.7978845608")
GELU_HALF_ROOT = parse_f32("0.7071067812")


def _horner(terms, x):
    p = terms[0]
    for term in terms[1:]:
        p = fma(p, x, term)
    return p


def exp(x):
    """e^x."""
    if x != x:
        return NAN
    c = min(max(x, -104.0), 89.0)
    t = fma(c, EXP_LOG2E, EXP_ROUNDER)
    n = sub(t, EXP_ROUNDER)
    r = fma(n, EXP_LN2[0], c)
    r = fma(n, EXP_LN2[1], r)
    p = _horner(EXP_TERMS, r)
    k = bits(t) - 0x4B400000
    k1 = k // 2
    k2 = k - k1
    return mul(mul(p, from_bits((k1 + 127) << 23)), from_bits((k2 + 127) << 23))


def log(x):
    """The natural logarithm."""
    if x == 0:
        return -INF
    if x == INF:
        return x
    if x < 0 or x != x:
        return NAN
    u, e = bits(x), 0.0
    if u < 0x00800000:
        u, e = bits(mul(x, 8388608.0)), -23.0
    step = (u - 0x3F2AAAAB) % (1 << 32) & 0xFF800000
    signed = step - (1 << 32) if step & 0x80000000 else step
    e = add(e, f32_from_integer(signed // (1 << 23)))
    f = sub(from_bits((u - step) % (1 << 32)), 1.0)
    p = _horner(LOG_TERMS, f)
    low = fma(p, mul(f, f), f)
    return fma(e, LOG_LN2, low)


def tanh(x):
    """The hyperbolic tangent."""
    if x != x:
        return NAN
    t = abs(x)
    if t < TANH_LIMIT:
        z = mul(x, x)
        return fma(mul(x, z), _horner(TANH_TERMS, z), x)
    y = sub(1.0, div(2.0, add(exp(add(t, t)), 1.0)))
    return math.copysign(y, x)


def erf(x):
    """The error function."""
    if x != x:
        return NAN
    t = abs(x)
    if t < 1.0:
        return fma(x, _horner(ERF_TERMS, mul(x, x)), x)
    t = min(t, 4.0)
    y = sub(1.0, exp(_horner(ERFC_TERMS, t)))
    return math.copysign(y, x)


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return div(1.0, add(1.0, exp(-x)))


def silu(x):
    """x / (1 + exp(-x))."""
    return div(x, add(1.0, exp(-x)))


def gelu_tanh(x):
    """The GELU with tanh."""
    v = fma(GELU_CUBE, mul(x, x), 1.0)
    u = mul(mul(GELU_ROOT, x), v)
    return mul(mul(0.5, x), add(1.0, tanh(u)))


def gelu_erf(x):
    """The GELU with erf."""
    return mul(mul(0.5, x), add(1.0, erf(mul(x, GELU_HALF_ROOT))))


def softcap(x, c):
    """c * tanh(x / c)."""
    return mul(c, tanh(div(x, c)))
