#!/usr/bin/env python3
"""Tests of scripts/make_synthetic_model.py and scripts/bench_peers.py.

The model's bytes are known: the program makes the same (tests/unit/run/bench_model_test.cpp).
Exit 77, which counts as skipped, where the Python packages gguf and numpy are missing.
"""
import hashlib
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
MODEL_SHA256 = "736f71b6de44492e608c628d0e75b6f023a83010f90c7bae83e60367fbc8be33"
SKIPPED = 77


def demand(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def run(script, *words):
    return subprocess.run([sys.executable, str(SCRIPTS / script), *words], check=False,
                          capture_output=True, text=True)


def load(script):
    spec = importlib.util.spec_from_file_location(script, SCRIPTS / (script + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_peers_table():
    """The best variant of a peer counts, the better peer is compared with, medians are taken."""
    peers = load("bench_peers")
    speeds = {
        ("detrun", ""): {"decode": [30.0, 10.0, 20.0]},
        ("llama.cpp", "flash attention off"): {"decode": [15.0, 16.0, 40.0]},
        ("llama.cpp", "flash attention on"): {"decode": [12.0, 11.0, 13.0]},
        ("ik_llama.cpp", "flash attention off, repacked"): {"decode": [18.0, 25.0, 25.0]},
    }
    row = next(peers.table_rows("1.1b q8_0", speeds))
    demand(row == ("| 1.1b q8_0 | decode 64 | 20.0 | 16.0 | 25.0 | 0.80 |",
                   "1.1b q8_0 decode 64: ik_llama.cpp flash attention off, repacked"),
           f"row of the table, found {row}")


def test_peers_refusals():
    done = run("bench_peers.py", "--python", "/bin/false")
    demand(done.returncode == 1 and "xllamacpp" in done.stderr and "pip install" in done.stderr,
           f"a missing package is named with its remedy, found {done.stderr}")
    done = run("bench_peers.py", "--repeat", "0")
    demand(done.returncode == 1 and "--repeat" in done.stderr, "rounds are at least 1")


def test_model_refusals(folder):
    done = run("make_synthetic_model.py", "--shape", "2b", "--type", "q8_0", "-o", folder + "/m")
    demand(done.returncode == 2 and "135m" in done.stderr, "an unknown shape names the known ones")
    done = run("make_synthetic_model.py", "--shape", "135m", "--type", "q4_0", "-o",
               folder + "/no/such/m")
    demand(done.returncode == 1 and "no/such/m" in done.stderr, "a folder that is missing is named")


def test_model_bytes(folder):
    path = pathlib.Path(folder) / "m.gguf"
    done = run("make_synthetic_model.py", "--shape", "135M", "--type", "Q4_0", "-o", str(path))
    demand(done.returncode == 0, done.stderr)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    demand(found == MODEL_SHA256, f"the bytes of the model, found SHA-256 {found}")
    demand([p.name for p in pathlib.Path(folder).iterdir()] == ["m.gguf"], "nothing else is left")


def main():
    test_peers_table()
    test_peers_refusals()
    if importlib.util.find_spec("gguf") is None or importlib.util.find_spec("numpy") is None:
        print("skipped: make_synthetic_model.py needs the Python packages gguf and numpy")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        test_model_refusals(folder)
        test_model_bytes(folder)


if __name__ == "__main__":
    main()
