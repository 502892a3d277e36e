-- The schema of a detrun ledger, version 1: the only place it is defined. Format: detrun-ledger(5).
-- Any change here is a new user_version; a change of what is hashed is a new seal version as well.
-- Every table is insert-only: guards refuse a row that exists, a row of a sealed run, and any
-- update or delete. INSERT OR REPLACE is refused by the insert guards, whatever recursive_triggers.
PRAGMA application_id = 1146376782; -- 0x4454524E, "DTRN"
PRAGMA user_version = 1;

-- The ledger itself: one row.
CREATE TABLE ledger (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  id         TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;

-- The start of a run. The number is the order of the ledger.
CREATE TABLE run (
  number INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 2147483647),
  id     TEXT NOT NULL UNIQUE
) STRICT;

-- What the salts of a run are made from.
CREATE TABLE run_secret (
  run    INTEGER PRIMARY KEY REFERENCES run (number),
  secret BLOB NOT NULL CHECK (length(secret) = 32)
) STRICT;

-- Facts of a run, in any order; those of the end come with the seal.
CREATE TABLE field (
  run   INTEGER NOT NULL REFERENCES run (number),
  name  TEXT NOT NULL CHECK (name <> ''),
  value ANY CHECK (typeof(value) <> 'real'),
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

-- One output token. key = run << 32 | step index, so that appends fill pages one after another.
-- margin and logprob: the bits of a binary32, read as a signed 32-bit integer.
CREATE TABLE step (
  key     INTEGER PRIMARY KEY CHECK (key >= 4294967296),
  token   INTEGER NOT NULL CHECK (token BETWEEN -2147483648 AND 2147483647),
  logits  BLOB NOT NULL CHECK (length(logits) = 16),
  margin  INTEGER NOT NULL CHECK (margin BETWEEN -2147483648 AND 2147483647),
  logprob INTEGER NOT NULL CHECK (logprob BETWEEN -2147483648 AND 2147483647),
  piece   BLOB NOT NULL,
  run     INTEGER AS (key >> 32) VIRTUAL REFERENCES run (number),
  idx     INTEGER AS (key & 4294967295) VIRTUAL
) STRICT;

-- The hash of every field of a sealed run.
CREATE TABLE leaf (
  run  INTEGER NOT NULL REFERENCES run (number),
  name TEXT NOT NULL,
  hash BLOB NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

-- The Merkle root of every 64 steps of a sealed run.
CREATE TABLE block (
  run  INTEGER NOT NULL REFERENCES run (number),
  idx  INTEGER NOT NULL CHECK (idx >= 0),
  root BLOB NOT NULL CHECK (length(root) = 32),
  PRIMARY KEY (run, idx)
) STRICT, WITHOUT ROWID;

-- What happened to the ledger, in order. kind 'seal' is the end of a run: body is its seal.
CREATE TABLE log (
  idx     INTEGER PRIMARY KEY CHECK (idx >= 0),
  kind    TEXT NOT NULL CHECK (kind IN ('seal', 'verdict', 'redaction', 'key', 'import')),
  run     INTEGER REFERENCES run (number),
  version INTEGER NOT NULL,
  body    BLOB NOT NULL,
  CHECK (kind <> 'seal' OR (run IS NOT NULL AND length(body) = 32))
) STRICT;

CREATE UNIQUE INDEX log_seal ON log (run) WHERE kind = 'seal';

CREATE TRIGGER ledger_insert BEFORE INSERT ON ledger BEGIN
  SELECT RAISE(ABORT, 'detrun: a ledger is created once') WHERE EXISTS (SELECT 1 FROM ledger);
END;
CREATE TRIGGER run_insert BEFORE INSERT ON run BEGIN
  SELECT RAISE(ABORT, 'detrun: a run number must be given and be the highest')
    WHERE NEW.number < 1 OR NEW.number <= (SELECT max(number) FROM run);
  SELECT RAISE(ABORT, 'detrun: this run id exists')
    WHERE EXISTS (SELECT 1 FROM run WHERE id = NEW.id);
END;
CREATE TRIGGER run_secret_insert BEFORE INSERT ON run_secret BEGIN
  SELECT RAISE(ABORT, 'detrun: this run has a secret')
    WHERE EXISTS (SELECT 1 FROM run_secret WHERE run = NEW.run);
  SELECT RAISE(ABORT, 'detrun: this run is sealed')
    WHERE EXISTS (SELECT 1 FROM log WHERE kind = 'seal' AND run = NEW.run);
END;
CREATE TRIGGER field_insert BEFORE INSERT ON field BEGIN
  SELECT RAISE(ABORT, 'detrun: this field exists')
    WHERE EXISTS (SELECT 1 FROM field WHERE run = NEW.run AND name = NEW.name);
  SELECT RAISE(ABORT, 'detrun: this name has no row of its own')
    WHERE NEW.name IN ('text', 'run_secret');
  SELECT RAISE(ABORT, 'detrun: this run is sealed')
    WHERE EXISTS (SELECT 1 FROM log WHERE kind = 'seal' AND run = NEW.run);
END;
CREATE TRIGGER step_insert BEFORE INSERT ON step BEGIN
  SELECT RAISE(ABORT, 'detrun: this step exists')
    WHERE EXISTS (SELECT 1 FROM step WHERE key = NEW.key);
  SELECT RAISE(ABORT, 'detrun: steps are recorded without a gap')
    WHERE NEW.key < 4294967296
       OR (NEW.key & 4294967295 > 0 AND NOT EXISTS (SELECT 1 FROM step WHERE key = NEW.key - 1));
  SELECT RAISE(ABORT, 'detrun: this run is sealed')
    WHERE EXISTS (SELECT 1 FROM log WHERE kind = 'seal' AND run = NEW.key >> 32);
END;
CREATE TRIGGER leaf_insert BEFORE INSERT ON leaf BEGIN
  SELECT RAISE(ABORT, 'detrun: this leaf exists')
    WHERE EXISTS (SELECT 1 FROM leaf WHERE run = NEW.run AND name = NEW.name);
  SELECT RAISE(ABORT, 'detrun: this run is sealed')
    WHERE EXISTS (SELECT 1 FROM log WHERE kind = 'seal' AND run = NEW.run);
END;
CREATE TRIGGER block_insert BEFORE INSERT ON block BEGIN
  SELECT RAISE(ABORT, 'detrun: this block exists')
    WHERE EXISTS (SELECT 1 FROM block WHERE run = NEW.run AND idx = NEW.idx);
  SELECT RAISE(ABORT, 'detrun: this run is sealed')
    WHERE EXISTS (SELECT 1 FROM log WHERE kind = 'seal' AND run = NEW.run);
END;
CREATE TRIGGER log_insert BEFORE INSERT ON log BEGIN
  SELECT RAISE(ABORT, 'detrun: log entries are numbered without a gap')
    WHERE NEW.idx <> (SELECT coalesce(max(idx), -1) + 1 FROM log) OR NEW.idx < 0;
  SELECT RAISE(ABORT, 'detrun: this run is sealed')
    WHERE NEW.kind = 'seal' AND EXISTS (SELECT 1 FROM log WHERE kind = 'seal' AND run = NEW.run);
END;

CREATE TRIGGER ledger_update BEFORE UPDATE ON ledger BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never updated');
END;
CREATE TRIGGER ledger_delete BEFORE DELETE ON ledger BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never deleted');
END;
CREATE TRIGGER run_update BEFORE UPDATE ON run BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never updated');
END;
CREATE TRIGGER run_delete BEFORE DELETE ON run BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never deleted');
END;
CREATE TRIGGER run_secret_update BEFORE UPDATE ON run_secret BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never updated');
END;
CREATE TRIGGER run_secret_delete BEFORE DELETE ON run_secret BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never deleted');
END;
CREATE TRIGGER field_update BEFORE UPDATE ON field BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never updated');
END;
CREATE TRIGGER field_delete BEFORE DELETE ON field BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never deleted');
END;
CREATE TRIGGER step_update BEFORE UPDATE ON step BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never updated');
END;
CREATE TRIGGER step_delete BEFORE DELETE ON step BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never deleted');
END;
CREATE TRIGGER leaf_update BEFORE UPDATE ON leaf BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never updated');
END;
CREATE TRIGGER leaf_delete BEFORE DELETE ON leaf BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never deleted');
END;
CREATE TRIGGER block_update BEFORE UPDATE ON block BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never updated');
END;
CREATE TRIGGER block_delete BEFORE DELETE ON block BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never deleted');
END;
CREATE TRIGGER log_update BEFORE UPDATE ON log BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never updated');
END;
CREATE TRIGGER log_delete BEFORE DELETE ON log BEGIN
  SELECT RAISE(ABORT, 'detrun: entries are never deleted');
END;

-- For people at the sqlite3 shell; the program never reads through a view.
CREATE VIEW runs AS
  SELECT number, id,
    (SELECT value FROM field WHERE run = number AND name = 'status') AS status,
    (SELECT value FROM field WHERE run = number AND name = 'started_at') AS started_at,
    (SELECT value FROM field WHERE run = number AND name = 'model.name') AS model,
    (SELECT count(*) FROM step WHERE key >= number << 32 AND key < (number + 1) << 32) AS steps,
    (SELECT lower(hex(body)) FROM log WHERE kind = 'seal' AND log.run = number) AS seal
  FROM run;
CREATE VIEW steps AS
  SELECT run, idx, token, lower(hex(logits)) AS logits_xxh3, CAST(piece AS TEXT) AS piece
  FROM step;
