"""Prove that a change is what SQLite itself would make of it, and that the way back leads back.

Statements are drawn for a database that has a bit of everything, and run by mcp-sqlite and by plain SQLite in a twin:
both have the same schema and rows in the end, and count the same rows. A dry run, or a refusal, changes nothing; the
way back that a dry run names is run too, and all is as it was.
"""

from __future__ import annotations

import random
import re
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure
from proofs.tally import Tally
from sql.drawn import drawn

SCENE = """
CREATE TABLE maker (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, born DATE DEFAULT '2000-01-01');
CREATE TABLE "odd table" (id INTEGER PRIMARY KEY, "a b" TEXT, maker INTEGER REFERENCES maker (id) ON DELETE CASCADE);
CREATE TABLE pair (a TEXT, b INTEGER, c, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE exact (id INTEGER PRIMARY KEY, n INTEGER CHECK (n > 0), r REAL, b BLOB) STRICT;
CREATE TABLE made (id INTEGER PRIMARY KEY, n INTEGER, twice INTEGER GENERATED ALWAYS AS (n * 2) STORED,
    more AS (n + 1));
CREATE TABLE late (id INTEGER PRIMARY KEY, maker INTEGER REFERENCES maker (id) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE log (what, which);
CREATE VIRTUAL TABLE words USING fts5 (body);
CREATE INDEX maker_born ON maker (born);
CREATE UNIQUE INDEX "odd index" ON "odd table" ("a b") WHERE id > 1;
CREATE VIEW seen AS SELECT id, name FROM maker;
CREATE TRIGGER seen_in INSTEAD OF INSERT ON seen BEGIN INSERT INTO maker (name) VALUES (NEW.name); END;
CREATE TRIGGER noted AFTER DELETE ON maker BEGIN INSERT INTO log VALUES ('gone', OLD.id); END;
CREATE TRIGGER odd_noted AFTER UPDATE ON "odd table" BEGIN INSERT INTO log VALUES (NEW."a b", NEW.id); END;
CREATE TABLE "odd
name" (a, "b;
CREATE TABLE evil (x);--", c DEFAULT 'x
;CREATE TABLE evil (x);--'); -- kept
CREATE INDEX "of = two" ON pair (b) -- its end is a comment
;
CREATE VIEW remarked AS SELECT a, b FROM pair -- its end is a comment;
;
CREATE VIEW open AS SELECT what FROM log /* its end is a comment
;*/;
CREATE TRIGGER opened INSTEAD OF DELETE ON open BEGIN SELECT ';
CREATE TABLE evil (x);'; END;
INSERT INTO maker (name) VALUES ('a'), ('b'), ('c'), ('d');
INSERT INTO "odd table" VALUES (1, 'x', 1), (2, 'y', 2), (3, 'z', 2);
INSERT INTO pair VALUES ('p', 1, 'q'), ('p', 2, NULL), ('r', 1, x'00ff');
INSERT INTO exact VALUES (1, 5, 1.5, NULL), (2, 6, 2.0, x'01');
INSERT INTO made (n) VALUES (1), (2), (3);
INSERT INTO late VALUES (1, 3);
INSERT INTO words VALUES ('some words'), ('other words');
PRAGMA user_version = 7;
"""
ROWS = [
    "INSERT INTO maker (name) VALUES ('{w}')", "INSERT INTO maker (name) VALUES ('{w}'), ('{w}2') RETURNING id, name",
    "INSERT OR REPLACE INTO maker (id, name) VALUES ({n}, '{w}')",
    "INSERT OR IGNORE INTO maker (name) VALUES ('a'), ('{w}')",
    "INSERT INTO maker (name) VALUES ('a') ON CONFLICT (name) DO UPDATE SET name = excluded.name || '{w}'",
    "UPDATE maker SET name = name || '{w}' WHERE id > {n}", "DELETE FROM maker WHERE id = {n}", "DELETE FROM maker",
    "UPDATE maker SET id = id + 10 WHERE id = {n}",
    'UPDATE "odd table" SET "a b" = \'{w}\' WHERE id = {n} RETURNING *', "INSERT INTO pair VALUES ('p', {n}, '{w}')",
    "REPLACE INTO pair VALUES ('p', {n}, '{w}')", "DELETE FROM pair WHERE b < {n}", "UPDATE pair SET b = b + 10",
    "INSERT INTO exact (n, r) VALUES ({n}, {n})", "INSERT INTO exact (n) VALUES ('{w}')",
    "UPDATE made SET n = n * {n} RETURNING twice, more", "INSERT INTO made (n, twice) VALUES (1, 2)",
    "INSERT INTO late (maker) VALUES (99)", "INSERT INTO seen (name) VALUES ('{w}'), ('{w}3')",
    "INSERT INTO words VALUES ('{w} words')", "DELETE FROM words WHERE words MATCH 'other'",
    "UPDATE words SET body = '{w}' WHERE rowid = 1",
    "WITH few AS (SELECT id FROM maker WHERE id < {n}) DELETE FROM maker WHERE id IN few",
    "INSERT INTO log SELECT 'copied', id FROM maker", "UPDATE maker SET name = 'same'", "DELETE FROM log",
    "DELETE FROM nothing", "INSERT INTO {t} (id) VALUES (50)", "DELETE FROM {t}", "UPDATE {t} SET id = id",
]  # fmt: skip
SHAPES = [
    "CREATE TABLE {w} (id INTEGER PRIMARY KEY, x TEXT DEFAULT 'a;b')", "CREATE TABLE {w} AS SELECT * FROM maker",
    'CREATE TABLE "new {w}" (a, b); CREATE INDEX "i {w}" ON "new {w}" (a)', "CREATE INDEX {w} ON maker (name, born)",
    'CREATE TABLE "t {w}" (a); CREATE TRIGGER "g {w}" AFTER INSERT ON "t {w}" BEGIN DELETE FROM log; END',
    "CREATE VIEW {w} AS SELECT name FROM seen", "CREATE TRIGGER {w} AFTER INSERT ON pair BEGIN SELECT 1; END",
    "CREATE VIEW {w} AS SELECT 1 AS a; CREATE TRIGGER {w}t INSTEAD OF DELETE ON {w} BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE {w} USING fts5 (x)", "CREATE TABLE {w} (a PRIMARY KEY) WITHOUT ROWID",
    "DROP INDEX maker_born", 'DROP INDEX "odd index"', "DROP VIEW seen", "DROP TRIGGER noted", "DROP TABLE log",
    "DROP TABLE maker", "DROP TABLE words", "DROP VIEW seen; CREATE VIEW seen AS SELECT name, id,\n born FROM maker",
    "DROP TRIGGER noted; CREATE TRIGGER noted AFTER DELETE ON maker BEGIN\n SELECT 1;\n END",
    "DROP INDEX maker_born; CREATE INDEX maker_born ON maker (born DESC)",
    "ALTER TABLE {t} ADD COLUMN {w} TEXT DEFAULT 'x'", 'ALTER TABLE "odd table" RENAME TO even',
    "ALTER TABLE maker RENAME TO makers", "ALTER TABLE maker RENAME COLUMN name TO title",
    'ALTER TABLE "odd table" RENAME COLUMN "a b" TO "c ""d"', "ALTER TABLE maker DROP COLUMN born",
    "ALTER TABLE pair DROP COLUMN c",
    "DROP INDEX maker_born; ALTER TABLE maker DROP COLUMN born; ALTER TABLE maker ADD COLUMN died DATE",
    "ALTER TABLE maker ADD COLUMN {w}; CREATE INDEX {w}i ON maker ({w})", "PRAGMA user_version = {n}",
    "PRAGMA application_id = {n}",
    "CREATE TABLE {w} (id INTEGER PRIMARY KEY, n); INSERT INTO {w} SELECT id, n FROM made; DROP TABLE made;"
    "ALTER TABLE {w} RENAME TO made",
    "ALTER TABLE {t} RENAME TO {w}; ALTER TABLE {w} ADD COLUMN y", "REINDEX", "CREATE TABLE maker (a)",
    "ALTER TABLE pair RENAME TO {w}; ALTER TABLE exact RENAME TO pair; ALTER TABLE {w} RENAME TO exact",
    "ALTER TABLE late RENAME TO {w}; CREATE TABLE late AS SELECT * FROM {w}",
    "ALTER TABLE pair RENAME TO {w}; ALTER TABLE exact RENAME TO pair",
    "DROP TABLE exact; ALTER TABLE pair RENAME TO exact",
    "DROP TABLE nothing", "ANALYZE",
    # Names are exchanged, of columns as well, also for one that differs in case only, or is a spare one.
    "ALTER TABLE pair RENAME a TO {w}; ALTER TABLE pair RENAME b TO a; ALTER TABLE pair RENAME {w} TO b",
    "ALTER TABLE exact RENAME n TO {w}; ALTER TABLE exact RENAME r TO n; ALTER TABLE exact RENAME b TO r;"
    "ALTER TABLE exact RENAME {w} TO b", "ALTER TABLE late RENAME maker TO MAKER",
    "ALTER TABLE pair RENAME a TO {w}; ALTER TABLE pair RENAME b TO A; ALTER TABLE pair RENAME {w} TO B",
    "ALTER TABLE pair ADD mcp_back_0; ALTER TABLE pair RENAME a TO {w}; ALTER TABLE pair RENAME b TO a;"
    "ALTER TABLE pair RENAME {w} TO b", "ALTER TABLE pair RENAME TO {w}; ALTER TABLE {w} RENAME TO PAIR",
    "DROP TABLE log; ALTER TABLE late RENAME TO LOG", "ALTER /* of */ TABLE pair /* one */ DROP c",
    # A table, a column or a view is made anew in the place of one that was.
    "DROP TABLE log; CREATE TABLE log (which, what)", "DROP TABLE log; CREATE TABLE log (what, which)",
    "DROP TABLE exact; CREATE TABLE exact (id INTEGER PRIMARY KEY, n TEXT, r, b)",
    "DROP TABLE pair; CREATE TABLE pair (a, b, c)", "DROP TABLE late; CREATE TABLE {w} (id INTEGER PRIMARY KEY, m, n)",
    "ALTER TABLE pair DROP c; ALTER TABLE pair ADD c", "ALTER TABLE {t} RENAME TO {w}; ALTER TABLE {w} DROP COLUMN n",
    "DROP VIEW seen; CREATE VIEW seen AS SELECT name, id FROM maker;"
    "CREATE TRIGGER seen_in INSTEAD OF INSERT ON seen BEGIN INSERT INTO maker (name) VALUES (NEW.name); END",
    'ALTER TABLE pair RENAME TO {w}; CREATE TABLE pair AS SELECT * FROM {w}; DROP INDEX "of = two";'
    'CREATE INDEX "of = two" ON pair (b) -- its end is a comment\n',
    "ALTER TABLE pair RENAME TO {w}; DELETE FROM {w}; ALTER TABLE {w} RENAME TO {w}2; CREATE TABLE {w} (a)",
    "ALTER TABLE {t} RENAME TO {w}; DELETE FROM {w}", "CREATE TABLE {w} (a); INSERT INTO {w} VALUES ('DROP VIEW open')",
    # Line breaks and comments, in what is made anew and in what a remark tells.
    "DROP VIEW remarked", "DROP VIEW open; DROP VIEW remarked", 'DROP INDEX "of = two"', "DROP TABLE pair",
    'DROP TABLE "odd\nname"', 'ALTER TABLE "odd\nname" DROP a', 'ALTER TABLE "odd\nname" RENAME a TO "{w}\n;"',
    'DROP TABLE "odd\nname"; CREATE TABLE "odd\nname" (b)', 'CREATE INDEX "{w} = 1" ON pair (c)',
    "CREATE VIEW {w} AS SELECT 1 -- that;\n;DROP VIEW open",
]  # fmt: skip
TABLES = ["maker", '"odd table"', "pair", "exact", "made", "late", "log"]


