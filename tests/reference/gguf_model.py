"""A strict reader of GGUF version 3 files and the forward pass of the architecture llama.

Reads the tensor types F32, F16, BF16 and the integer types of clause 3.  The forward pass
is the section FORWARD PASS of detrun-numerics(7), one position at a time.  Shares no code
with the program.
"""

import math
import struct

import attention
import contract
import sampling
from functions64 import inverse_frequencies, rope_row
from quant_types import QUANT_TYPES, product_quantized, read_row, widen_row

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
STRING, ARRAY = 8, 9
# name, elements a block, bytes a block
TENSOR_TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2)}
TENSOR_TYPES.update({number: (kind, QUANT_TYPES[kind].elements, QUANT_TYPES[kind].size)
                     for number, kind in (
                         (2, "Q4_0"), (3, "Q4_1"), (6, "Q5_0"), (7, "Q5_1"), (8, "Q8_0"),
                         (10, "Q2_K"), (11, "Q3_K"), (12, "Q4_K"), (13, "Q5_K"), (14, "Q6_K"),
                         (20, "IQ4_NL"), (23, "IQ4_XS"))})
MAX_ITEMS = 1 << 24


class FormatError(ValueError):
    """The file is not one that this reader takes."""


class Reader:
    """A cursor over the bytes of the file."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        """The next bytes."""
        if size > len(self.data) - self.at:
            raise FormatError("the file ends early, at byte %d" % self.at)
        self.at += size
        return self.data[self.at - size:self.at]

    def scalar(self, code):
        """One number."""
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def count(self):
        """A number of things, of a size that can be."""
        value = self.scalar("Q")
        if value > MAX_ITEMS:
            raise FormatError("a count of %d" % value)
        return value

    def string(self):
        """Text with its length before it."""
        return self.take(self.count()).decode("utf-8", "surrogateescape")

    def value(self, kind):
        """One metadata value."""
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, size = self.scalar("I"), self.count()
            if inner == ARRAY:
                raise FormatError("an array of arrays")
            return [self.value(inner) for _ in range(size)]
        if kind not in SCALARS:
            raise FormatError("metadata type %d" % kind)
        return self.scalar(SCALARS[kind])


class Tensor:
    """A matrix: rows of widened weights, or rows of groups of an integer type."""

    def __init__(self, name, kind, shape, data):
        self.name, self.kind, self.columns = name, kind, shape[0]
        size = len(data) // math.prod(shape[1:])
        self._raw = [data[i:i + size] for i in range(0, len(data), size)]
        self._rows = None

    @property
    def rows(self):
        """All rows, decoded when first asked for."""
        if self._rows is None:
            read = read_row if self.kind in QUANT_TYPES else _read_float
            self._rows = [read(self.kind, raw) for raw in self._raw]
        return self._rows

    def row(self, n):
        """One row as an embedding."""
        if self.kind in QUANT_TYPES:
            return widen_row(self.rows[n])
        return list(self.rows[n])

    def vector(self):
        """The only row."""
        if len(self._raw) != 1:
            raise FormatError("%s is not a vector" % self.name)
        return self.row(0)

    def product(self, x):
        """The product of the row x with this weight."""
        if len(x) != self.columns:
            raise FormatError("%s: %d columns for %d inputs" % (self.name, self.columns, len(x)))
        contract.finite(x, "activations before " + self.name)
        if self.kind in QUANT_TYPES:
            return product_quantized(contract.quantize(x), self.rows)
        return contract.product_float(x, self.rows)


def _read_float(kind, raw):
    return contract.widen(raw, kind)


def read_gguf(path):
    """(metadata, tensors by name) of a file."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    if reader.take(4) != b"GGUF" or reader.scalar("I") != 3:
        raise FormatError("%s: no GGUF file of version 3" % path)
    tensor_count, value_count = reader.count(), reader.count()
    metadata = {}
    for _ in range(value_count):
        key = reader.string()
        if key in metadata:
            raise FormatError("%s twice" % key)
        metadata[key] = reader.value(reader.scalar("I"))
    infos = {}
    for _ in range(tensor_count):
        name = reader.string()
        shape = [reader.scalar("Q") for _ in range(reader.scalar("I"))]
        kind, offset = reader.scalar("I"), reader.scalar("Q")
        if name in infos or kind not in TENSOR_TYPES or not 1 <= len(shape) <= 4 or 0 in shape:
            raise FormatError("tensor %s: twice, of type %d or of a bad shape" % (name, kind))
        infos[name] = (kind, shape, offset)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise FormatError("an alignment of %s" % alignment)
    start = (reader.at + alignment - 1) // alignment * alignment
    return metadata, {name: _tensor(reader.data, start, alignment, name, *info)
                      for name, info in infos.items()}


