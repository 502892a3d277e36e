#!/usr/bin/env python3
"""Times the matrix products of the shapes of `detrun bench` in torch, bf16, on a GPU.

Prints a Markdown table: one row of x (decode) and 512 (prefill). Only the products count, nothing
between them, so torch is shown at its best. Needs torch and an NVIDIA GPU.
"""
import time

import torch

# rows and columns of the matrices of a layer, layers, and of the head: src/run/bench_image.cpp
SHAPES = {
    "1.1b": ([(2048, 2048), (256, 2048), (256, 2048), (2048, 2048), (5632, 2048), (5632, 2048),
              (2048, 5632)], 22, (32000, 2048)),
    "8b": ([(4096, 4096), (1024, 4096), (1024, 4096), (4096, 4096), (14336, 4096), (14336, 4096),
            (4096, 14336)], 32, (128256, 4096)),
}
PREFILL_ROWS = 512
REPEATS = 5


def weights(sizes):
    """Random matrices on the GPU."""
    return [torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * 0.02
            for rows, columns in sizes]


def seconds_of(matrices, rows, passes):
    """The median time of `passes` times the products of all matrices with `rows` rows of x."""
    inputs = {m.shape[1]: torch.randn(rows, m.shape[1], device="cuda", dtype=torch.bfloat16)
              for m in matrices}
    times = []
    for _ in range(REPEATS + 1):  # the first is thrown away
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(passes):
            for matrix in matrices:
                torch.nn.functional.linear(inputs[matrix.shape[1]], matrix)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[REPEATS // 2]


def measure(layer, n_layers, head):
    """Tokens a second of decode and of prefill, and bytes and operations of a token."""
    in_layer, in_head = weights(layer), weights([head])
    elements = sum(r * c for r, c in layer) * n_layers + head[0] * head[1]
    decode = seconds_of(in_layer, 1, n_layers) + seconds_of(in_head, 1, 1)
    prefill = seconds_of(in_layer, PREFILL_ROWS, n_layers) + seconds_of(in_head, 1, 1)
    without_head = elements - head[0] * head[1]
    return (1 / decode, 2 * elements / decode / 1e9, PREFILL_ROWS / prefill,
            2 * (PREFILL_ROWS * without_head + head[0] * head[1]) / prefill / 1e12)


def main():
    """Prints the table."""
    print(f"torch {torch.__version__}, bf16, matrix products alone\n")
    print("| shape | decode tokens/s | GB/s | prefill tokens/s | TFLOPS |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, (layer, n_layers, head) in SHAPES.items():
        decode, gigabytes, prefill, tera = measure(layer, n_layers, head)
        print(f"| {name} bf16 | {decode:.1f} | {gigabytes:.1f} | {prefill:.1f} | {tera:.1f} |")


if __name__ == "__main__":
    main()
