#!/usr/bin/env python3
"""Verifies a detrun ledger: a second opinion that shares no code with the program.

Written from the manual page detrun-ledger(5) alone, with the standard library of Python only.
It makes every check of the page in the page's order, and exits as the page says.
"""
import argparse
import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import sqlite3
import struct
import sys
import urllib.parse

OK, USAGE, TAMPERED, INTERNAL = 0, 2, 4, 5
APPLICATION_ID, SCHEMA_VERSION, BLOCK_STEPS, LOW_BITS = 0x4454524E, 1, 64, 0xFFFFFFFF
ALWAYS = {b"id", b"ledger.created_at", b"ledger.id", b"number", b"seal_version"}
OF_THE_SEAL = {b"log_index", b"step_count"}
WITHOUT_ROW = {b"text", b"run_secret"}
LATER_KINDS = {b"verdict", b"redaction", b"key", b"import"}
BAD_NAME, BAD_IDX, NO_ROW = b"", -1, object()  # for what is of no type or twice there; is absent
NO_PART_OF_THE_LIST = {("table", b"sqlite_stat1"), ("table", b"sqlite_stat4")}
TWO, BY_IDX = "ORDER BY one LIMIT 2", "ORDER BY idx"  # of table ledger; of log
LIMITS = {0: 268439552, 1: 100000, 2: 64, 3: 64, 4: 16, 5: 250000, 6: 8}  # by number of SQLite
# ERROR, CORRUPT, SCHEMA, TOOBIG, MISMATCH, FORMAT, NOTADB; IOERR_SHORT_READ: our SQL is right.
DAMAGE = {1, 11, 17, 18, 20, 24, 26, 522}
CANNOT_OPEN = {3, 8, 14, 23}  # PERM, READONLY, CANTOPEN, AUTH
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the latter: a message that quotes the file
DEFINITIONS = """
table block cfa2044ff553a5a8d109c7ef5e8ac9a97bb597734a76245b45b56a5cbd4546b6
trigger block_delete e9c094e2fd1f6c850a1b103016131cfa3d47d1bd33ac5decabe8de9f72142826
trigger block_insert 9c5773d293ca6ec805ab1b3003f4a4a711e670f92fe0cba77f7ba28234f0ad1e
trigger block_update 2ac8507c424a5af71b5d18afea371746b9cf908bb71f098220cc471dff659791
table field cda0cd1333f8e3f201fc5d139b070cced2289a5580639d6c813bcd321248cfb7
trigger field_delete 35e83000805763af227fb162cddd85b4fc982aa9f70fb92692178fbcc49e5017
trigger field_insert 8c6cfac0d3ce73a3b05737a034b0a706af8b80efb21f527886bfa0e90e8c9bba
trigger field_update 0b23ae32d8592176952a1c5af165f64a33d04c98ae912fef1519b46688913b09
table leaf 81c90d4384288c53939dd7f080112d4f769267e4c64262d8067821e9a36a0372
trigger leaf_delete f2b930f24722ef0f9326816f9854c45ded3fd513527e9bd1e4bfd38f2e55bd03
trigger leaf_insert a8eb9d47703414f69109f604c4cee75ae9fa6b3c0ff28f6b73bdc792a80103f9
trigger leaf_update 6069062544c0d58e0792148512df06349c24586222d609db6ca163908e9910ce
table ledger 892e5bb80693b07fb654cd4cc4503a8f611f8ca6d77ebfa9fd6552675645199b
trigger ledger_delete 110589303858c882cb8e34d4657f1803638528c0b903db5d3d09f39b07a9bc75
trigger ledger_insert ed8d858b30964d02b1ce9bdb2680bd96f343b2490f027055db46f294617bcacf
trigger ledger_update 260f0cbd776ad69e318e970ea8301b1dabecc90be8585372bfd953a7905eb8ee
table log dffafcb34f3dc3532ca3a0adc7bc37e633e2b5ee614298429fb312baffb5cf30
trigger log_delete 54cd737b6846e709a5176ede77a22bd5528c4d5a34d0cee573e90e7b724b91b4
trigger log_insert 80596e0ff2ae9d2e9a0edad0b24171a5cbe54f0d69986ef0230c2f7b714b57b3
index log_seal d4db3754c86be0986cab73e6feb781e7be0401d7883e78cf8891a4bc5d04a261
trigger log_update 51ed0ef485059136ca5547502fda7272618a3c32f7a025acb24aaf654ff3e46c
table run 5db14d54485c01b3804522b43e3c5eef90226dcc3d03179ecb4e7b7633ead89d
trigger run_delete a88805ecdca61528021fd7491e34e871d956b2f7724d8655cf99d48efaa5e459
trigger run_insert e2103ead80034a48bb3b5bf525683f32fd94cd33e85e78d7bf1cb40143dd6c0c
table run_secret b502cc61b8cd48d61a3792df9f18be634c336d99540d30349119d5be45a2384e
trigger run_secret_delete e6a2f89be13e26389e8c1e385e2b4058d7fe8c9cbf3d189c5af1422f6c6f8fb0
trigger run_secret_insert 9eda5adf543b2503b8ce9a8ee4884f695b292ca37f09e7f08f993ac60c22c6f2
trigger run_secret_update 49d9bf0cd5c5c88754ebebb2b11919223bce7bc876168c2071f6b6718ce6c891
trigger run_update 0a97cca419445414da316d69a9a41eb7e4a1c66a51c6bfc4f1d4e044664283ed
view runs 628b1d6e0258455842f06f50273223a7002c163ab24a6a5bdac48c34b3e67be0
table step b0439abc8eda2f1638d15b6641733c107265bf3ea4c28a2f86b7f3418a11d16f
trigger step_delete 7de9f4b1070c22f4544dd91475da857034048bfe810b557a22283d72a9e074fe
trigger step_insert 69b628e5dac36bea090dd82f652ae584f87fe7485e53df28c06100f285db8be4
trigger step_update 601ef93bc3eb110ee47bc19adc62c6b8ab7835bdd33fd4014893281dddd8a955
view steps 61edad0e5117c6f4b17936033fc0664446ef5f14a3766c5ab36e8fd526b5e137
"""


