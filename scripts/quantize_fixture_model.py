#!/usr/bin/env python3
"""Makes fixtures/models/detrun-decisions-q4_k_m.gguf from the F16 file of the same model.

The mixture that GGUF files call Q4_K_M: Q4_K matrices; Q6_K for the tied embedding and, in the
later half of the layers, for attn_v and ffn_down.  Only numpy and gguf; no part of the engine.
A rerun gives the same bytes.  Pinned: Python 3.11, gguf 0.19.0, numpy 2.4.6.
"""

import argparse
from pathlib import Path

import gguf
import numpy as np

BLOCK = 256
Q4_K, Q6_K = gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q6_K
SET_BY_WRITER = ("general.architecture", "general.file_type")
SIX_BIT_LAYERS = (2, 3)  # of four: more bits where the output is near


def best_scales(x, steps):
    """(scale, minimum) of sub-blocks x (n, 32): least squares over a few trial ranges.

    x is about scale * q - minimum with q in 0 .. steps and minimum >= 0.
    """
    low = np.minimum(x.min(1), 0.0)
    span = x.max(1) - low
    best = (np.full(len(x), np.inf), np.zeros(len(x)), np.zeros(len(x)))
    for trial in np.linspace(0.85, 1.10, 26):
        scale = np.where(span > 0, span * trial / steps, 1.0)
        q = np.clip(np.rint((x - low[:, None]) / scale[:, None]), 0, steps)
        # x = a q + b, both fitted; b must not be positive.
        mean_q, mean_x = q.mean(1), x.mean(1)
        spread = ((q - mean_q[:, None]) ** 2).sum(1)
        a = np.where(spread > 0, ((q - mean_q[:, None]) * x).sum(1) / np.maximum(spread, 1e-30), 0)
        b = mean_x - a * mean_q
        squares = np.maximum((q * q).sum(1), 1e-30)
        a = np.where(b > 0, (q * x).sum(1) / squares, a)
        b = np.minimum(b, 0.0)
        error = ((a[:, None] * q + b[:, None] - x) ** 2).sum(1)
        better = (error < best[0]) & (a >= 0)
        best = tuple(np.where(better, new, old) for new, old in zip((error, a, -b), best))
    return best[1], best[2]


def six_bits(values):
    """(binary16 factor (n,), integers 0 .. 63 (n, 8)) with values (n, 8) about their product."""
    factor = (values.max(1) / 63.0).astype(np.float16)
    wide = factor.astype(np.float64)[:, None]
    return factor, np.clip(np.rint(values / np.where(wide > 0, wide, 1.0)), 0, 63).astype(np.uint8)


def pack_six_bits(scales, minima):
    """Twelve bytes of eight scales and eight minima of six bits each."""
    packed = np.zeros((len(scales), 12), np.uint8)
    packed[:, 0:4] = scales[:, 0:4] | (scales[:, 4:8] >> 4) << 6
    packed[:, 4:8] = minima[:, 0:4] | (minima[:, 4:8] >> 4) << 6
    packed[:, 8:12] = (scales[:, 4:8] & 15) | (minima[:, 4:8] & 15) << 4
    return packed


def quantize_q4_k(x):
    """Blocks (n, 256) to bytes (n, 144)."""
    sub = x.reshape(-1, 32)
    scale, minimum = best_scales(sub, 15)
    d, sc = six_bits(scale.reshape(-1, 8))
    dmin, m = six_bits(minimum.reshape(-1, 8))
    a = (d.astype(np.float64)[:, None] * sc).reshape(-1, 1)
    b = (dmin.astype(np.float64)[:, None] * m).reshape(-1, 1)
    q = np.clip(np.rint((sub + b) / np.where(a > 0, a, 1.0)), 0, 15).astype(np.uint8)
    q = q.reshape(-1, 4, 2, 32)
    nibbles = (q[:, :, 0] | q[:, :, 1] << 4).reshape(-1, 128)
    halves = np.stack([d, dmin], 1).view(np.uint8)
    return np.concatenate([halves, pack_six_bits(sc, m), nibbles], 1)


def quantize_q6_k(x):
    """Blocks (n, 256) to bytes (n, 210)."""
    sub = x.reshape(-1, 16)
    extreme = sub[np.arange(len(sub)), np.abs(sub).argmax(1)]
    scale = (extreme / -32.0).reshape(-1, 16)
    largest = scale[np.arange(len(scale)), np.abs(scale).argmax(1)]
    d = (largest / -128.0).astype(np.float16)
    wide = d.astype(np.float64)[:, None]
    sc = np.clip(np.rint(scale / np.where(wide != 0, wide, 1.0)), -128, 127)
    step = (wide * sc).reshape(-1, 1)
    q = np.clip(np.rint(sub / np.where(step != 0, step, 1.0)), -32, 31).astype(np.int64) + 32
    q = q.astype(np.uint8).reshape(-1, 2, 4, 32)  # block, n, j, l
    low = np.concatenate([(q[:, :, j] & 15) | (q[:, :, j + 2] & 15) << 4 for j in (0, 1)], 2)
    high = sum((q[:, :, j] >> 4) << 2 * j for j in range(4)).astype(np.uint8)
    return np.concatenate([low.reshape(-1, 128), high.reshape(-1, 64),
                           sc.astype(np.int8).view(np.uint8), d[:, None].view(np.uint8)], 1)


def type_of(name):
    """The tensor type of a matrix in the mixture."""
    if name == "token_embd.weight":
        return Q6_K
    layer, part = int(name.split(".")[1]), name.split(".")[2]
    return Q6_K if layer in SIX_BIT_LAYERS and part in ("attn_v", "ffn_down") else Q4_K


def write_model(source, target):
    """Copies metadata and norms, quantizes matrices; prints the error of each type."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in SET_BY_WRITER:
            continue
        sub_type = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=sub_type)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_K_M)
    errors = {}
    for tensor in reader.tensors:
        if tensor.tensor_type == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, tensor.data)
            continue
        kind = type_of(tensor.name)
        wide = tensor.data.astype(np.float64).reshape(-1, BLOCK)
        packed = (quantize_q6_k if kind == Q6_K else quantize_q4_k)(wide)
        back = gguf.quants.dequantize(packed, kind).astype(np.float64)
        part = errors.setdefault(kind.name, [0.0, 0.0])
        part[0] += ((back - wide) ** 2).sum()
        part[1] += (wide ** 2).sum()
        writer.add_tensor(tensor.name, packed.reshape(tensor.data.shape[0], -1), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    for name, (error, size) in sorted(errors.items()):
        print(f"{name}: relative rms error {np.sqrt(error / size):.4f}")


def main():
    """The command line: SOURCE TARGET."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    write_model(arguments.source, arguments.target)


if __name__ == "__main__":
    main()
