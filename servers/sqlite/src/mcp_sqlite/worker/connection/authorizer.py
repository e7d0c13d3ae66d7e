"""Decides what a statement may do, with SQLite's own means: an authorizer per connection, and the engine's limits.

SQLite asks the authorizer about each thing that a statement it compiles would touch, after views, triggers and names
are resolved (https://sqlite.org/c3ref/set_authorizer.html). What is not allowed here by name is denied. The text of a
statement is looked at for one thing only, about which SQLite does not ask (`joined_closed`).
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from enum import StrEnum
from functools import cache

from mcp_sqlite.worker.connection.visible_schema import VisibleSchema

__all__ = [
    "CREATABLE_MODULES",
    "SCHEMA_CHANGE",
    "SET_PRAGMAS",
    "Authorizer",
    "Mode",
    "apply_limits",
    "closed_modules",
    "find_closed_module_in_full_join",
    "set_defensive",
]


class Mode(StrEnum):
    """What the statement being compiled is for."""

    READ = "read"
    EXPLAIN = "explain"
    """Compiled and never run: data changes may be explained too."""
    WRITE = "write"
    """Rows may change."""
    SCHEMA = "schema"
    """The schema may change, and rows only as a part of that."""
    MIGRATE = "migrate"
    """The schema may change and rows too: the operator opened both."""
    INTERNAL = "own"
    """A statement of this program's, no word of it the caller's."""


_PLAIN_PRAGMAS = frozenset({
    "analysis_limit", "application_id", "auto_vacuum", "automatic_index", "busy_timeout", "cache_size", "cache_spill",
    "cell_size_check", "checkpoint_fullfsync", "collation_list", "compile_options", "data_version",
    "defer_foreign_keys", "encoding", "foreign_keys", "freelist_count", "fullfsync", "function_list",
    "hard_heap_limit", "ignore_check_constraints", "journal_mode", "journal_size_limit", "legacy_alter_table",
    "locking_mode", "max_page_count", "mmap_size", "module_list", "page_count", "page_size", "pragma_list",
    "query_only", "read_uncommitted", "recursive_triggers", "reverse_unordered_selects", "schema_version",
    "secure_delete", "soft_heap_limit", "synchronous", "temp_store", "threads", "trusted_schema", "user_version",
    "wal_autocheckpoint",
})  # fmt: skip
_SCHEMA_PRAGMAS = frozenset({
    "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo", "integrity_check",
    "quick_check", "table_info", "table_list", "table_xinfo",
})  # fmt: skip
"""Those whose argument says what to look at; an argument of any other sets something. `database_list` is missing
because it tells the path of the file."""
_PART_PRAGMAS = frozenset({"foreign_key_list", "index_list", "table_info", "table_xinfo"})
"""Those of which the argument is looked up like any name of a table."""
SET_PRAGMAS = frozenset({"application_id", "user_version"})
"""Numbers in the file that migrations count by; a part of the transaction."""

_CLOSED_FUNCTIONS = frozenset({"fts3_tokenizer", "load_extension", "optimize", "sqlite_log"})
"""Those of SQLite's own that do more than compute. `optimize` of FTS4 writes."""
_MORE_FUNCTIONS = frozenset({
    "bm25", "fts5", "fts5_get_locale", "fts5_insttoken", "fts5_locale", "fts5_source_id", "highlight", "match",
    "matchinfo", "offsets", "rtreecheck", "rtreedepth", "rtreenode", "snippet",
    "vec_add", "vec_bit", "vec_debug", "vec_distance_cosine", "vec_distance_hamming", "vec_distance_l1",
    "vec_distance_l2", "vec_f32", "vec_int8", "vec_length", "vec_normalize", "vec_quantize_binary", "vec_quantize_int8",
    "vec_slice", "vec_sub", "vec_to_json", "vec_type", "vec_version",
})  # fmt: skip
"""Of SQLite's extensions and of sqlite-vec; geopoly's begin with its name. What a build's own extensions register stays
closed."""
_READABLE_MODULES = frozenset({
    "bytecode", "dbstat", "generate_series", "json_each", "json_tree", "tables_used", "vec_each",
})  # fmt: skip
"""Beside those of `MODULES` and `pragma_*`: eponymous virtual tables that show nothing but the database."""