def state(path: Path) -> list[Any]:
    """All that there is, whatever the names are quoted with."""
    with closing(sqlite3.connect(path)) as connection:
        found: list[Any] = connection.execute("PRAGMA user_version").fetchall()
        found += connection.execute("PRAGMA application_id").fetchall()
        master = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
        for kind, name, table, sql in master:
            if name.rpartition("_")[2] in ("data", "idx", "content", "docsize", "config"):
                continue  # a full-text table's own
            if name.startswith("sqlite_stat"):
                continue
            plain = re.sub(r" ?([(),]) ?", r"\1", re.sub(r'["\s]+', " ", sql or "")).strip()
            found.append((kind, name, table, plain))
            if kind == "table":
                found.append(sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"'))))
        return found


class Server:
    """A worker of mcp-sqlite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._connections = Connections(Interrupt())

    def close(self) -> None:
        self._connections.close()

    def change(self, path: Path, sql: str, *, dry_run: bool) -> dict[str, Any] | str:
        """What was done, or the refusal."""
        self._connections.interrupt.start(30)
        request = {
            "do": "change", "path": str(path), "sql": sql, "mode": "migrate", "dry_run": dry_run, "parameters": None,
            "spool": str(self.folder / "spool"), "spool_bytes": 10**6, "max_cell": 100,
        }  # fmt: skip
        try:
            answer = operations.run(self._connections, request, lambda frame: None)
        except Failure as failure:
            return f"{failure.message} {failure.fix}"
        if "failure" in answer:
            return " ".join(answer["failure"][1:])
        return answer


def plainly(path: Path, sql: str) -> list[int] | str:
    """What plain SQLite makes of it in one transaction: the rows of each statement, or the error."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        keys = "OFF" if re.search(r"(?:^|;\s*)DROP\s+TABLE\b", sql) else "ON"
        connection.execute(f"PRAGMA foreign_keys = {keys}")
        counts: list[int] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _split(sql):
                cursor = connection.execute(statement)
                cursor.fetchall()
                is_change = re.match(r"(INSERT|UPDATE|DELETE|REPLACE|WITH)\b", statement)
                counts.append(connection.execute("SELECT changes()").fetchone()[0] if is_change else -1)
            broken = keys == "OFF" and connection.execute("PRAGMA foreign_key_check").fetchall()
            if broken:
                raise sqlite3.IntegrityError(f"keys: {broken}")
            connection.execute("COMMIT")
        except (sqlite3.Error, sqlite3.Warning) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return str(error)
        return counts


def _split(sql: str) -> list[str]:
    found: list[str] = []
    text = ""
    for part in re.split("(;)", sql):
        text += part
        if part == ";" and sqlite3.complete_statement(text):
            found.append(text.strip().rstrip(";"))
            text = ""
    return [*found, text.strip()] if text.strip() else found


def one(server: Server, pattern: Path, folder: Path, sql: str) -> str:
    """What is wrong with what the server makes of `sql`."""
    ours, twin = folder / "ours.db", folder / "twin.db"
    for path in (ours, twin):
        path.write_bytes(pattern.read_bytes())
    before = state(ours)
    tried = server.change(ours, sql, dry_run=True)
    if state(ours) != before:
        return "a dry run changed something"
    expected = plainly(twin, sql)
    done = server.change(ours, sql, dry_run=False)
    if isinstance(done, str) or isinstance(tried, str):
        if state(ours) != before:
            return f"refused, and changed: {done}"
        if isinstance(done, str) != isinstance(tried, str):
            return f"tried: {tried}, done: {done}"
        return "" if isinstance(expected, str) else f"refused: {done}"
    if isinstance(expected, str):
        return f"taken, but SQLite says {expected}"
    after = state(ours)
    if after != state(twin):
        return f"differs: {[item for item in after if item not in state(twin)]}"
    if [step["rows"] for step in done["steps"]] != [step["rows"] for step in tried["steps"]]:
        return "the dry run counted other rows"
    counts = [step["rows"] for step, count in zip(done["steps"], expected, strict=True) if count >= 0]
    if counts != [count for count in expected if count >= 0]:
        return f"rows {counts}, {expected}"
    back: list[str] | None = tried["undo"]
    if back is None:
        return ""
    with closing(sqlite3.connect(ours)) as connection:
        try:
            connection.executescript("\n".join(back))
        except sqlite3.Error as error:
            return f"the way back fails: {error}: {back}"
    left = state(ours)
    if left != before:
        odd = [item for item in left if item not in before], [item for item in before if item not in left]
        return f"the way back {back} leaves {odd[0]} for {odd[1]}"
    return ""


def prove(cases: int, seed: int) -> Tally:
    """Draw statements, and try each."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name, closing(Server(Path(name))) as server:
        folder = Path(name)
        pattern = folder / "pattern.db"
        with closing(sqlite3.connect(pattern)) as connection:
            connection.executescript(SCENE)
        for number in range(cases):
            sql = "; ".join(drawn(random.Random(f"{seed} {number}"), ROWS, SHAPES, TABLES))
            fault = one(server, pattern, folder, sql)
            tally.note("changes", sql, fault)
            for left in folder.glob("spool*"):
                left.unlink()
    return tally
