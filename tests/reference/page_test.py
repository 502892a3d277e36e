"""The constants of the reference are those of the manual page, digit by digit.

A wrong digit in a small coefficient moves no result far enough for a test of accuracy.
Shares no code with the program.
"""

import os
import re
import unittest

import quant_types

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "man", "detrun-numerics.7")
DECIMAL = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{8}\b")


def read(path):
    """A text file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def section(title, following):
    """The text of the page from a heading to the next."""
    page = read(PAGE).replace("\\-", "-")
    start = page.index(".Ss " + title)
    return page[start:page.index(following, start)]


def source(name):
    """The text of a module of the reference."""
    return read(os.path.join(HERE, name + ".py"))


class ConstantsTest(unittest.TestCase):
    """What is written on both sides."""

    def test_elementwise_functions(self):
        page = DECIMAL.findall(section("4. Elementwise", ".Ss 5."))
        ours = DECIMAL.findall(source("functions32"))
        self.assertEqual(set(ours), set(page))
        # in the order of the page, so that no two are exchanged
        self.assertEqual(ours, page)

    def test_functions_in_binary64(self):
        text = section("8. Rotary", ".Ss 9.") + section("Functions in binary64", ".Sh FORWARD")
        self.assertEqual(set(DECIMAL.findall(source("functions64"))), set(DECIMAL.findall(text)))

    def test_quantization(self):
        text = section("2. Quantization", ".Ss 3.")
        ours = {number.lower() for number in HEXADECIMAL.findall(source("contract"))}
        self.assertEqual(ours, set(HEXADECIMAL.findall(text)))

    def test_philox(self):
        text = section("12. Choice", ".Ss 13.")
        ours = {number.lower() for number in HEXADECIMAL.findall(source("sampling"))}
        self.assertEqual(ours - {"0xffffffff"}, set(HEXADECIMAL.findall(text)))

    def test_table_of_iq4(self):
        text = section("Block layouts", ".Ss 4.")
        table = re.search(r"V = ((?:-?\d+,\s+)+-?\d+)", text).group(1)
        self.assertEqual(tuple(map(int, table.split(","))), quant_types.IQ4_VALUES)

    def test_sizes_of_blocks(self):
        text = section("Block layouts", ".Ss 4.")
        sizes = {kind: int(size) for kind, size in
                 re.findall(r"^(\w+) +(\d+) bytes:", text, re.MULTILINE)}
        self.assertEqual(sizes, {kind: quant.size
                                 for kind, quant in quant_types.QUANT_TYPES.items()})


if __name__ == "__main__":
    unittest.main()