CREATABLE_MODULES = frozenset({"fts3", "fts4", "fts5", "geopoly", "rtree", "rtree_i32", "vec0"})
"""Those of which virtual tables may be made."""

_ROWS = {sqlite3.SQLITE_INSERT: "insert into", sqlite3.SQLITE_UPDATE: "update", sqlite3.SQLITE_DELETE: "delete from"}
_SCHEMA = {
    sqlite3.SQLITE_CREATE_INDEX: "create the index",
    sqlite3.SQLITE_CREATE_TABLE: "create the table",
    sqlite3.SQLITE_CREATE_TRIGGER: "create the trigger",
    sqlite3.SQLITE_CREATE_VIEW: "create the view",
    sqlite3.SQLITE_DROP_INDEX: "drop the index",
    sqlite3.SQLITE_DROP_TABLE: "drop the table",
    sqlite3.SQLITE_DROP_TRIGGER: "drop the trigger",
    sqlite3.SQLITE_DROP_VIEW: "drop the view",
    sqlite3.SQLITE_REINDEX: "rebuild the index",
    sqlite3.SQLITE_ANALYZE: "gather statistics of",
    sqlite3.SQLITE_DROP_VTABLE: "drop the virtual table",
}
_OTHER = {
    sqlite3.SQLITE_ALTER_TABLE: "alter a table of",
    sqlite3.SQLITE_ATTACH: "attach the file",
    sqlite3.SQLITE_CREATE_TEMP_INDEX: "create the temporary index",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "create the temporary table",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "create the temporary trigger",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "create the temporary view",
    sqlite3.SQLITE_CREATE_VTABLE: "create the virtual table",
    sqlite3.SQLITE_DETACH: "detach",
    sqlite3.SQLITE_FUNCTION: "call the function",
    sqlite3.SQLITE_PRAGMA: "set or read the pragma",
    sqlite3.SQLITE_SAVEPOINT: "use a savepoint:",
    sqlite3.SQLITE_TRANSACTION: "control transactions:",
}


SCHEMA_CHANGE = "change the schema"


