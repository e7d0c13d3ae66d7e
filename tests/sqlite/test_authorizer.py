"""What each mode lets a statement do, in this process: SQLite compiles it and asks."""

import re
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcp_sqlite.worker.connection.authorizer import (
    SCHEMA_CHANGE,
    Authorizer,
    Mode,
    apply_limits,
    find_closed_module_in_full_join,
)
from mcp_sqlite.worker.connection.visible_schema import VisibleSchema

TABLES = """
CREATE TABLE t (a, b); CREATE TABLE u (a); CREATE INDEX i ON t (a); CREATE VIEW v AS SELECT a FROM t;
CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO u VALUES (new.a); END;
CREATE VIRTUAL TABLE f USING fts5 (x); CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT);
"""
SHADOWS = {f"f_{part}": "f" for part in ("data", "idx", "content", "docsize", "config")}
GUARDED, BY_ITSELF = re.compile(r"may not be (modified|altered|dropped)"), "SQLite by itself"
"""What SQLite says of shadow tables before it asks, where it can be told to be defensive: from Python 3.12 on."""


def denied(authorizer: Authorizer) -> str | None:
    return None if authorizer.denial is None else authorizer.denial.description


@contextmanager
def opened(*, read_only: bool = False) -> Generator[tuple[sqlite3.Connection, Authorizer]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(TABLES)
        authorizer = Authorizer()
        authorizer.shadow_tables = SHADOWS
        apply_limits(connection, authorizer, read_only=read_only)
        yield connection, authorizer


def judged(mode: Mode, sql: str) -> str | None:
    """What `sql` is refused for; None if it may be run."""
    with opened() as (connection, authorizer):
        authorizer.begin(mode)
        try:
            connection.execute(f"EXPLAIN {sql}").close()
        except sqlite3.DatabaseError as error:
            if authorizer.denial is None and GUARDED.search(str(error)):
                return BY_ITSELF
            assert authorizer.denial is not None, f"{sql}: {error}"
        else:
            assert authorizer.denial is None, sql
        return denied(authorizer)


R, X, W, S, M = Mode.READ, Mode.EXPLAIN, Mode.WRITE, Mode.SCHEMA, Mode.MIGRATE
ALL = [R, X, W, S, M]


@pytest.mark.parametrize(
    ("sql", "modes", "refused"),
    [
        ("SELECT a FROM t", ALL, ""), ("SELECT x FROM v AS w, (SELECT 1 AS x)", ALL, ""),
        ("WITH RECURSIVE n (i) AS (VALUES (1) UNION SELECT i FROM n) SELECT i FROM n", ALL, ""),
        ("SELECT x FROM f WHERE f MATCH 'a'", ALL, ""), ("SELECT name FROM sqlite_master", ALL, ""),
        ("INSERT INTO t VALUES (1, 2)", [X, W, M], "insert into `t`"), ("UPDATE t SET a = 1", [X, W, M], "update `t`"),
        ("DELETE FROM t", [X, W, M], "delete from `t`"), ("INSERT INTO f VALUES ('a')", [X, W, M], "insert into `f`"),
        ("INSERT INTO counted DEFAULT VALUES", [X, W, M], "insert into `counted`"),
        ("UPDATE sqlite_sequence SET seq = 1", [X], "update `sqlite_sequence`"),
        ("DELETE FROM f_content", [X], "delete from `f_content`"),
        ("UPDATE F_Data SET block = 1", [X], "update `f_data`"),
        ("CREATE TABLE x (a)", [S, M], ""), ("CREATE INDEX x ON t (b)", [S, M], ""), ("DROP INDEX i", [S, M], ""),
        ("CREATE VIEW x AS SELECT 1", [S, M], ""), ("DROP TABLE u", [S, M], ""), ("DROP VIEW v", [S, M], ""),
        ("CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", [S, M], ""), ("DROP TRIGGER r", [S, M], ""),
        ("DROP TABLE f", [S, M], ""), ("ANALYZE t", [S, M], ""), ("REINDEX i", [S, M], "rebuild the index `i`"),
        ("ALTER TABLE t RENAME TO x", [S, M], "alter a table of `main`"),
        ("ALTER TABLE f_content ADD COLUMN x", [], "alter a table of `main`"), ("DROP TABLE f_content", [], ""),
        ("CREATE INDEX x ON f_content (id)", [], ""), ("CREATE TEMP TABLE x (a)", [], ""),
        ("CREATE TEMP VIEW x AS SELECT 1", [], ""),
        ("CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", [], ""),
        ("ATTACH 'x' AS y", [], "attach the file `x`"), ("DETACH y", [], "detach `y`"),
        ("BEGIN", [], "control transactions: `BEGIN`"), ("SAVEPOINT s", [], "use a savepoint: `BEGIN`"),
        ("SELECT load_extension('x')", [], "call the function `load_extension`"),
        ("SELECT fts3_tokenizer('x')", [], "call the function `fts3_tokenizer`"),
        ("SELECT sqlite_log(1, 'x')", [], "call the function `sqlite_log`"),
        ("PRAGMA user_version = 3", [S, M], "set or read the pragma `user_version`"),
        ("PRAGMA application_id = 3", [S, M], "set or read the pragma `application_id`"),
        ("PRAGMA foreign_keys = OFF", [], "set or read the pragma `foreign_keys`"),
        ("PRAGMA writable_schema = ON", [], "set or read the pragma `writable_schema`"),
    ],
)  # fmt: skip
def test_what_each_mode_allows(sql: str, modes: list[Mode], refused: str) -> None:
    if (refusal := judged(Mode.INTERNAL, sql)) == BY_ITSELF:
        assert all(judged(mode, sql) for mode in ALL)
        return
    assert refusal is None
    for mode in ALL:
        said = judged(mode, sql)
        assert (said is None) == (mode in modes), f"{mode}: {said}"
        if said is not None and mode is Mode.READ:
            assert not refused or said == refused


@pytest.mark.parametrize("module", ["fts3", "fts4", "fts5", "geopoly", "rtree", "rtree_i32"])
def test_virtual_tables_that_may_be_made(module: str) -> None:
    for mode in ALL:
        authorizer = Authorizer()
        authorizer.begin(mode)
        answer = authorizer(sqlite3.SQLITE_CREATE_VTABLE, "x", module.upper(), "main", None)
        assert (answer == sqlite3.SQLITE_OK) == (mode in (S, M))
        assert authorizer(sqlite3.SQLITE_CREATE_VTABLE, "x", module, "temp", None) == sqlite3.SQLITE_DENY
    assert authorizer(sqlite3.SQLITE_CREATE_VTABLE, "x", "dbstat", "main", None) == sqlite3.SQLITE_DENY
    assert denied(authorizer) == "create the virtual table `x`"


def test_a_virtual_tables_own_tables_change_with_it() -> None:
    authorizer = Authorizer()
    authorizer.shadow_tables = SHADOWS
    authorizer.begin(Mode.WRITE)
    insert = sqlite3.SQLITE_INSERT
    assert authorizer(insert, "f_content", None, "main", None) == sqlite3.SQLITE_DENY
    assert (denied(authorizer), authorizer.denied_rows) == ("insert into `f_content`", True)
    authorizer.begin(Mode.WRITE)
    assert (denied(authorizer), authorizer.denied_rows, authorizer.tables_written) == (None, False, {})
    for table in ("f", "f_content"):
        assert authorizer(insert, table, None, "main", None) == sqlite3.SQLITE_OK
    assert authorizer(insert, "u", None, "main", "r") == sqlite3.SQLITE_OK
    assert authorizer(insert, "u", None, "main", None) == sqlite3.SQLITE_OK
    assert authorizer.tables_written == {"f": None, "f_content": None, "u": "r"} and not authorizer.changes_schema
    for schema in ("temp", "other"):
        assert authorizer(insert, "t", None, schema, None) == sqlite3.SQLITE_DENY
    authorizer.begin(Mode.SCHEMA)
    assert authorizer(sqlite3.SQLITE_DROP_VTABLE, "f", "fts5", "main", None) == sqlite3.SQLITE_OK
    assert authorizer(sqlite3.SQLITE_DROP_TABLE, "f_content", None, "main", None) == sqlite3.SQLITE_OK
    assert authorizer.changes_schema


def test_what_is_read_is_noted_until_the_next_statement() -> None:
    with opened() as (connection, authorizer):
        authorizer.begin(Mode.READ)
        connection.execute("SELECT b, a FROM t").close()
        assert list(authorizer.columns_read) == [("t", "b"), ("t", "a")] and not authorizer.changes_schema
        authorizer.begin(Mode.SCHEMA)
        assert authorizer.columns_read == {}
        connection.execute("CREATE TABLE x (a)").close()
        assert authorizer.changes_schema
        authorizer.begin(Mode.READ)
        assert not authorizer.changes_schema


@pytest.mark.parametrize(
    ("action", "verb"),
    [
        ("CREATE_INDEX", "create the index"), ("CREATE_TABLE", "create the table"), ("DROP_TABLE", "drop the table"),
        ("CREATE_TRIGGER", "create the trigger"), ("CREATE_VIEW", "create the view"), ("DROP_INDEX", "drop the index"),
        ("DROP_TRIGGER", "drop the trigger"), ("DROP_VIEW", "drop the view"), ("REINDEX", "rebuild the index"),
        ("ANALYZE", "gather statistics of"), ("DROP_VTABLE", "drop the virtual table"), ("ATTACH", "attach the file"),
        ("CREATE_TEMP_INDEX", "create the temporary index"), ("DETACH", "detach"),
        ("CREATE_TEMP_TABLE", "create the temporary table"), ("CREATE_TEMP_VIEW", "create the temporary view"),
        ("CREATE_TEMP_TRIGGER", "create the temporary trigger"),
    ],
)  # fmt: skip
def test_a_refusal_has_a_verb_and_a_name(action: str, verb: str) -> None:
    authorizer = Authorizer()
    authorizer.begin(Mode.READ)
    assert authorizer(getattr(sqlite3, f"SQLITE_{action}"), "x" * 200, None, "main", None) == sqlite3.SQLITE_DENY
    assert denied(authorizer) == f"{verb} `{'x' * 100}`"
    assert authorizer(sqlite3.SQLITE_TRANSACTION, "BEGIN", None, None, None) == sqlite3.SQLITE_DENY
    assert (denied(authorizer) or "").startswith(verb), "the first is told"
    temporary = Authorizer()
    temporary.begin(Mode.SCHEMA)
    assert temporary(getattr(sqlite3, f"SQLITE_{action}"), "x", None, "temp", None) == sqlite3.SQLITE_DENY


def test_pragmas_tell_of_a_part_only_by_names_that_are_looked_up() -> None:
    authorizer = Authorizer()
    authorizer.visible_schema = VisibleSchema(["t"], [], [])
    authorizer.begin(Mode.READ)
    for name in ("foreign_key_list", "index_info", "index_list", "index_xinfo", "integrity_check", "table_list"):
        for schema in (None, "main"):
            looked_up = schema is None and name in ("foreign_key_list", "index_list")
            answer = authorizer(sqlite3.SQLITE_PRAGMA, name, "other", schema, None)
            assert answer == (sqlite3.SQLITE_OK if looked_up else sqlite3.SQLITE_DENY), (name, schema)


def test_the_table_of_tables_is_the_schema() -> None:
    authorizer = Authorizer()
    authorizer.begin(Mode.WRITE)
    assert authorizer(sqlite3.SQLITE_INSERT, "sqlite_master", None, "main", None) == sqlite3.SQLITE_DENY
    assert denied(authorizer) == SCHEMA_CHANGE
    authorizer.begin(Mode.READ)
    assert authorizer(sqlite3.SQLITE_UPDATE, "sqlite_master", None, "main", None) == sqlite3.SQLITE_OK
    assert authorizer(9999, None, None, None, None) == sqlite3.SQLITE_DENY and denied(authorizer) == "do ``"


CLOSED_PRAGMAS = {
    "case_sensitive_like", "count_changes", "data_store_directory", "database_list", "default_cache_size",
    "empty_result_callbacks", "full_column_names", "incremental_vacuum", "optimize", "short_column_names",
    "shrink_memory", "temp_store_directory", "wal_checkpoint", "writable_schema",
}  # fmt: skip
"""Those that write, set something without an argument, are obsolete, or tell a path."""


def test_all_other_pragmas_may_be_read() -> None:
    with opened() as (connection, authorizer):
        authorizer.begin(Mode.INTERNAL)
        pragmas = {str(name) for (name,) in connection.execute("PRAGMA pragma_list")}
        authorizer.begin(Mode.READ)
        ask = sqlite3.SQLITE_PRAGMA
        known = {name for name in pragmas if authorizer(ask, name.upper(), None, None, None) == sqlite3.SQLITE_OK}
        assert pragmas - known == CLOSED_PRAGMAS & pragmas
        looking = {name for name in pragmas if authorizer(ask, name, "x", None, None) == sqlite3.SQLITE_OK}
    assert looking == {
        "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo", "integrity_check",
        "quick_check", "table_info", "table_list", "table_xinfo",
    }  # fmt: skip


def test_functions_compute_and_do_no_more() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        rows = connection.execute("SELECT DISTINCT name FROM pragma_function_list WHERE builtin")
        own = {str(name) for (name,) in rows}
    extensions = {
        "bm25", "fts5", "fts5_get_locale", "fts5_insttoken", "fts5_locale", "fts5_source_id", "highlight", "match",
        "matchinfo", "offsets", "rtreecheck", "rtreedepth", "rtreenode", "snippet", "geopoly_area",
    }  # fmt: skip
    closed = {"fts3_tokenizer", "load_extension", "optimize", "sqlite_log", "strangers_own"}
    for mode, altering in ((R, False), (X, False), (W, False), (S, True), (M, True)):
        authorizer = Authorizer()
        authorizer.begin(mode)

        def allows(name: str, authorizer: Authorizer = authorizer) -> bool:
            return authorizer(sqlite3.SQLITE_FUNCTION, None, name, None, None) == sqlite3.SQLITE_OK

        assert all(map(allows, (own | extensions) - closed)) and not any(map(allows, closed))
        assert allows("LENGTH") and allows("sqlite_rename_table") == altering


def test_all_functions_of_sqlite_vec_compute() -> None:
    module = pytest.importorskip("pysqlite3.dbapi2", reason="the interpreter's own sqlite3 may load nothing")
    package = find_spec("sqlite_vec")
    assert package is not None and package.origin is not None
    with closing(module.connect(":memory:")) as connection:
        names = "SELECT DISTINCT name FROM pragma_function_list"
        before = {*connection.execute(names)}
        connection.enable_load_extension(True)
        connection.load_extension(str(Path(package.origin).with_name("vec0")))
        found = [name for (name,) in {*connection.execute(names)} - before]
    authorizer = Authorizer()
    authorizer.begin(R)
    assert "vec_version" in found
    for name in found:
        assert authorizer(sqlite3.SQLITE_FUNCTION, None, name, None, None) == sqlite3.SQLITE_OK, name


def test_tables_that_show_more_than_the_database_are_closed() -> None:
    with opened() as (connection, authorizer):
        modules = {str(name) for (name,) in connection.execute("PRAGMA module_list")}
        authorizer.begin(Mode.READ)
        closed = {
            name
            for name in modules | {"bytecode", "generate_series", "tables_used"}
            if authorizer(sqlite3.SQLITE_READ, name.upper(), "a", "main", None) == sqlite3.SQLITE_DENY
        }
    shown = {"dbstat", "json_each", "json_tree", "bytecode", "generate_series", "tables_used", "geopoly"}
    assert not closed & shown and not any(name.startswith(("fts", "pragma_", "rtree")) for name in closed)
    assert closed >= modules & {"sqlite_stmt", "completion", "fsdir", "sqlite_dbdata", "csv", "zipfile"}


def test_a_closed_table_may_be_named_where_nothing_joins_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_sqlite.worker.connection.authorizer.closed_modules", lambda: frozenset({"csv"}))
    assert find_closed_module_in_full_join("SELECT x FROM CSV full JOIN (SELECT 1 AS x) USING (x)") == "csv"
    assert find_closed_module_in_full_join("SELECT csv FROM fulls LEFT JOIN t USING (x)") is None
    assert find_closed_module_in_full_join("SELECT x FROM csvs FULL JOIN t USING (x)") is None


def test_limits_of_a_connection() -> None:
    for read_only in (True, False):
        with opened(read_only=read_only) as (connection, authorizer):
            authorizer.begin(Mode.INTERNAL)

            def pragma(name: str, connection: sqlite3.Connection = connection) -> int:
                return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

            assert pragma("query_only") == read_only and pragma("cell_size_check") == 1
            assert read_only or (pragma("foreign_keys") == 1 and pragma("synchronous") == 2)
            # Up to 3.41 SQLite then reads no full-text table through a view.
            assert pragma("trusted_schema") == (sqlite3.sqlite_version_info < (3, 42))
            assert pragma("hard_heap_limit") == 512 * 1024 * 1024
            limits = {
                sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
                sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200, sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
                sqlite3.SQLITE_LIMIT_LENGTH: 64_000_000, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
                sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000, sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
                sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
            }  # fmt: skip
            assert {limit: connection.getlimit(limit) for limit in limits} == limits