def _tensor(data, start, alignment, name, kind, shape, offset):
    label, elements, size = TENSOR_TYPES[kind]
    if offset % alignment or shape[0] % elements:
        raise FormatError("tensor %s: bad offset or shape" % name)
    begin = start + offset
    end = begin + math.prod(shape) // elements * size
    if end > len(data):
        raise FormatError("tensor %s: the file ends before it does" % name)
    return Tensor(name, label, shape, data[begin:end])


class Layer:
    """The weights of one layer and its part of the cache: keys[position][kv head]."""

    def __init__(self, tensors, index):
        def get(name):
            return tensors["blk.%d.%s.weight" % (index, name)]
        self.attn_norm, self.ffn_norm = get("attn_norm").vector(), get("ffn_norm").vector()
        self.q, self.k, self.v = get("attn_q"), get("attn_k"), get("attn_v")
        self.output = get("attn_output")
        self.gate, self.up, self.down = get("ffn_gate"), get("ffn_up"), get("ffn_down")
        self.keys, self.values = [], []


class Model:
    """A llama model and the state of one run."""

    def __init__(self, path, kv_type="f16"):
        metadata, tensors = read_gguf(path)
        if metadata["general.architecture"] != "llama":
            raise FormatError("%s: not of the architecture llama" % path)
        self.kv_type = kv_type
        self.heads = metadata["llama.attention.head_count"]
        self.kv_heads = metadata.get("llama.attention.head_count_kv", self.heads)
        width = metadata["llama.embedding_length"]
        self.head_size = metadata.get("llama.attention.key_length", width // self.heads)
        self.eps = metadata["llama.attention.layer_norm_rms_epsilon"]
        self.scale = attention.attention_scale(self.head_size)
        theta = metadata.get("llama.rope.freq_base", 10000.0)
        rotated = metadata.get("llama.rope.dimension_count", self.head_size)
        factors = tensors["rope_freqs.weight"].vector() if "rope_freqs.weight" in tensors else None
        self.inverse = inverse_frequencies(rotated, theta, factors)
        self.embedding = tensors["token_embd.weight"]
        self.output = tensors.get("output.weight", self.embedding)
        self.output_norm = tensors["output_norm.weight"].vector()
        self.layers = [Layer(tensors, i) for i in range(metadata["llama.block_count"])]
        self.position = 0

    def _split(self, row):
        return [row[i:i + self.head_size] for i in range(0, len(row), self.head_size)]

    def _attend(self, layer, h, cos, sin):
        queries = [contract.rotate(q, cos, sin) for q in self._split(layer.q.product(h))]
        keys = [contract.rotate(k, cos, sin) for k in self._split(layer.k.product(h))]
        values = self._split(layer.v.product(h))
        layer.keys.append([contract.kv_round(k, self.kv_type) for k in keys])
        layer.values.append([contract.kv_round(v, self.kv_type) for v in values])
        result = []
        for head, q in enumerate(queries):
            kv = attention.kv_head(head, self.heads, self.kv_heads)
            result += attention.attention(q, [keys[kv] for keys in layer.keys],
                                          [values[kv] for values in layer.values], self.scale)
        return layer.output.product(result)

    def step(self, token):
        """The logits after one more token."""
        cos, sin = rope_row(self.position, self.inverse)
        x = self.embedding.row(token)
        for layer in self.layers:
            h = contract.rms_norm(x, layer.attn_norm, self.eps)
            x = contract.add_rows(x, self._attend(layer, h, cos, sin))
            h = contract.rms_norm(x, layer.ffn_norm, self.eps)
            inner = contract.gate_rows(layer.gate.product(h), layer.up.product(h))
            x = contract.add_rows(x, layer.down.product(inner))
        self.position += 1
        logits = self.output.product(contract.rms_norm(x, self.output_norm, self.eps))
        return contract.finite(logits, "logits")


class Row:
    """What the contract says about one row of logits."""

    def __init__(self, logits):
        self.hash = contract.logits_hash(logits)
        self.token = sampling.choose_largest(logits)
        self.margin = sampling.margin(logits)
        self.log_probability = sampling.log_probability(logits, self.token)
