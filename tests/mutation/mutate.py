#!/usr/bin/env python3
"""Breaks the arithmetic on purpose, one small change at a time, and wants a named test to fail.

    mutate.py [--build DIR] [--only NAME] [--list | --check]

Every change of mutations.json is applied to a copy of the source tree, what it needs is built
there, and its test is run: it must fail, and where the change names a text, the output must hold
it.  A change that no test notices is an error, and so is one whose text is not in the file exactly
once (with `every`: at least once).  --check looks only for the texts, in a second.  Exit 0: every
change was caught.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LEAST = 25


def copy_tree(target):
    """Copies what git knows or would add; leaves equal files alone, so that builds stay valid."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT,
                            check=True, capture_output=True).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for old in list(target.rglob("*")):
        if old.is_file() and str(old.relative_to(target)) not in wanted:
            old.unlink()
    for name in wanted:
        source, copy = ROOT / name, target / name
        if copy.exists() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)


def run(command, **options):
    """The finished process, output as text."""
    return subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


def build(tree, target):
    """Builds one target; the error as text, or None."""
    result = run(["cmake", "--build", str(tree), "--target", target, "--parallel",
                  str(os.cpu_count() or 1)])
    return None if result.returncode == 0 else result.stdout[-2000:]


def misplaced(change, source):
    """What is wrong with the place of a change, or None."""
    path = source / change["file"]
    if not path.is_file():
        return "there is no " + change["file"]
    count = path.read_text(encoding="utf-8").count(change["old"])
    if count == 0 or (count > 1 and not change.get("every")):
        return "the text to change is %d times in %s" % (count, change["file"])
    return None


def check_places(changes):
    """Prints every change that no longer fits the source; the exit status."""
    wrong = [(change["name"], misplaced(change, ROOT)) for change in changes]
    wrong = [(name, why) for name, why in wrong if why is not None]
    for name, why in wrong:
        print("%s: %s" % (name, why))
    print("%d of %d changes fit the source" % (len(changes) - len(wrong), len(changes)))
    return 1 if wrong else 0


def verdict_of(change, source, tree):
    """'caught', or what is wrong."""
    why = misplaced(change, source)
    if why is not None:
        return why
    path = source / change["file"]
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(change["old"], change["new"]), encoding="utf-8")
    try:
        error = build(tree, change["target"])
        if error is not None:
            return "does not build:\n" + error
        result = run(["ctest", "--test-dir", str(tree), "--output-on-failure", "--timeout", "120",
                      "-R", "^%s$" % change["test"]])
        if "No tests were found" in result.stdout:
            return "there is no test " + change["test"]
        if result.returncode == 0:
            return "NOT CAUGHT by " + change["test"]
        if "***Timeout" in result.stdout or "***Exception" in result.stdout:
            return "the test crashed or hung instead of failing"
        if change["says"] not in result.stdout:
            return "the test failed without saying: " + change["says"]
        return "caught"
    finally:
        path.write_text(text, encoding="utf-8")


def sound(changes, tree):
    """Whether every test passes while nothing is broken."""
    for target in sorted({change["target"] for change in changes}):
        error = build(tree, target)
        if error is not None:
            print("the unchanged tree does not build %s:\n%s" % (target, error))
            return False
    tests = "|".join(sorted({change["test"] for change in changes}))
    result = run(["ctest", "--test-dir", str(tree), "--output-on-failure", "-R", "^(%s)$" % tests])
    if result.returncode != 0:
        print("the tests fail before anything is broken:\n" + result.stdout[-3000:])
    return result.returncode == 0


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--only", help="run the change of this name")
    parser.add_argument("--list", action="store_true", help="print the changes and stop")
    parser.add_argument("--check", action="store_true", help="look for their texts and stop")
    arguments = parser.parse_args()
    changes = json.loads((Path(__file__).parent / "mutations.json").read_text(encoding="utf-8"))
    if len(changes) < LEAST:
        print("%d changes, at least %d are wanted" % (len(changes), LEAST))
        return 1
    if arguments.only:
        changes = [change for change in changes if change["name"] == arguments.only]
    if arguments.list or not changes:
        print("\n".join("%s: %s" % (change["name"], change["test"]) for change in changes))
        return 0 if changes else 1
    if arguments.check:
        return check_places(changes)
    source, tree = arguments.build / "source", arguments.build / "tree"
    source.mkdir(parents=True, exist_ok=True)
    copy_tree(source)
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    result = run(["cmake", "-S", str(source), "-B", str(tree), "-G", "Ninja", "-DDETRUN_CUDA=OFF",
                  *launcher])
    if result.returncode != 0:
        print(result.stdout[-2000:])
        return 1
    if not sound(changes, tree):
        return 1
    missed = 0
    for change in changes:
        started = time.monotonic()
        verdict = verdict_of(change, source, tree)
        missed += verdict != "caught"
        print("%-34s %-18s %s (%.0f s)" % (change["name"], change["test"], verdict,
                                           time.monotonic() - started), flush=True)
    print("%d of %d changes caught" % (len(changes) - missed, len(changes)))
    return 0 if missed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
