#!/usr/bin/env python3
"""Every column of every table changed once: both verifiers say TAMPERED and name run and field.

    tamper_test.py DETRUN MODEL VERIFY_LEDGER

The columns come from the schema of a real ledger, so a new column is attacked without a word here.
The triggers are dropped first, as a forger would. Standard library only.
"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

DETRUN, MODEL, VERIFY_LEDGER = sys.argv[1:4]
PROMPTS = ["Insurance claim.", "", b"\xff\xfe not UTF-8"]


def changed(value):
    """Another value of the same type."""
    if value is None:
        return 1
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if not value:
        return b"x"
    return bytes([value[0] ^ 1]) + value[1:]


class Tamper(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="detrun-tamper.")
        cls.original = os.path.join(cls.folder.name, "original.db")
        for prompt in PROMPTS:
            subprocess.run([DETRUN, "record", "-m", MODEL, "-p", prompt, "-n", "70", "-q", "--tag",
                            "case=17", "--ledger", cls.original],
                           check=True, stdout=subprocess.DEVNULL)
        cls.tables = cls.read_tables()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def read_tables(cls):
        """Columns that are stored, by table."""
        with sqlite3.connect(cls.original) as db:
            names = [row[0] for row in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
            return {name: [row[1] for row in db.execute(f"PRAGMA table_xinfo({name})")
                           if row[6] == 0] for name in names}

    def forge(self, *statements):
        """A copy without guards on which the statements ran. Returns its path."""
        path = os.path.join(self.folder.name, "forged.db")
        shutil.copyfile(self.original, path)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA ignore_check_constraints = ON")
        guards = db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in guards:
            db.execute(f"DROP TRIGGER {name}")
        for sql, values in statements:
            self.assertEqual(db.execute(sql, values).rowcount, 1, sql)
        db.close()
        return path

    def expect_tampered(self, path, what, run=None, field=None):
        first = subprocess.run([DETRUN, "verify", "--json", "--ledger", path],
                               capture_output=True, check=False)
        self.assertEqual(first.returncode, 4, f"{what}: {first.stdout} {first.stderr}")
        report = json.loads(first.stdout)
        self.assertEqual(report["verdict"], "TAMPERED", what)
        broken = report["first_broken"]
        self.assertTrue(broken["field"] and broken["why"], what)
        if run is not None:
            self.assertEqual(broken["entry"], run, what)
        if field is not None:
            self.assertEqual(broken["field"], field, what)
        second = subprocess.run([sys.executable, VERIFY_LEDGER, path], capture_output=True,
                                check=False, text=True)
        self.assertEqual(second.returncode, 4, f"{what}: {second.stdout} {second.stderr}")
        self.assertIn("TAMPERED", second.stdout, what)
        self.assertIn(broken["field"], second.stdout, what)
        if broken["entry"] is not None:
            self.assertIn(f"run {broken['entry']}", second.stdout, what)
        return broken

    def test_the_untouched_ledger_verifies_and_dropped_guards_alone_are_no_forgery(self):
        for path in (self.original, self.forge()):
            for command in ([DETRUN, "verify", "--ledger"], [sys.executable, VERIFY_LEDGER]):
                done = subprocess.run([*command, path], capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, f"{command}: {done.stdout} {done.stderr}")

    def test_every_column_of_every_table(self):
        count = 0
        for table, columns in self.tables.items():
            for column in columns:
                with sqlite3.connect(self.original) as db:
                    keys = self.primary_key(db, table)
                    row = db.execute(f"SELECT {', '.join([column, *keys])} FROM {table} "
                                     "ORDER BY 1 DESC LIMIT 1").fetchone()
                where = " AND ".join(f"{key} IS ?" for key in keys)
                path = self.forge((f"UPDATE {table} SET {column} = ? WHERE {where}",
                                   [changed(row[0]), *row[1:]]))
                broken = self.expect_tampered(path, f"{table}.{column}")
                self.assertTrue(broken["entry"] is not None or table == "ledger",
                                f"{table}.{column}: {broken}")
                count += 1
        print(f"{count} columns of {len(self.tables)} tables", flush=True)
        self.assertGreaterEqual(count, 25)

    @staticmethod
    def primary_key(db, table):
        columns = [(row[5], row[1]) for row in db.execute(f"PRAGMA table_xinfo({table})")]
        return [name for rank, name in sorted(columns) if rank > 0]

    def test_every_field_of_a_run_is_named(self):
        with sqlite3.connect(self.original) as db:
            rows = db.execute("SELECT name, value FROM field WHERE run = 2").fetchall()
        for name, value in rows:
            path = self.forge(("UPDATE field SET value = ? WHERE run = 2 AND name = ?",
                               [changed(value), name]))
            self.expect_tampered(path, name, run=2, field=name)
            path = self.forge(("DELETE FROM field WHERE run = 2 AND name = ?", [name]))
            self.expect_tampered(path, f"{name} deleted", run=2, field=name)
        self.assertGreater(len(rows), 30)

    def test_a_type_changed_is_a_value_changed(self):
        for kind, name in (("TEXT", "params.ctx"), ("BLOB", "params.kv")):
            path = self.forge((f"UPDATE field SET value = CAST(value AS {kind}) "
                               "WHERE run = 1 AND name = ?", [name]))
            self.expect_tampered(path, f"{name} as {kind}", run=1, field=name)

    def test_a_step_is_narrowed_to_its_block(self):
        with sqlite3.connect(self.original) as db:
            (last,) = db.execute("SELECT max(key & 4294967295) FROM step "
                                 "WHERE key >> 32 = 2").fetchone()
        self.assertGreaterEqual(last, 64, "the run is too short to have two blocks")
        for step in (0, 1, 63, 64, last):
            block = step // 64
            name = f"steps[{block * 64}..{block * 64 + 63}]"
            for column, value in (("token", 1), ("margin", 1), ("logprob", 1),
                                  ("logits", bytes(16))):
                path = self.forge((f"UPDATE step SET {column} = ? WHERE key = ?",
                                   [value, 2 << 32 | step]))
                self.expect_tampered(path, f"step {step} {column}", run=2, field=name)
            path = self.forge(("DELETE FROM step WHERE key = ?", [2 << 32 | step]))
            self.expect_tampered(path, f"step {step} deleted", run=2)

    def test_what_is_added_is_seen(self):
        additions = [
            ("INSERT INTO field (run, name, value) VALUES (1, 'approved', 1)", []),
            ("INSERT INTO field (run, name, value) VALUES (9, 'approved', 1)", []),
            ("INSERT INTO leaf (run, name, hash) VALUES (1, 'approved', zeroblob(32))", []),
            ("INSERT INTO block (run, idx, root) VALUES (1, 40, zeroblob(32))", []),
            ("INSERT INTO run_secret (run, secret) VALUES (9, zeroblob(32))", []),
            (f"INSERT INTO step VALUES ({1 << 32 | 500}, 1, zeroblob(16), 0, 0, x'')", []),
        ]
        for addition in additions:
            self.expect_tampered(self.forge(addition), addition[0])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