class Text(bytes):
    """The bytes of a TEXT value, which need not be UTF-8; a BLOB is plain bytes."""


class Broken(Exception):
    """Something does not hold: the field, by its name in the page, and why."""


class Verdict(Exception):
    """A verdict before any check could begin: exit status and why."""


def result_code(error):
    """The primary result code of SQLite; of a read past the end of the file the extended one."""
    code = getattr(error, "sqlite_errorcode", 11)
    return code if code == 522 else code & 0xFF


def sha256(data):
    return hashlib.sha256(data).digest()


def part(data):
    return struct.pack("<Q", len(data)) + data


def leaf_hash(domain, secret, name, message, value):
    salt = hmac.new(secret, message, hashlib.sha256).digest()
    return sha256(b"\0" + part(domain) + part(name) + part(salt) + part(value))


def field_leaf(secret, name, value):
    """The type byte is that of the stored value."""
    kind = {type(None): b"\0", int: b"\1", Text: b"\2", bytes: b"\3"}[type(value)]
    data = struct.pack("<q", value) if isinstance(value, int) else value or b""
    return leaf_hash(b"detrun-field/1", secret, name, b"field:" + name, kind + data)


def step_leaf(secret, idx, token, logits, margin, logprob):
    name = b"step:" + struct.pack("<Q", idx)
    value = b"\3" + struct.pack("<i", token) + logits + struct.pack("<ii", margin, logprob)
    return leaf_hash(b"detrun-step/1", secret, name, name, value)


def tree(leaves):
    """The Merkle tree hash of RFC 6962 section 2.1, over hashes of leaves."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"")
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\1" + tree(leaves[:split]) + tree(leaves[split:]))


def printable(text):
    """Nothing in a ledger may steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def as_words(data):
    """Bytes from the ledger as a string; a byte that is no part of UTF-8 becomes \\xNN."""
    return data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else str(data)


def same(left, right):
    """Equal, type included."""
    return type(left) is type(right) and left == right


def block_name(block):
    if not 0 <= block <= LOW_BITS:
        return "block"
    return f"steps[{block * BLOCK_STEPS}..{block * BLOCK_STEPS + BLOCK_STEPS - 1}]"


