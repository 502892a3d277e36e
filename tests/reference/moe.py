"""Clause 9 of detrun-numerics(7): the choice and the weights of experts, and their sum.

Written from the manual page alone.  Shares no code with the program.
"""

from binary_float import add, div, fma, mul, sub
from contract import finite, sum32
from functions32 import exp, sigmoid

SOFTMAX, SIGMOID, SOFTMAX_OF_CHOSEN = "softmax", "sigmoid", "softmax of chosen"
GATINGS = (SOFTMAX, SIGMOID, SOFTMAX_OF_CHOSEN)


def softmax(values):
    """The softmax of a list of values."""
    m = max(values)
    e = [exp(sub(value, m)) for value in values]
    z = sum32(e)
    return [div(value, z) for value in e]


def largest(keys, k):
    """The numbers of the k largest keys, the lower number first where keys are equal."""
    return sorted(range(len(keys)), key=lambda i: (-keys[i], i))[:k]


def route(x, k, gating, *, bias=None, renormalize=False, scale=None):
    """(experts by rank, their weights) for the router logits x."""
    finite(x, "router logits")
    if gating == SOFTMAX:
        p = softmax(x)
    elif gating == SIGMOID:
        p = [sigmoid(value) for value in x]
    elif gating == SOFTMAX_OF_CHOSEN:
        p = x
    else:
        raise ValueError("gating %s" % gating)
    keys = p if bias is None else [add(key, b) for key, b in zip(p, bias, strict=True)]
    chosen = largest(keys, k)
    w = [p[i] for i in chosen]
    if gating == SOFTMAX_OF_CHOSEN:
        w = softmax(w)
    if renormalize:
        total = sum32(w)
        w = [div(weight, total) for weight in w]
    if scale is not None:
        w = [mul(weight, scale) for weight in w]
    return chosen, w


def combine(weights, outputs, shared=None, gate=None):
    """The weighted sum of the outputs by rank, then of the shared experts.

    gate is the router logit of the shared experts, where they have one.
    """
    y = [0.0] * len(outputs[0])
    for w, output in zip(weights, outputs, strict=True):
        y = [fma(w, value, before) for value, before in zip(output, y, strict=True)]
    return y if shared is None else add_shared(y, shared, gate)


def add_shared(y, shared, gate=None):
    """The row y of the chosen experts and that of the shared ones."""
    if gate is None:
        return [add(before, value) for value, before in zip(shared, y, strict=True)]
    finite([gate], "router logit of the shared experts")
    w = sigmoid(gate)
    return [fma(w, value, before) for value, before in zip(shared, y, strict=True)]