class Authorizer:
    """The authorizer of one connection; `begin` names what the next statement is for."""

    def __init__(self) -> None:
        self.shadow_tables: dict[str, str] = {}
        """Tables in which virtual ones keep what they hold, in lower case, and theirs: only through those may rows of
        them change. SQLite has a switch for that (SQLITE_DBCONFIG_DEFENSIVE), which Python can turn from 3.12 on."""
        self.visible_schema: VisibleSchema | None = None
        """What is served, where that is not everything."""
        self._functions, self._closed_modules = _inspect_build()
        self.begin(Mode.INTERNAL)

    def begin(self, mode: Mode) -> None:
        """Forget what was seen, and allow from now on what `mode` allows."""
        self.mode = mode
        self.denied: str | None = None
        """What the statement was refused for, as a verb and a name."""
        self.denied_action = 0
        self.denied_name = ""
        self.tables_written: dict[str, str | None] = {}
        """Tables whose rows the statement changes, and the trigger that does it where it is one."""
        self.columns_read: dict[tuple[str, str], None] = {}
        """Columns the statement reads, as (table, column)."""
        self.masked_columns_read: dict[str, None] = {}
        """Masked columns that it has `•••` for."""
        self._reshaped: set[str] = set()
        self.changes_schema = False
        """Whether the statement changes the schema."""

    @property
    def may_change_schema(self) -> bool:
        """Whether the statement is there to change the schema."""
        return self.mode in (Mode.SCHEMA, Mode.MIGRATE)

    @property
    def denied_rows(self) -> bool:
        """Whether the statement was refused because rows would change."""
        return self.denied is not None and self.denied_action in _ROWS

    def __call__(self, action: int, one: str | None, two: str | None, schema: str | None, inner: str | None) -> int:
        if self.mode is Mode.INTERNAL or self._allows(action, one or "", two or "", schema or "", inner):
            return sqlite3.SQLITE_OK
        if self.denied is None:
            verb = _ROWS.get(action) or _SCHEMA.get(action) or _OTHER.get(action) or "do"
            name = two if action == sqlite3.SQLITE_FUNCTION else one
            self.denied, self.denied_action = f"{verb} `{(name or '')[:100]}`", action
            self.denied_name = name or ""
            if action in _ROWS and name == "sqlite_master":
                self.denied = SCHEMA_CHANGE
        return sqlite3.SQLITE_DENY

    def _allows(self, action: int, one: str, two: str, schema: str, inner: str | None) -> bool:
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                return True
            case sqlite3.SQLITE_READ:
                self.columns_read[one, two] = None
                return one.lower() not in self._closed_modules and self._is_served(one, two, schema, inner)
            case sqlite3.SQLITE_FUNCTION:
                name = two.lower()
                # ALTER rewrites definitions by functions that only SQLite itself can call.
                alters = self.may_change_schema and name.startswith("sqlite_") and name not in _CLOSED_FUNCTIONS
                return name in self._functions or alters or name.startswith("geopoly_")
            case sqlite3.SQLITE_PRAGMA:
                name = one.lower()
                if two and name in SET_PRAGMAS and self.may_change_schema:
                    self.changes_schema = True
                    return True
                if self.visible_schema is not None and name in _SCHEMA_PRAGMAS:
                    return name in _PART_PRAGMAS and schema != "main"
                return name in _SCHEMA_PRAGMAS or (not two and name in _PLAIN_PRAGMAS)
            case sqlite3.SQLITE_INSERT | sqlite3.SQLITE_UPDATE | sqlite3.SQLITE_DELETE:
                return self._allows_rows(action, one, schema, inner)
            case sqlite3.SQLITE_ALTER_TABLE:
                self._reshape(two)
                return self.may_change_schema and one == "main" and self._is_owned(two)
            case sqlite3.SQLITE_CREATE_VTABLE:
                self._reshape(one)
                return self.may_change_schema and schema == "main" and two.lower() in CREATABLE_MODULES
            case sqlite3.SQLITE_ANALYZE | sqlite3.SQLITE_REINDEX:
                self.changes_schema = True
                return self.may_change_schema and schema == "main"
            case _ if action in _SCHEMA:
                self._reshape(one)
                return self.may_change_schema and schema == "main" and self._is_owned(one) and self._is_owned(two)
            case _:
                return False

    def _is_served(self, table: str, column: str, schema: str, inner: str | None) -> bool:
        if self.visible_schema is None:
            return True
        if schema == "temp" and self.visible_schema.is_masked(table, column):
            self.masked_columns_read[f"{table}.{column}"] = None
        changes = self.mode not in (Mode.READ, Mode.EXPLAIN)
        return self.visible_schema.may_read(table, column, schema, inner, changes=changes)

    def _reshape(self, name: str) -> None:
        self._reshaped.add(name)
        self.changes_schema = True

    def _is_owned(self, name: str) -> bool:
        """Not a table that a virtual one keeps, or the statement is about that one."""
        owner = self.shadow_tables.get(name.lower())
        return owner is None or owner in self._reshaped or owner in self.tables_written

    def _allows_rows(self, action: int, table: str, schema: str, trigger: str | None) -> bool:
        name = table.lower()
        if name == "sqlite_master":
            # Up to 3.50 the first use of a virtual table asks for this, whoever uses it. A real UPDATE of the schema
            # table is refused by SQLite, unless `writable_schema` is on; that pragma is closed.
            return self.may_change_schema or action == sqlite3.SQLITE_UPDATE
        if name == "sqlite_temp_master":
            return self.may_change_schema and action == sqlite3.SQLITE_UPDATE and self.changes_schema
        if self.may_change_schema:
            internal = name == "sqlite_sequence" or name.startswith("sqlite_stat")
            goes_along = schema == "main" and (table in self._reshaped or (internal and self.changes_schema))
            if goes_along or self.mode is Mode.SCHEMA:
                return goes_along
        if self.mode is Mode.EXPLAIN:
            return True
        if self.mode not in (Mode.WRITE, Mode.MIGRATE) or schema != "main" or name.startswith("sqlite_"):
            return False
        if not self._is_owned(name):
            return False
        self.tables_written.setdefault(table, trigger)
        return True


