#!/usr/bin/env python3
"""Both verifiers say the same of damaged and forged ledgers: exit status, findings, not_checked.

    verifiers_agree_test.py DETRUN MODEL VERIFY_LEDGER

They share nothing but the manual page, so a difference is a fault of one of them or of the page.
The damage comes from a fixed seed. Standard library only.
"""
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

DETRUN, MODEL, VERIFY_LEDGER = sys.argv[1:4]
SEED, FLIPS, CUTS = 20261129, 48, 12
BYTES32 = "zeroblob(32)"
NOT_UTF8 = "CAST(x'ff41' AS TEXT)"
WHERE_LEAF = "WHERE run = 1 AND name = 'status'"

# Scripts of a forger, the triggers are gone by then, with what is expected of both: exit status,
# entry, field. Two words are not SQL: LOOSE (a table takes any type), STALE (an index lies).
FORGERIES = {
    # Names are compared with their types: triggers have names of their own.
    "CREATE TRIGGER step AFTER INSERT ON log BEGIN SELECT 1; END": (0, None, None),
    "CREATE TRIGGER runs AFTER INSERT ON log BEGIN SELECT 1; END": (0, None, None),
    "DROP VIEW runs; CREATE TABLE runs (a)": (0, None, None),
    "DROP VIEW runs; CREATE VIEW runs AS SELECT 1": (0, None, None),
    "DROP INDEX log_seal; CREATE TABLE log_seal (a UNIQUE)": (0, None, None),
    "CREATE TABLE own (a UNIQUE, b); CREATE INDEX own_b ON own (b)": (0, None, None),
    "ALTER TABLE block RENAME TO block2; CREATE VIEW block AS SELECT * FROM block2":
        (4, None, "schema"),
    "CREATE TABLE own (a); ALTER TABLE run ADD COLUMN note TEXT": (4, None, "schema"),
    # An index that lies is not asked; that it lies is found.
    "CREATE INDEX zc ON field (run, name, value); STALE zc": (4, None, "database"),
    "CREATE INDEX zc ON leaf (run, name, hash); STALE zc": (4, None, "database"),
    "CREATE INDEX zc ON run (number, id); STALE zc": (4, None, "database"),
    "CREATE INDEX zc ON log (idx, kind, run, version, body); STALE zc": (4, None, "database"),
    "CREATE INDEX zc ON field (run, name, value)": (0, None, None),
    "CREATE TABLE wide (" + ", ".join(f"c{i}" for i in range(80)) + ")": (4, None, "database"),
    # Rows under numbers no run has.
    "INSERT INTO run VALUES (0, 'zero')": (4, 0, "number"),
    "INSERT INTO run VALUES (-1, 'minus')": (4, -1, "number"),
    "INSERT INTO run VALUES (2147483648, 'large')": (4, 2147483648, "number"),
    f"INSERT INTO run VALUES (9, {NOT_UTF8})": (4, 9, "run_secret"),
    "INSERT INTO run_secret VALUES (9, zeroblob(32))": (4, 9, "number"),
    f"UPDATE run SET id = {NOT_UTF8} WHERE number = 1": (4, 1, "id"),
    # Names and values.
    "INSERT INTO field VALUES (1, '', 1)": (4, 1, "field"),
    f"INSERT INTO leaf VALUES (1, '', {BYTES32})": (4, 1, "field"),
    f"INSERT INTO field VALUES (1, {NOT_UTF8}, 1)": (4, 1, "\\xffA"),
    f"UPDATE field SET value = 1.5 {WHERE_LEAF}": (4, 1, "status"),
    "UPDATE step SET token = 1 << 40 WHERE key = 1 << 32": (4, 1, "steps[0..63]"),
    f"INSERT INTO block VALUES (1, -1, {BYTES32})": (4, 1, "block"),
    f"INSERT INTO block VALUES (1, 1 << 40, {BYTES32})": (4, 1, "block"),
    "UPDATE ledger SET one = 2": (4, None, "ledger.one"),
    "INSERT INTO ledger VALUES (0, 'x', 'y')": (4, 1, "ledger.created_at"),
    "INSERT INTO ledger VALUES (2, 'x', 'y')": (4, None, "ledger.one"),
    "DELETE FROM ledger": (4, 1, "ledger.created_at"),
    # Types that no table takes, as damage can make them.
    "LOOSE field; INSERT INTO field VALUES ('x', 'a', 1)": (4, None, "database"),
    "LOOSE field; INSERT INTO field VALUES (2.5, 'a', 1)": (4, None, "database"),
    "LOOSE field; INSERT INTO field VALUES (1, x'00', 1)": (4, 1, "field"),
    f"LOOSE leaf; INSERT INTO leaf VALUES (1, x'00', {BYTES32})": (4, 1, "field"),
    f"LOOSE block; INSERT INTO block VALUES (1, 'x', {BYTES32})": (4, 1, "block"),
    "LOOSE log; UPDATE log SET run = 'x' WHERE idx = 1": (4, 2, "seal"),
    "LOOSE log; UPDATE log SET kind = CAST(kind AS BLOB) WHERE idx = 1": (4, 2, "seal"),
    "LOOSE run; UPDATE run SET id = CAST(id AS BLOB) WHERE number = 1": (4, 1, "id"),
    "LOOSE run_secret; UPDATE run_secret SET secret = hex(secret)": (4, 1, "run_secret"),
    "LOOSE ledger; UPDATE ledger SET id = 1.5": (4, 1, "ledger.id"),
    "LOOSE step; UPDATE step SET token = 'x' WHERE key = (2 << 32) + 64": (4, 2, "steps[64..127]"),
    # The log.
    "DROP INDEX log_seal; INSERT INTO log SELECT 3, kind, run, version, body FROM log "
    "WHERE idx = 0": (4, 1, "seal"),
    f"INSERT INTO log VALUES (3, 'seal', NULL, 1, {BYTES32})": (4, None, "log[3]"),
    "INSERT INTO log VALUES (3, 'verdict', 1, 1, x'00'), (5, 'key', 1, 1, x'')":
        (4, None, "log[4]"),
    "INSERT INTO log VALUES (3, 'verdict', 1, 1, x'00')": (0, None, None),
    "DELETE FROM log WHERE idx = 2; UPDATE run_secret SET secret = x'00'": (4, 1, "run_secret"),
    # The header.
    "PRAGMA user_version = 0": (4, None, "database"),
    "PRAGMA user_version = 2": (2, None, None),
    "PRAGMA application_id = 7": (2, None, None),
}


