#!/usr/bin/env python3
"""Writes a GGUF file of a known shape with pseudo-random weights, for measuring speed.

`make_synthetic_model.py --shape 1.1b --type q8_0 -o synth.gguf` makes, byte for byte, the model
that `detrun bench --shape 1.1b --type q8_0` fills its memory with, so that other programs can be
given the same work. The text such a model generates means nothing. Every value is a function of
the tensor's name and the index alone (splitmix64 over a counter); tensors are written in pieces,
so that little memory is needed. Needs numpy and the package gguf from PyPI.
"""
import argparse
import os
import sys

try:
    import gguf
    import numpy as np
except ImportError as error:
    sys.exit(f"make_synthetic_model.py: error: the Python package {error.name} is missing\n"
             "  install it: python3 -m pip install gguf numpy")

PIECE_BYTES = 16 << 20
QUANT = gguf.GGMLQuantizationType

# n_embd, layers, heads, kv heads, head length, n_ff, vocabulary, separate head, context, RoPE base
SHAPES = {
    "135m": (576, 30, 9, 3, 64, 1536, 49152, False, 2048, 10000.0),
    "1.1b": (2048, 22, 32, 4, 64, 5632, 32000, True, 2048, 10000.0),
    "8b": (4096, 32, 32, 8, 128, 14336, 128256, True, 8192, 500000.0),
}
# name: (number of general.file_type, type of the matrices, of the head, of half the v and down)
MIXTURES = {
    "f32": (0, "F32", "F32", "F32"),
    "f16": (1, "F16", "F16", "F16"),
    "bf16": (32, "BF16", "BF16", "BF16"),
    "q4_0": (2, "Q4_0", "Q6_K", "Q4_0"),
    "q4_1": (3, "Q4_1", "Q6_K", "Q4_1"),
    "q5_0": (8, "Q5_0", "Q6_K", "Q5_0"),
    "q5_1": (9, "Q5_1", "Q6_K", "Q5_1"),
    "q8_0": (7, "Q8_0", "Q8_0", "Q8_0"),
    "q4_k_m": (15, "Q4_K", "Q6_K", "Q6_K"),
    "q5_k_m": (17, "Q5_K", "Q6_K", "Q6_K"),
    "q6_k": (18, "Q6_K", "Q6_K", "Q6_K"),
}
# Rows that are no whole number of super-blocks get the type that llama.cpp gives them.
FALLBACK = {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}

# Float types: numpy type, bits of the mantissa, exponent of the largest values (about 2^-6).
FLOATS = {"F32": (np.uint32, 23, 121), "F16": (np.uint16, 10, 9), "BF16": (np.uint16, 7, 121)}
# Block types: where the scale lies, its fixed and its random bits; where a minimum lies, its fixed
# bits and by how much the scale's random bits are shifted for it. The rest of a block is random.
BLOCKS = {
    "Q4_0": (0, 6 << 10, 1023, None, 0, 0),
    "Q4_1": (0, 6 << 10, 1023, 2, 0x8000 | 9 << 10, 0),
    "Q5_0": (0, 5 << 10, 1023, None, 0, 0),
    "Q5_1": (0, 5 << 10, 1023, 2, 0x8000 | 9 << 10, 0),
    "Q8_0": (0, 2 << 10, 1023, None, 0, 0),
    "Q4_K": (0, 512, 511, 2, 3 << 10, 1),
    "Q5_K": (0, 256, 255, 2, 3 << 10, 2),
    "Q6_K": (208, 64, 63, None, 0, 0),
}