_LENGTH = 64_000_000
_LIMITS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_LENGTH: _LENGTH,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_SWITCHES = {
    "SQLITE_DBCONFIG_DEFENSIVE": True,
    "SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER": False,
    "SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION": False,
    "SQLITE_DBCONFIG_WRITABLE_SCHEMA": False,
}
_HEAP = 512 * 1024 * 1024
_FULL = re.compile(r"\bFULL\b", re.IGNORECASE)


@cache
def _distrusts_schemas() -> bool:
    """Whether this build still reads full-text tables through views and triggers when it trusts no schema.

    Up to 3.41 it does not, and the authorizer sees what views and triggers do anyway.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.executescript("CREATE VIRTUAL TABLE f USING fts5 (x); CREATE VIEW v AS SELECT x FROM f")
            connection.executescript("PRAGMA trusted_schema = OFF; SELECT x FROM v")
        except sqlite3.Error:
            return False
    return True


@cache
def _inspect_build() -> tuple[frozenset[str], frozenset[str]]:
    """Functions of this build that may be called, and modules that may not be read as tables.

    What is built in is SQLite's, all else somebody's (https://sqlite.org/pragma.html#pragma_function_list).
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        names = connection.execute("SELECT DISTINCT lower(name) FROM pragma_function_list WHERE builtin").fetchall()
        modules = {str(name).lower() for (name,) in connection.execute("SELECT name FROM pragma_module_list")}
    functions = (frozenset(str(name) for (name,) in names) | _MORE_FUNCTIONS) - _CLOSED_FUNCTIONS
    closed = modules - CREATABLE_MODULES - _READABLE_MODULES
    return functions, frozenset(name for name in closed if not name.startswith(("fts3", "fts4", "fts5", "pragma_")))


def closed_modules() -> frozenset[str]:
    """Modules of this build that may not be read as tables, in lower case."""
    return _inspect_build()[1]


def find_closed_module_in_full_join(sql: str) -> str | None:
    """A module that may not be read as a table, and that `sql` names and has FULL in it.

    SQLite does not ask the authorizer about columns of virtual tables that FULL JOIN ... USING merges with others.
    """
    if not _FULL.search(sql):
        return None
    words = set(map(str.lower, re.findall(r"[^\W\d][\w$]*", sql)))
    return next((name for name in closed_modules() if name in words), None)


def set_defensive(connection: sqlite3.Connection, on: bool) -> None:
    """Have SQLite defend what virtual tables keep, or not."""
    _switch(connection, "SQLITE_DBCONFIG_DEFENSIVE", on)


def _switch(connection: sqlite3.Connection, name: str, on: bool) -> None:
    """Turn a switch of SQLite's on or off, where Python can: from 3.12 on."""
    if (setconfig := getattr(connection, "setconfig", None)) is not None:
        setconfig(getattr(sqlite3, name), on)


def apply_limits(connection: sqlite3.Connection, authorizer: Authorizer, *, read_only: bool) -> None:
    """Close on `connection` what SQLite lets one close; `authorizer` stays asked for as long as it is open."""
    for limit, most in _LIMITS.items():
        connection.setlimit(limit, most)
    for name, on in _SWITCHES.items():
        _switch(connection, name, on)
    if _distrusts_schemas():
        connection.execute("PRAGMA trusted_schema = OFF").close()
    connection.execute(f"PRAGMA hard_heap_limit = {_HEAP}").close()
    connection.execute("PRAGMA cell_size_check = ON").close()
    if read_only:
        connection.execute("PRAGMA query_only = ON").close()
    else:
        connection.execute("PRAGMA foreign_keys = ON").close()
        # Some builds flush less in WAL mode; what is acknowledged must outlive a power cut.
        connection.execute("PRAGMA synchronous = FULL").close()
    connection.set_authorizer(authorizer)
