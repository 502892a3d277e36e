"""Recomputes every line of fixtures/golden/operators.txt and compares the hashes.

Exit status 0: all agree.  Shares no code with the program.
"""

import argparse
import collections
import os
import sys
import time

from contract import ContractError
from golden_cases import OPERATORS, Line, result_hash

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures", "golden",
                    "operators.txt")
CASES_AT_LEAST = 100
SHOWN = 40


def difference(text):
    """What is wrong with a line, or None."""
    line = Line(text)
    try:
        ours = result_hash(line)
    except (ContractError, ValueError, KeyError) as error:
        ours = "%s: %s" % (type(error).__name__, error)
    return None if ours == line.hash else "%s\n  reference: %s" % (text, ours)


def main():
    """The command line: the operators to check, all without one."""
    parser = argparse.ArgumentParser(description="compare the reference with golden values")
    parser.add_argument("operators", nargs="*", help="of " + ", ".join(OPERATORS))
    parser.add_argument("--file", default=FILE)
    arguments = parser.parse_args()
    with open(arguments.file, encoding="ascii") as file:
        lines = [text.rstrip("\n") for text in file if not text.startswith("#")]
    wanted = arguments.operators or list(OPERATORS)
    failures, counts, spent = [], collections.Counter(), collections.Counter()
    for text in lines:
        operator = text.split(" ", 1)[0]
        if operator in OPERATORS and operator not in wanted:
            continue
        started = time.monotonic()
        failure = difference(text)
        spent[operator] += time.monotonic() - started
        counts[operator] += 1
        if failure:
            failures.append(failure)
    for failure in failures[:SHOWN]:
        print(failure)
    few = [operator for operator in wanted if counts[operator] < CASES_AT_LEAST]
    for operator in few:
        print("%s: %d cases, expected at least %d" % (operator, counts[operator], CASES_AT_LEAST))
    for operator, count in counts.items():
        print("%-12s %5d cases %6.1f s" % (operator, count, spent[operator]))
    print("%d of %d lines differ" % (len(failures), sum(counts.values())))
    return 1 if failures or few else 0


if __name__ == "__main__":
    sys.exit(main())
