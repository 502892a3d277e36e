#!/usr/bin/env python3
"""How far the program's logits are from a binary64 forward pass of the same model, in numpy.

    accuracy.py DETRUN_GOLDEN MODEL [MODEL ...]

F32 weights and an F32 cache must agree within 1e-5 of the largest logit: what is left is
rounding, nothing else.  Other types are reported: their activations are quantized, which is
part of the contract and costs accuracy.  Bits are not compared here; golden hashes do that.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "reference"))

import gguf_model  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("skipped: accuracy against binary64 needs numpy (scripts/install_packages.sh test)")
    sys.exit(0)

TOLERANCE = 1e-5  # relative to the largest logit; binary32 rounding alone gives about 1e-6
TOKENS, SEED, MASK = 48, 5, (1 << 64) - 1


def tokens_of(vocabulary):
    """The tokens that `TOKENS@SEED` means to detrun_golden."""
    state, tokens = SEED, []
    for _ in range(TOKENS):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        tokens.append((z ^ (z >> 31)) % vocabulary)
    return tokens


def program_logits(program, path, kv, vocabulary):
    """The program's logits (TOKENS, vocabulary)."""
    with tempfile.TemporaryDirectory() as folder:
        listing, output = Path(folder, "list"), Path(folder, "logits")
        listing.write_text(f"{path} {TOKENS}@{SEED} {kv} 0\n", encoding="ascii")
        subprocess.run([program, "--make", listing, "--root", "/", "--logits", output],
                       check=True, stdout=subprocess.DEVNULL)
        return np.fromfile(output, "<f4").reshape(TOKENS, vocabulary).astype(np.float64)


class Double:
    """The forward pass of the architecture llama in binary64, all positions at once."""

    def __init__(self, path):
        self.meta, self.tensors = gguf_model.read_gguf(path)
        self.kinds = {t.kind for t in self.tensors.values()} - {"F32"} or {"F32"}

    def key(self, name, default=None):
        """Metadata of the architecture."""
        return self.meta.get("llama." + name, default)

    def matrix(self, name):
        """A tensor, decoded and widened."""
        tensor = self.tensors[name]
        rows = range(len(tensor.rows))
        return np.array([list(tensor.row(i)) for i in rows], dtype=np.float64)

    def norm(self, x, name):
        """RMSNorm."""
        eps = self.key("attention.layer_norm_rms_epsilon")
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * self.matrix(name)[0]

    def rotate(self, x, angles):
        """RoPE on adjacent pairs of x (positions, heads, size)."""
        n = 2 * angles.shape[1]
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        even, odd = x[..., 0:n:2], x[..., 1:n:2]
        y = x.copy()
        y[..., 0:n:2], y[..., 1:n:2] = even * cos - odd * sin, odd * cos + even * sin
        return y

    def attend(self, h, blk, angles):
        """Attention of every position over itself and those before it."""
        heads = self.key("attention.head_count")
        kv_heads = self.key("attention.head_count_kv", heads)
        q, k, v = (h @ self.matrix(f"{blk}.attn_{c}.weight").T for c in "qkv")
        q = self.rotate(q.reshape(len(h), heads, -1), angles)
        k = self.rotate(k.reshape(len(h), kv_heads, -1), angles).repeat(heads // kv_heads, 1)
        v = v.reshape(len(h), kv_heads, -1).repeat(heads // kv_heads, 1)
        score = np.einsum("phd,jhd->hpj", q, k) / np.sqrt(q.shape[-1])
        score[:, np.triu(np.ones((len(h), len(h)), bool), 1)] = -np.inf
        weight = np.exp(score - score.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        out = np.einsum("hpj,jhd->phd", weight, v).reshape(len(h), -1)
        return out @ self.matrix(f"{blk}.attn_output.weight").T

    def logits(self):
        """(TOKENS, vocabulary)."""
        embedding = self.matrix("token_embd.weight")
        x = embedding[tokens_of(len(embedding))]
        size = self.key("embedding_length") // self.key("attention.head_count")
        n = self.key("rope.dimension_count", size)
        inverse = self.key("rope.freq_base", 10000.0) ** (-np.arange(0, n, 2) / n)
        angles = np.arange(TOKENS)[:, None] * inverse
        for i in range(self.key("block_count")):
            blk = f"blk.{i}"
            x = x + self.attend(self.norm(x, f"{blk}.attn_norm.weight"), blk, angles)
            h = self.norm(x, f"{blk}.ffn_norm.weight")
            gate = h @ self.matrix(f"{blk}.ffn_gate.weight").T
            up = h @ self.matrix(f"{blk}.ffn_up.weight").T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ self.matrix(f"{blk}.ffn_down.weight").T
        head = "output.weight" if "output.weight" in self.tensors else "token_embd.weight"
        return self.norm(x, "output_norm.weight") @ self.matrix(head).T


def report(program, path):
    """Prints a line a cache type. (checked, good): whether a bound applies, and holds."""
    model = Double(path)
    exact, good, bounded = model.logits(), True, False
    for kv in ("f32", "f16"):
        ours = program_logits(program, path, kv, exact.shape[1])
        error = np.abs(ours - exact).max() / np.abs(exact).max()
        rms = np.sqrt(((ours - exact) ** 2).mean() / (exact ** 2).mean())
        same = int((ours.argmax(1) == exact.argmax(1)).sum())
        checked = model.kinds <= {"F32", "F16", "BF16"} and kv == "f32"
        bounded = bounded or checked
        good = good and (not checked or error < TOLERANCE)
        print("%s %s kv %s: relative error max %.1e, rms %.1e; argmax equal %d of %d%s" % (
            Path(path).name, "+".join(sorted(model.kinds)), kv, error, rms, same, TOKENS,
            "" if not checked else "; below 1e-5" if error < TOLERANCE else "; ABOVE 1e-5"))
    return bounded, good


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="+", type=Path)
    arguments = parser.parse_args()
    good, bounded = True, 0
    for path in arguments.models:
        if not path.exists():
            print(f"skipped: {path} is not here")
            continue
        checked, equal = report(arguments.program, path.resolve())
        good, bounded = good and equal, bounded + checked
    if bounded == 0:
        print("no model whose accuracy is bounded was there")
    return 0 if good and bounded else 1


if __name__ == "__main__":
    sys.exit(main())