def is_ours(path):
    """Whether a file that may be damaged begins like a ledger."""
    if not os.path.isfile(path):
        raise Verdict(USAGE, "missing or not a regular file")
    try:
        with open(path, "rb") as file:
            head, size = file.read(100), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise Verdict(USAGE, error.strerror) from error
    ours = head.startswith(b"SQLite format 3\0") and (size < 72 or head[68:72] == b"DTRN")
    if 0 < size < 100:
        raise Verdict(TAMPERED if ours else USAGE, "too short for an SQLite database")
    return ours


def connect(path):
    """A connection that changes nothing. path has no symbolic links."""
    wal = path + "-wal"
    waiting = os.path.exists(wal) and os.path.getsize(wal) > 0
    writable = os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK | os.X_OK)
    uri = "file:" + urllib.parse.quote(os.fsencode(path))
    # A read-only connection would leave an empty -wal behind; the others take theirs away again.
    uri += "?mode=ro" if waiting else "?mode=rw" if writable else "?mode=ro&immutable=1"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)
    db.text_factory = Text
    for limit, value in LIMITS.items():
        db.setlimit(limit, value)
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON",
                   "ignore_check_constraints = ON"):
        db.execute("PRAGMA " + pragma)
    return db


def identify(db, ours):
    """Leaves with a verdict unless this is a ledger of this schema version."""
    try:
        db.execute("BEGIN")
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if application == 0 and version == 0 and not any(db.execute("SELECT 1 FROM sqlite_schema")):
            raise Verdict(USAGE, "the database is empty")
    except SQLITE_ERRORS as error:
        if result_code(error) in CANNOT_OPEN:
            raise Verdict(USAGE, f"{error}; copy it and its -wal to your own folder") from error
        if result_code(error) not in DAMAGE:
            raise
        raise Verdict(TAMPERED if ours else USAGE, str(error)) from error
    if application != APPLICATION_ID:
        raise Verdict(USAGE, f"no ledger: application_id {application & LOW_BITS:#010x}")
    if version != SCHEMA_VERSION:
        raise Verdict(USAGE if version > SCHEMA_VERSION else TAMPERED,
                      f"schema version {version}; the one known here is {SCHEMA_VERSION}")