def mix(x):
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014), elementwise."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def key_of(name):
    """FNV-1a, 64 bits, of a tensor's name."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = (key ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return np.uint64(key)


def words(name, first, count):
    """Random words `first` to `first + count - 1` of a tensor."""
    counter = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return mix(key_of(name) + counter * np.uint64(0x9E3779B97F4A7C15))


def float_piece(name, type_name, first, count):
    """Elements of a float tensor: random sign and mantissa, one of four exponents."""
    dtype, mantissa_bits, exponent = FLOATS[type_name]
    per_word = 8 // np.dtype(dtype).itemsize
    u = words(name, first // per_word, -(-count // per_word)).view(dtype)[:count]
    if name.endswith("norm.weight"):  # 1 to 2
        return (u & dtype(0x7FFFFF)) | dtype(0x3F800000)
    sign = dtype(1 << (8 * np.dtype(dtype).itemsize - 1))
    mantissa = dtype((1 << mantissa_bits) - 1)
    shift = dtype(mantissa_bits)
    return (u & (sign | mantissa)) | (dtype(exponent) - ((u >> shift) & dtype(3))) << shift


def block_piece(name, type_name, first, count):
    """Blocks of a quantized tensor: random bytes, scales of a sensible size."""
    scale_at, scale_fixed, scale_random, min_at, min_fixed, min_shift = BLOCKS[type_name]
    n_bytes = gguf.GGML_QUANT_SIZES[QUANT[type_name]][1]
    n_words = -(-n_bytes // 8)
    block = words(name, first * n_words, count * n_words).view(np.uint8)
    block = np.ascontiguousarray(block.reshape(count, 8 * n_words)[:, :n_bytes])
    if type_name == "Q8_0":  # quantizers never write -128
        quants = block[:, 2:]
        quants[quants == 0x80] = 0x81
    halves = block.view("<u2")
    random = halves[:, scale_at // 2] & scale_random
    halves[:, scale_at // 2] = random | scale_fixed
    if min_at is not None:
        halves[:, min_at // 2] = (random << min_shift) | min_fixed
    return block


def use_more_bits(layer, n_layers):
    """Layers whose v and down matrices get the better type of a mixture."""
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2


def tensors(shape, mixture):
    """Name, rows, row length and type of every tensor, in the order of the file."""
    n_embd, n_layers, heads, kv_heads, head, n_ff, vocab, separate_head, _, _ = SHAPES[shape]
    _, base, of_head, better = MIXTURES[mixture]

    def matrix(name, rows, length, wanted):
        block = gguf.GGML_QUANT_SIZES[QUANT[wanted]][0]
        return name, rows, length, wanted if length % block == 0 else FALLBACK[wanted]

    yield matrix("token_embd.weight", vocab, n_embd, base if separate_head else of_head)
    for i in range(n_layers):
        more = better if use_more_bits(i, n_layers) else base
        yield f"blk.{i}.attn_norm.weight", 1, n_embd, "F32"
        yield matrix(f"blk.{i}.attn_q.weight", heads * head, n_embd, base)
        yield matrix(f"blk.{i}.attn_k.weight", kv_heads * head, n_embd, base)
        yield matrix(f"blk.{i}.attn_v.weight", kv_heads * head, n_embd, more)
        yield matrix(f"blk.{i}.attn_output.weight", n_embd, heads * head, base)
        yield f"blk.{i}.ffn_norm.weight", 1, n_embd, "F32"
        yield matrix(f"blk.{i}.ffn_gate.weight", n_ff, n_embd, base)
        yield matrix(f"blk.{i}.ffn_up.weight", n_ff, n_embd, base)
        yield matrix(f"blk.{i}.ffn_down.weight", n_embd, n_ff, more)
    yield "output_norm.weight", 1, n_embd, "F32"
    if separate_head:
        yield matrix("output.weight", vocab, n_embd, of_head)


def token_text(index):
    """Control tokens, bytes, the mark of a space, then words a, b ... z, aa ..."""
    if index < 3:
        return ("<unk>", "<s>", "</s>")[index]
    if index < 259:
        return f"<0x{index - 3:02X}>"
    if index == 259:
        return "\u2581"
    n, word = (index - 260) // 2 + 1, ""
    while n > 0:
        n, letter = divmod(n - 1, 26)
        word = chr(ord("a") + letter) + word
    return ("\u2581" if index % 2 else "") + word


def add_metadata(writer, shape, mixture):
    """The keys of the file, in this order."""
    n_embd, n_layers, heads, kv_heads, head, n_ff, vocab, _, context, rope_base = SHAPES[shape]
    writer.add_name(f"synthetic {shape} {mixture}")
    writer.add_file_type(MIXTURES[mixture][0])
    writer.add_context_length(context)
    writer.add_embedding_length(n_embd)
    writer.add_block_count(n_layers)
    writer.add_feed_forward_length(n_ff)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(rope_base)
    writer.add_vocab_size(vocab)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token_text(i) for i in range(vocab)])
    writer.add_token_scores([float(min(258 - i, 0)) for i in range(vocab)])
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (vocab - 259))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)


def tensor_pieces(name, rows, length, type_name):
    """The bytes of a tensor, a piece at a time."""
    block_elems, block_bytes = gguf.GGML_QUANT_SIZES[QUANT[type_name]]
    n_blocks = rows * length // block_elems
    make = float_piece if type_name in FLOATS else block_piece
    step = PIECE_BYTES // block_bytes // 8 * 8
    for first in range(0, n_blocks, step):
        yield make(name, type_name, first, min(step, n_blocks - first)).tobytes()


def write_model(shape, mixture, path):
    """Header, tensor descriptions, data; each tensor is padded to 32 bytes."""
    writer = gguf.GGUFWriter(path, "llama")
    add_metadata(writer, shape, mixture)
    table = list(tensors(shape, mixture))
    for name, rows, length, type_name in table:
        block_elems, block_bytes = gguf.GGML_QUANT_SIZES[QUANT[type_name]]
        shape_of = (length,) if name.endswith("norm.weight") else (rows, length)
        writer.add_tensor_info(name, shape_of, np.dtype(np.int8),
                               rows * length // block_elems * block_bytes, QUANT[type_name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    out = writer.fout[0]
    writer.write_padding(out, out.tell())
    for tensor in table:
        for piece in tensor_pieces(*tensor):
            out.write(piece)
        writer.write_padding(out, out.tell())
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", required=True, type=str.lower, choices=SHAPES)
    parser.add_argument("--type", required=True, type=str.lower, choices=MIXTURES)
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    options = parser.parse_args()
    unfinished = options.output + ".unfinished"  # nobody finds half a model under the name
    try:
        write_model(options.shape, options.type, unfinished)
        os.replace(unfinished, options.output)
    except OSError as error:
        sys.exit(f"make_synthetic_model.py: error: {options.output}: {error.strerror or error}")
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


if __name__ == "__main__":
    main()
