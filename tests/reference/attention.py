"""Clause 6 of detrun-numerics(7): attention of one query head over its kv head.

Written from the manual page alone.  Rows are indexed by absolute position.  Shares no
code with the program.
"""

import math

from binary_float import BINARY32, add, div, fma, mul, round_to, sub
from contract import fma_lanes, tree_sum
from functions32 import exp, softcap

ATTENTION_BLOCK = 64


def attention_scale(head_size):
    """1 / sqrt(D), in binary64, then rounded to binary32."""
    return round_to(1.0 / math.sqrt(head_size), BINARY32)


def first_visible(position, window=None):
    """The first position that the query at a position sees."""
    return 0 if window is None else max(0, position - window + 1)


def kv_head(head, heads, kv_heads):
    """The kv head of a query head."""
    return head // (heads // kv_heads)


def _block(q, keys, values, positions, scale, cap):
    scores = [mul(tree_sum(fma_lanes(q, keys[j], 8)), scale) for j in positions]
    if cap is not None:
        scores = [softcap(score, cap) for score in scores]
    m = max(scores)
    p = [exp(sub(score, m)) for score in scores]
    lanes = [0.0] * 32
    for j, weight in zip(positions, p, strict=True):
        lanes[j % 32] = add(lanes[j % 32], weight)
    o = [0.0] * len(values[positions[0]])
    for j, weight in zip(positions, p, strict=True):
        o = [fma(weight, v, before) for v, before in zip(values[j], o, strict=True)]
    return m, tree_sum(lanes), o


def attention(q, keys, values, scale, *, position=None, window=None, cap=None, sink=None):
    """One query head at a position, by default the last, over the cached rows.

    keys[j] and values[j] belong to position j; only the visible ones are read.
    """
    position = len(keys) - 1 if position is None else position
    start = first_visible(position, window)
    state = None
    if sink is not None:
        state = (sink, 1.0, [0.0] * len(values[position]))
    for first in range(start - start % ATTENTION_BLOCK, position + 1, ATTENTION_BLOCK):
        visible = range(max(start, first), min(position + 1, first + ATTENTION_BLOCK))
        block = _block(q, keys, values, visible, scale, cap)
        state = block if state is None else _joined(state, block)
    _, length, o = state
    return [add(div(value, length), 0.0) for value in o]


def _joined(state, block):
    (m, length, o), (m_b, l_b, o_b) = state, block
    top = max(m, m_b)
    a, b = exp(sub(m, top)), exp(sub(m_b, top))
    joined = [fma(before, a, mul(value, b)) for before, value in zip(o, o_b, strict=True)]
    return top, fma(length, a, mul(l_b, b)), joined
