"""Clauses 11 and 12 of detrun-numerics(7): margin, log probability, choice of a token.

Written from the manual page alone.  Shares no code with the program.
"""

from typing import NamedTuple

from binary_float import INF, add, div, f32_from_integer, fma, mul, sub
from contract import finite, sum32
from functions32 import exp, log

WORD = 0xFFFFFFFF
PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)


class Filters(NamedTuple):
    """The parameters of a choice; a filter at its neutral value is left out."""

    temperature: float = 0.0
    top_k: int = 0
    typical: float = 1.0
    top_p: float = 1.0
    min_p: float = 0.0


class Candidate(NamedTuple):
    """An id and its value."""

    token: int
    x: float


# 11. Margin and log probability

def margin(logits):
    """The largest logit less the second largest."""
    if len(logits) == 1:
        return INF
    first, second = sorted(logits, reverse=True)[:2]
    return add(sub(first, second), 0.0)


def log_probability(logits, chosen):
    """The log probability of an id."""
    m = max(logits)
    total = sum32(exp(sub(value, m)) for value in logits)
    return sub(sub(logits[chosen], m), log(total))


# 12. Choice of a token

def penalize(logits, recent, repeat=1.0, frequency=0.0, presence=0.0):
    """The logits after penalties; recent are the last N tokens of prompt and output."""
    result = list(logits)
    for token in sorted(set(recent)):
        x = result[token]
        if repeat != 1:
            x = div(x, repeat) if x > 0 else mul(x, repeat)
        if frequency != 0 or presence != 0:
            count = f32_from_integer(list(recent).count(token))
            x = sub(x, add(mul(count, frequency), presence))
        result[token] = x
    return finite(result, "logits after penalties")


def choose_largest(logits):
    """The lowest id of the largest logit."""
    return logits.index(max(logits))


def philox(counter, key):
    """The four words of Philox4x32-10."""
    c, k = tuple(counter), tuple(key)
    for _ in range(10):
        p, q = PHILOX_FACTORS[0] * c[0], PHILOX_FACTORS[1] * c[2]
        c = (q >> 32 ^ c[1] ^ k[0], q & WORD, p >> 32 ^ c[3] ^ k[1], p & WORD)
        k = (k[0] + PHILOX_STEPS[0] & WORD, k[1] + PHILOX_STEPS[1] & WORD)
    return c


def uniform(seed, step, token):
    """The number u of a token, above 0 and below 1."""
    w = philox((token, step & WORD, step >> 32, 0), (seed & WORD, seed >> 32))[0]
    return mul(add(f32_from_integer(w >> 9), 0.5), 2.0 ** -23)


def noise(seed, step, token):
    """The Gumbel noise of a token."""
    return -log(-log(uniform(seed, step, token)))


def weights(candidates):
    """p of every candidate, in order."""
    e = [exp(candidate.x) for candidate in candidates]
    z = 0.0
    for value in e:
        z = add(z, value)
    return [div(value, z) for value in e]


def _up_to_mass(order, p, mass):
    """The head of an order of ranks, up to and with the first whose sum of p is >= mass."""
    total = 0.0
    for count, rank in enumerate(order, 1):
        total = add(total, p[rank])
        if total >= mass:
            return order[:count]
    return order


def keep_typical(candidates, typical):
    """The candidates whose surprise is near the entropy, in their former order."""
    p = weights(candidates)
    h = [-log(value) for value in p]
    entropy = 0.0
    for value, surprise in zip(p, h):
        if value > 0:
            entropy = fma(value, surprise, entropy)
    order = sorted(range(len(p)), key=lambda rank: (abs(sub(h[rank], entropy)), rank))
    kept = {0, *_up_to_mass(order, p, typical)}
    return [candidate for rank, candidate in enumerate(candidates) if rank in kept]


def keep_top_p(candidates, top_p):
    """The head of the candidates with that mass."""
    p = weights(candidates)
    return [candidates[rank] for rank in _up_to_mass(range(len(p)), p, top_p)]


def keep_min_p(candidates, min_p):
    """The candidates with at least that share of the weight of the first."""
    return [candidate for rank, candidate in enumerate(candidates)
            if rank == 0 or exp(candidate.x) >= min_p]


def survivors(logits, filters):
    """The candidates that the filters leave, in order."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    m = logits[order[0]]
    candidates = [Candidate(i, div(sub(logits[i], m), filters.temperature)) for i in order]
    if filters.top_k != 0:
        candidates = candidates[:filters.top_k]
    if filters.typical != 1:
        candidates = keep_typical(candidates, filters.typical)
    if filters.top_p != 1:
        candidates = keep_top_p(candidates, filters.top_p)
    if filters.min_p != 0:
        candidates = keep_min_p(candidates, filters.min_p)
    return candidates


def choose(logits, filters, seed=0, step=0):
    """The id that is chosen from logits after penalties."""
    if filters.temperature == 0:
        return choose_largest(logits)
    noisy = [Candidate(token, add(x, noise(seed, step, token)))
             for token, x in survivors(logits, filters)]
    return min(noisy, key=lambda candidate: (-candidate.x, candidate.token)).token