class VerifiersAgree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="detrun-agree.")
        cls.original = os.path.join(cls.folder.name, "original.db")
        cls.path = os.path.join(cls.folder.name, "case.db")
        for prompt in ("Claim.", "", "x"):
            subprocess.run([DETRUN, "record", "-m", MODEL, "-p", prompt, "-n", "66", "-q",
                            "--ledger", cls.original], check=True, stdout=subprocess.DEVNULL)
        with open(cls.original, "rb") as file:
            cls.bytes = file.read()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def forge(self, script):
        """A copy without triggers on which the statements ran; STALE empties an index."""
        shutil.copyfile(self.original, self.path)
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("PRAGMA ignore_check_constraints = ON")
        for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'"
                                  ).fetchall():
            db.execute(f"DROP TRIGGER {name}")
        strict = []
        for statement in self.statements(script):
            word, *names = statement.split()
            if word == "STALE":
                self.make_stale(db, *names)
            elif word == "LOOSE":
                strict.append(self.make_loose(db, *names))
            else:
                db.execute(statement)
        for name, sql in strict:
            self.define(db, name, sql)
        db.close()

    @staticmethod
    def statements(script):
        """The statements of a script; a trigger holds a semicolon of its own."""
        statement = ""
        for piece in script.split("; "):
            statement += ("; " if statement else "") + piece
            if sqlite3.complete_statement(statement + ";"):
                yield statement
                statement = ""

    @staticmethod
    def define(db, name, sql):
        """Another definition of an object, its pages left as they are. Returns the former one."""
        (former,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql or former, name))
        db.execute("PRAGMA writable_schema = RESET")
        return former

    def make_stale(self, db, index):
        """The index is filled as if it were of no row of its table."""
        sql = self.define(db, index, None)
        self.define(db, index, sql + " WHERE 0")
        db.execute(f"REINDEX {index}")
        self.define(db, index, sql)

    def make_loose(self, db, table):
        """The table takes a value of any type. Returns its name and definition."""
        sql = self.define(db, table, None)
        loose = sql.replace(") STRICT, WITHOUT", ") WITHOUT").replace(") STRICT", ")")
        self.define(db, table, loose.replace("value ANY", "value"))
        return table, sql

    def agree(self, what):
        """Runs both on the case; their common exit status and report (None when there is none)."""
        first = subprocess.run([DETRUN, "verify", "--json", "--ledger", self.path],
                               capture_output=True, check=False)
        left = [name for name in os.listdir(self.folder.name) if name.startswith("case.db-")]
        second = subprocess.run([sys.executable, VERIFY_LEDGER, "--json", self.path],
                                capture_output=True, check=False)
        said = f"{what}:\n{first.stdout} {first.stderr}\n{second.stdout} {second.stderr}"
        self.assertEqual(first.returncode, second.returncode, said)
        self.assertIn(first.returncode, (0, 2, 4), said)
        left += [name for name in os.listdir(self.folder.name) if name.startswith("case.db-")]
        self.assertEqual(left, [], said)
        if first.returncode == 2:
            return 2, None
        reports = [json.loads(done.stdout) for done in (first, second)]
        for report in reports:
            for finding in report["broken"] + [report["first_broken"] or {}]:
                finding.pop("why", None)  # for people, not part of the format
        self.assertEqual(reports[0], reports[1], said)
        return first.returncode, reports[0]

    def test_untouched(self):
        shutil.copyfile(self.original, self.path)
        status, report = self.agree("untouched")
        self.assertEqual((status, report["checked"]["runs"]), (0, 3))

    def test_forgeries(self):
        for script, (status, entry, field) in FORGERIES.items():
            with self.subTest(script):
                self.forge(script)
                found, report = self.agree(script)
                self.assertEqual(found, status, report)
                if found == 4:
                    self.assertEqual(report["not_checked"][-1], "completeness: self-attested")
                    broken = report["first_broken"]
                    self.assertEqual((broken["entry"], broken["field"]), (entry, field), report)

    def test_what_both_call_unknown(self):
        for script, line in (
                ("CREATE TRIGGER step AFTER INSERT ON log BEGIN SELECT 1; END",
                 "unknown objects: step"),
                ("DROP VIEW runs; CREATE TABLE runs (a UNIQUE)", "unknown objects: runs"),
                ("CREATE TABLE b (a UNIQUE); CREATE TABLE a (a)", "unknown objects: a, b")):
            self.forge(script)
            self.assertIn(line, self.agree(script)[1]["not_checked"])

    def test_seeded_damage(self):
        chosen, tampered = random.Random(SEED), 0
        for case in range(FLIPS + CUTS):
            data = bytearray(self.bytes)
            if case < FLIPS:
                # Single bits, whole bytes, and stretches, which meet the structure of a page.
                at, length = chosen.randrange(len(data)), (1, 1, 4, 64)[case % 4]
                if case % 3 == 0:  # beginnings of pages: their headers
                    at = at // 4096 * 4096 + chosen.randrange(110)
                for i in range(at, min(at + length, len(data))):
                    data[i] ^= 1 << chosen.randrange(8)
                what = f"{length} bytes at {at}"
            else:
                data = data[:chosen.randrange(len(data))]
                what = f"cut to {len(data)}"
            with open(self.path, "wb") as file:
                file.write(data)
            with self.subTest(what):
                tampered += self.agree(what)[0] == 4
        print(f"{FLIPS + CUTS} damaged files, {tampered} TAMPERED", flush=True)
        self.assertGreater(tampered, 20)

    def test_a_damaged_database_of_another_application_is_no_ledger(self):
        if os.path.exists(self.path):
            os.remove(self.path)
        db = sqlite3.connect(self.path)
        db.executescript("PRAGMA application_id = 7; CREATE TABLE t (a);"
                         "INSERT INTO t VALUES (zeroblob(100000));")
        db.close()
        with open(self.path, "rb+") as file:
            file.truncate(20000)
        self.assertEqual(self.agree("another application")[0], 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