class Verifier:
    """All checks of one open ledger. The findings gather in its members."""

    def __init__(self):
        self.db, self.path, self.not_checked = None, None, []
        self.checked = {"runs": 0, "steps": 0, "fields": 0}
        self.broken, self.broken_file, self.damage = [], [], []  # of runs; of the file, told last
        self.ledger, self.seals, self.shared_error = (NO_ROW, NO_ROW), {}, None

    def verify(self, db, path):
        self.db, self.path = db, path
        with self.noting():
            self.check_schema()
            try:  # what every run is compared with
                self.ledger = [*self.rows("ledger", "id, created_at", TWO), self.ledger][0]
                for kind, run, *seal in self.rows("log", "kind, run, idx, version, body", BY_IDX):
                    if same(kind, Text(b"seal")) and isinstance(run, int):
                        self.seals.setdefault(run, []).append(seal)
            except SQLITE_ERRORS as error:
                self.shared_error = error  # of every run
            for number in self.run_numbers():
                with self.noting(number) as finding:
                    self.check_run(number, finding)
            for check in (self.check_ledger_row, self.check_log, self.check_integrity):
                with self.noting():
                    check()

    @contextlib.contextmanager
    def noting(self, entry=None):
        """Notes what is found broken or damaged in its body: of a run, or of the file."""
        finding = {"entry": entry, "id": None, "field": "database", "why": ""}
        try:
            yield finding
        except (Broken, *SQLITE_ERRORS) as error:
            if isinstance(error, Broken):
                finding["field"], finding["why"] = map(as_words, error.args)
            elif result_code(error) in DAMAGE:
                finding["why"] = str(error)
            else:
                raise
            whole = self.damage if finding["field"] == "database" else self.broken_file
            (whole if entry is None else self.broken).append(finding)

    def rows(self, table, columns, rest="", values=()):
        """Rows of a table itself: an index of a stranger, which may lie, is never asked."""
        kept = table in ("field", "leaf", "block")  # WITHOUT ROWID: this index is the table
        source = f"INDEXED BY sqlite_autoindex_{table}_1" if kept else "NOT INDEXED"
        query, count = f"SELECT {columns} FROM {table} {source} {rest}", 0
        cursor = self.db.execute(query, values)
        try:
            for count, row in enumerate(cursor, 1):
                yield row
        except SQLITE_ERRORS:  # Python looks one row ahead: it owes the one before the damage
            yield from self.db.execute(f"{query} LIMIT 1 OFFSET {count}", values)
            raise

    def check_schema(self):
        """Compares definitions; a table that is not the one of the page is the end."""
        found, expected = {}, {}
        for kind, name, digest in map(str.split, DEFINITIONS.split("\n")[1:-1]):
            expected[kind, name.encode()] = [digest]
        tables = {name for kind, name in expected if kind == "table"}
        for row in self.db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"):
            kind, name, table, sql = (v if isinstance(v, Text) else Text() for v in row)
            automatic = kind == b"index" and not sql and (
                name == b"sqlite_autoindex_run_1" or table.lower() not in tables
                and name.startswith(b"sqlite_autoindex_" + table + b"_"))
            if not automatic:
                key = as_words(kind), bytes(name)
                found.setdefault(key, []).append(sha256(sql).hex())
        strange = found.keys() - expected.keys() - NO_PART_OF_THE_LIST
        differing = {key for key, digests in expected.items() if found.get(key) != digests}
        guards = {key for key in differing if key[0] != "table"}
        for what, keys in (("guards missing", guards - found.keys()),
                           ("guards altered", guards & found.keys()),
                           ("unknown objects", strange)):
            if keys:
                names = map(as_words, sorted({name for _, name in keys}))
                self.not_checked.append(f"{what}: " + ", ".join(names))
        for _, name in sorted(differing - guards):
            raise Broken("schema", f"table {as_words(name)} is missing or another one")

    def run_numbers(self):
        numbers, key = set(), -1 << 63
        for table in ("run", "run_secret", "field", "leaf", "block", "log"):
            with self.noting():
                others = {None}
                for (number,) in self.rows(table, "number" if table == "run" else "run"):
                    (numbers if isinstance(number, int) else others).add(number)
                if others != {None}:
                    raise Broken("database", "a run number that is no integer")
        with self.noting():  # one look-up a run
            find = "WHERE key >= ? ORDER BY key LIMIT 1"
            while key < 1 << 63 and (row := next(self.rows("step", "key", find, (key,)), None)):
                numbers.add(row[0] >> 32)
                key = (row[0] | LOW_BITS) + 1
        return sorted(numbers)

    def check_run(self, number, finding):
        """Leaves with the first thing found broken of one run."""
        row = next(self.rows("run", "id", "WHERE number = ?", (number,)), None)
        finding["id"] = as_words(row[0]) or None if row and isinstance(row[0], Text) else None
        if not 1 <= number < 1 << 31 or row is None:
            raise Broken("number", "no run has this number")
        if self.shared_error is not None:
            raise self.shared_error
        seals = self.seals.get(number, [])
        self.checked["runs"] += bool(seals)
        secret, fields, leaves, roots = self.load_run(number)
        if len(seals) > 1:
            raise Broken("seal", "the run has more than one seal")
        if not seals and (leaves or roots or (OF_THE_SEAL | {b"status"}) & set(fields)):
            raise Broken("seal", "what came in with the seal is there, the seal is not")
        if type(secret) is not bytes or len(secret) != 32:
            raise Broken("run_secret", "the secret is missing or not 32 bytes")
        beside = {b"id": row[0], b"number": number, b"ledger.id": self.ledger[0],
                  b"ledger.created_at": self.ledger[1]}
        if not seals:
            return self.check_unsealed(number, beside, secret, fields)
        beside[b"log_index"], beside[b"seal_version"], seal = seals[0]
        return self.check_sealed(number, beside, seal, secret, fields, leaves, roots)

    def check_sealed(self, number, beside, seal, secret, fields, leaves, roots):
        if not same(leaves.get(b"run_secret"), field_leaf(secret, b"run_secret", secret)):
            raise Broken("run_secret", "the secret is not the one that was sealed")
        self.checked["fields"] += 1
        for name in sorted(set(fields) | set(leaves) - WITHOUT_ROW | ALWAYS | OF_THE_SEAL):
            self.check_field(name, fields, beside, secret, leaves)
        step_count = fields[b"step_count"]
        text = self.check_steps(number, step_count, secret, roots)
        if not same(leaves.get(b"text"), field_leaf(secret, b"text", text)):
            raise Broken("text", "the text is not the one that was sealed")
        self.checked["fields"] += 1
        head = part(b"detrun-seal/1") + part(beside[b"id"]) + struct.pack("<Q", step_count)
        field_root = tree([leaves[name] for name in sorted(leaves)])
        step_root = tree([roots[block] for block in sorted(roots)])
        if not same(seal, sha256(head + field_root + step_root)):
            raise Broken("seal", "the seal is not the one of this run")

    def check_unsealed(self, number, beside, secret, fields):
        for name in sorted(set(fields) | ALWAYS):
            self.check_field(name, fields, beside)
        self.check_steps(number, None, secret, {})
        self.not_checked.append(f"run {number}: {self.state_of_unsealed(number)}")

    def load_run(self, number):
        """Secret, fields, leaves and roots of one run; what is twice there is marked as bad."""
        of_run = "WHERE run = ?", (number,)
        (secret,) = next(self.rows("run_secret", "secret", *of_run), (None,))
        fields, leaves, roots = {}, {}, {}
        for table, column, values in (("field", "value", fields), ("leaf", "hash", leaves)):
            for name, value in self.rows(table, f"name, {column}", *of_run):
                good = isinstance(name, Text) and name not in values
                values.setdefault(name if good else BAD_NAME, value)
        for idx, root in self.rows("block", "idx, root", *of_run):
            roots.setdefault(idx if isinstance(idx, int) and idx not in roots else BAD_IDX, root)
        return secret, fields, leaves, roots

    def check_field(self, name, fields, beside, secret=None, leaves=None):
        """One field; without leaves it is one of a run that has no seal yet."""
        if name == BAD_NAME:
            raise Broken("field", "a name that is empty, twice there or no text")
        if name in WITHOUT_ROW:
            raise Broken(name, "a row of this name in table field")
        value = fields.get(name)
        if name not in fields or isinstance(value, float):
            raise Broken(name, "the field is missing or a floating-point number")
        if leaves is not None:
            if not same(leaves.get(name), field_leaf(secret, name, value)):
                raise Broken(name, "the value is not the one that was sealed")
            self.checked["fields"] += 1
        if (name == b"seal_version" and not same(value, 1)
                or name == b"step_count" and not (isinstance(value, int)
                                                  and 0 <= value <= 1 << 32)
                or name == b"id" and not isinstance(beside[name], Text)):
            raise Broken(name, "a value that no run can have")
        if name in beside and not same(value, beside[name]):
            raise Broken(name, "another value lies in the table that also holds it")

    def check_steps(self, number, step_count, secret, roots):
        """The steps of a run against its roots; step_count None: unsealed. Returns the pieces."""
        pieces, leaves, count = [], [], 0
        for key, token, logits, margin, logprob, piece in self.rows(
                "step", "key, token, logits, margin, logprob, piece",
                "WHERE key BETWEEN ? AND ? ORDER BY key", (number << 32, number << 32 | LOW_BITS)):
            idx, block = key & LOW_BITS, count // BLOCK_STEPS
            if idx != count or count == step_count:
                first = idx if count == step_count else count
                raise Broken(block_name(first // BLOCK_STEPS), f"step {first} is missing or extra")
            if not (all(isinstance(n, int) and -1 << 31 <= n < 1 << 31
                        for n in (token, margin, logprob))
                    and type(logits) is type(piece) is bytes and len(logits) == 16):
                raise Broken(block_name(block), f"step {idx} holds a value no step can have")
            count += 1
            if step_count is None:
                continue
            pieces += [struct.pack("<I", len(piece)), piece]
            leaves.append(step_leaf(secret, idx, token, logits, margin, logprob))
            if count % BLOCK_STEPS == 0 or count == step_count:
                if not same(roots.get(block), tree(leaves)):
                    raise Broken(block_name(block), "the steps are not the ones that were sealed")
                self.checked["steps"] += len(leaves)
                leaves = []
        if count < (step_count or 0):
            raise Broken(block_name(count // BLOCK_STEPS), f"step {count} is missing")
        for block in sorted(roots):
            if not 0 <= block < -(-count // BLOCK_STEPS):
                raise Broken(block_name(block), "the root of a block without steps")
        return b"".join(pieces)

    def state_of_unsealed(self, number):
        """The writer of a living run holds a lock on the byte of its number."""
        ask = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0)
        try:
            with open(self.path + "-lock", "rb",
                      opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
                answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, ask)
        except FileNotFoundError:
            answer = struct.pack("h30x", fcntl.F_UNLCK)
        except (OSError, AttributeError):  # no such file system or no such system
            return "not sealed"
        free = struct.unpack_from("h", answer)[0] == fcntl.F_UNLCK
        return "interrupted, not yet sealed" if free else "live"

    def check_ledger_row(self):
        rows = list(self.rows("ledger", "one, id, created_at", TWO))
        if len(rows) != 1 or rows[0][0] != 1:
            raise Broken("ledger.one", "not exactly one row with one = 1")
        for column, value in zip(("id", "created_at"), rows[0][1:]):
            if not isinstance(value, Text):
                raise Broken(f"ledger.{column}", "not text")

    def check_log(self):
        for position, (idx, kind, run) in enumerate(self.rows("log", "idx, kind, run", BY_IDX)):
            seal = same(kind, Text(b"seal"))
            later = isinstance(kind, Text) and kind in LATER_KINDS
            if idx != position or not (seal or later) or (seal and not isinstance(run, int)):
                raise Broken(f"log[{position}]", "out of order, of no known kind or of no run")
            if later:
                self.not_checked.append(f"log[{idx}]: {as_words(kind)}")

    def check_integrity(self):
        if self.db.execute("PRAGMA integrity_check(1)").fetchone() != (b"ok",):
            raise Broken("database", "the integrity check of SQLite fails")


def verify_file(path):
    """The report on a ledger. Leaves with a verdict when it is none."""
    verifier = Verifier()
    with verifier.noting():
        try:
            ours = is_ours(path)
            with contextlib.closing(connect(os.path.realpath(path))) as db:
                identify(db, ours)
                verifier.verify(db, os.path.realpath(path))
        except Verdict as verdict:
            if verdict.args[0] != TAMPERED:
                raise
            raise Broken("database", verdict.args[1]) from verdict
    broken = verifier.broken + verifier.broken_file + verifier.damage[:1]
    return {"schema": "detrun.verify/1", "verdict": "TAMPERED" if broken else "ok",
            "trust": "self-attested", "checked": verifier.checked,
            "not_checked": verifier.not_checked + ["completeness: self-attested"],
            "first_broken": broken[0] if broken else None, "broken": broken}


def people_lines(shown, report):
    for finding in report["broken"]:
        where = f"run {finding['entry']} ({printable(finding['id'] or 'no id')})"
        where = "ledger" if finding["entry"] is None else where
        yield f"TAMPERED  {where}: {printable(finding['field'])}: {printable(finding['why'])}"
    if not report["broken"]:
        counts = ", ".join(f"{count} {what}" for what, count in report["checked"].items())
        yield f"ok  {shown}: {counts} checked"
    for line in report["not_checked"]:
        yield "not checked: " + printable(line)


def main():
    parser = argparse.ArgumentParser(
        description="Checks the seals of a detrun ledger, independently of detrun.",
        epilog="Exit status: 0 ok, 2 not a readable ledger, 4 TAMPERED, 5 failed.")
    parser.add_argument("file", metavar="FILE", help="the ledger")
    parser.add_argument("--json", action="store_true", help="print a detrun.verify/1 document")
    options = parser.parse_args()
    shown = printable(as_words(os.fsencode(options.file)))
    try:
        report = verify_file(options.file)
        text = (json.dumps(report, ensure_ascii=False, separators=(",", ":")) if options.json
                else "\n".join(people_lines(shown, report)))
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()
    except Exception as error:  # pylint: disable=broad-except; no file may cause a traceback
        status, why = (error.args if isinstance(error, Verdict) else
                       (INTERNAL, f"{type(error).__name__}: {error}"))
        print(f"verify_ledger: {shown}: {printable(why)}", file=sys.stderr)
        return status
    return TAMPERED if report["broken"] else OK


if __name__ == "__main__":
    sys.exit(main())
