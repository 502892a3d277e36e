"""Tests of the GGUF reader on forged files: every weight type read back, and refusals.

Needs the fixture models for their tokenizer.  Shares no code with the program.
"""

import os
import struct
import tempfile
import unittest

import forge_model
from contract import ContractError
from gguf_model import TENSOR_TYPES, FormatError, Model, read_gguf
from quant_types import QUANT_TYPES

FIXTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures",
                       "models", "detrun-decisions-q8_0.gguf")


def forge(path, *options):
    """A forged file with the tokenizer of the fixture."""
    arguments = forge_model.command_line().parse_args([FIXTURE, path, *options])
    forge_model.forge(FIXTURE, path, arguments)


class ReaderTest(unittest.TestCase):
    """Files that are whole, and files that are not."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "forged.gguf")
        forge(cls.path, "--rotated", "16", "--factors", "--tied")
        with open(cls.path, "rb") as file:
            cls.data = file.read()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def read(self, data):
        """The reader on a changed file."""
        path = os.path.join(self.folder.name, "changed.gguf")
        with open(path, "wb") as file:
            file.write(data)
        return read_gguf(path)

    def test_round_trip(self):
        metadata, tensors = read_gguf(self.path)
        self.assertEqual(metadata["llama.rope.freq_base"], 500000.0)
        self.assertEqual(metadata["tokenizer.ggml.tokens"],
                         read_gguf(FIXTURE)[0]["tokenizer.ggml.tokens"])
        self.assertEqual({tensor.kind for tensor in tensors.values()},
                         {"F32", "F16", "BF16", "Q8_0"})
        group = tensors["token_embd.weight"].rows[1][0]
        self.assertEqual(tensors["token_embd.weight"].row(1)[:32],
                         [group.d * value for value in group.pieces[0]])
        self.assertEqual(tensors["rope_freqs.weight"].vector()[0], 1.0)

    def test_a_step_is_a_function_of_the_tokens(self):
        first, second = Model(self.path), Model(self.path)
        first.step(7)
        self.assertEqual(second.step(7), Model(self.path).step(7))
        self.assertEqual(first.step(9), second.step(9))
        self.assertNotEqual(first.step(9), Model(self.path).step(9))
        self.assertNotEqual(Model(self.path).step(7), Model(self.path).step(9))

    def test_every_integer_type(self):
        path = os.path.join(self.folder.name, "types.gguf")
        forge(path, "--types", ",".join(QUANT_TYPES), "--width", "256", "--inner", "256",
              "--heads", "8", "--kv-heads", "2", "--layers", "1", "--scale", "0.1")
        tensors = read_gguf(path)[1]
        matrices = [tensor for tensor in tensors.values() if len(tensor.rows) > 1]
        kinds = [tensor.kind for tensor in matrices]
        self.assertEqual(kinds, list(QUANT_TYPES)[:len(kinds)])
        for tensor in matrices:
            row = tensor.row(1)
            self.assertEqual(len(row), 256)
            self.assertTrue(any(row))
        Model(path).step(7)

    def test_every_integer_type_as_an_embedding(self):
        for kind in QUANT_TYPES:
            path = os.path.join(self.folder.name, "tied.gguf")
            forge(path, "--types", kind, "--width", "256", "--inner", "64", "--heads", "8",
                  "--layers", "1", "--tied")
            model = Model(path)
            self.assertEqual(model.output.kind, kind)
            self.assertEqual(len(model.step(7)), 1024)

    def test_rows_that_do_not_fit_a_block_stay_float(self):
        path = os.path.join(self.folder.name, "narrow.gguf")
        forge(path, "--types", "Q4_K,Q4_0")
        kinds = {tensor.kind for tensor in read_gguf(path)[1].values()}
        self.assertEqual(kinds, {"F32", "Q4_0"})

    def test_numbers_of_types(self):
        # those of the enumeration ggml_type
        self.assertEqual({number: kind for number, (kind, _, _) in TENSOR_TYPES.items()}, {
            0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K",
            11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 20: "IQ4_NL", 23: "IQ4_XS",
            30: "BF16"})

    def test_positions_are_in_the_keys_and_not_in_the_values(self):
        model = Model(self.path)
        for _ in range(2):
            model.step(7)
        first = model.layers[0]
        self.assertEqual((len(first.keys), len(first.values)), (2, 2))
        self.assertNotEqual(first.keys[0], first.keys[1])
        self.assertEqual(first.values[0], first.values[1])

    def test_cut_files_are_refused(self):
        self.assertEqual(len(self.read(self.data)[1]), len(read_gguf(self.path)[1]))
        for size in (0, 3, 7, 20, 30, 1000, len(self.data) // 2, len(self.data) - 64):
            with self.assertRaises(FormatError):
                self.read(self.data[:size])

    def test_other_versions_and_marks_are_refused(self):
        for start in (b"GGUX" + struct.pack("<I", 3), b"GGUF" + struct.pack("<I", 2)):
            with self.assertRaises(FormatError):
                self.read(start + self.data[8:])

    def test_a_name_twice_is_refused(self):
        twice = self.data.replace(b"blk.0.attn_k.weight", b"blk.0.attn_v.weight", 1)
        self.assertNotEqual(twice, self.data)
        with self.assertRaises(FormatError):
            self.read(twice)

    def test_weights_that_are_not_finite_are_refused(self):
        data = self.data[:-64] + struct.pack("<f", float("nan")) * 16
        with self.assertRaises(ContractError):
            self.read(data)[1]["rope_freqs.weight"].vector()


if __name__ == "__main__":
    unittest.main()
