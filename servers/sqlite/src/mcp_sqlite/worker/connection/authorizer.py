"""Decides what a statement may do, with SQLite's own means: an authorizer per connection, and the engine's limits.

SQLite asks the authorizer about each thing that a statement it compiles would touch, after views, triggers and names
are resolved (https://sqlite.org/c3ref/set_authorizer.html). What is not allowed here by name is denied. The text of a
statement is looked at for one thing only, about which SQLite does not ask (`find_closed_module_in_full_join`).
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from mcp_sqlite.worker.connection.visible_schema import VisibleSchema

__all__ = [
    "CREATABLE_MODULES",
    "SCHEMA_CHANGE",
    "SET_PRAGMAS",
    "Authorizer",
    "Denial",
    "Mode",
    "apply_limits",
    "closed_modules",
    "find_closed_module_in_full_join",
    "set_defensive",
]


class Mode(StrEnum):
    """What the statement being compiled is for.

    Attributes:
        EXPLAIN: it is compiled and never run, so data changes may be explained too.
        WRITE: rows may change.
        SCHEMA: the schema may change, and rows only as a part of that.
        MIGRATE: the schema may change and rows too, as the operator opened both.
        INTERNAL: it is a statement of this program's, no word of it the caller's.
    """

    READ = "read"
    EXPLAIN = "explain"
    WRITE = "write"
    SCHEMA = "schema"
    MIGRATE = "migrate"
    INTERNAL = "internal"


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
# Those whose argument says what to look at; an argument of any other sets something. `database_list` is missing because
# it tells the path of the file.
_SCHEMA_PRAGMAS = frozenset({
    "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo", "integrity_check",
    "quick_check", "table_info", "table_list", "table_xinfo",
})  # fmt: skip
# Those of which the argument is looked up like any name of a table.
_TABLE_PRAGMAS = frozenset({"foreign_key_list", "index_list", "table_info", "table_xinfo"})
# Numbers in the file that migrations count by; they are a part of the transaction.
SET_PRAGMAS = frozenset({"application_id", "user_version"})

# Those of SQLite's own that do more than compute. `optimize` of FTS4 writes.
_CLOSED_FUNCTIONS = frozenset({"fts3_tokenizer", "load_extension", "optimize", "sqlite_log"})
# Those of SQLite's extensions and of sqlite-vec; geopoly's begin with its name. What a build's own extensions register
# stays closed.
_EXTENSION_FUNCTIONS = frozenset({
    "bm25", "fts5", "fts5_get_locale", "fts5_insttoken", "fts5_locale", "fts5_source_id", "highlight", "match",
    "matchinfo", "offsets", "rtreecheck", "rtreedepth", "rtreenode", "snippet",
    "vec_add", "vec_bit", "vec_debug", "vec_distance_cosine", "vec_distance_hamming", "vec_distance_l1",
    "vec_distance_l2", "vec_f32", "vec_int8", "vec_length", "vec_normalize", "vec_quantize_binary", "vec_quantize_int8",
    "vec_slice", "vec_sub", "vec_to_json", "vec_type", "vec_version",
})  # fmt: skip
# Beside those of `CREATABLE_MODULES` and `pragma_*`: eponymous virtual tables that show nothing but the database.
_READABLE_MODULES = frozenset({
    "bytecode", "dbstat", "generate_series", "json_each", "json_tree", "tables_used", "vec_each",
})  # fmt: skip
# Those of which virtual tables may be made.
CREATABLE_MODULES = frozenset({"fts3", "fts4", "fts5", "geopoly", "rtree", "rtree_i32", "vec0"})

_ROW_ACTIONS = {
    sqlite3.SQLITE_INSERT: "insert into",
    sqlite3.SQLITE_UPDATE: "update",
    sqlite3.SQLITE_DELETE: "delete from",
}
_SCHEMA_ACTIONS = {
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
_OTHER_ACTIONS = {
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

# How changes of the schema table are called in a refusal.
SCHEMA_CHANGE = "change the schema"


class Access(NamedTuple):
    """One thing that a statement would do, as SQLite asks about it.

    Attributes:
        first: the first name of the action, such as a table.
        second: its second name, such as a column.
        schema: `main`, `temp`, or an attached database.
        source: the trigger or view that would do it, if it is not the statement itself.
    """

    action: int
    first: str
    second: str
    schema: str
    source: str | None


class Denial(NamedTuple):
    """What a statement was refused for.

    Attributes:
        description: it as a verb and a name.
    """

    action: int
    name: str
    description: str


class Authorizer:
    """The authorizer of one connection; `begin` names what the next statement is for.

    Attributes:
        shadow_tables: tables in which virtual ones keep what they hold, in lower case, and these: only through those
            may rows of them change. SQLite has a switch for that (SQLITE_DBCONFIG_DEFENSIVE), which Python can turn
            from 3.12 on. It has to be read again after each statement that changes the schema.
        visible_schema: what is served, where that is not everything.
        denial: the first thing that the statement was refused for.
        tables_written: tables whose rows the statement changes, and the trigger that does it where it is one.
        columns_read: columns that the statement reads, as table and column, in the order of reading.
        masked_columns_read: masked columns that it has `•••` for.
        changes_schema: whether the statement changes the schema.
        revealing_column: a column that it may not set, because a constraint compares it with a masked one.
    """

    def __init__(self) -> None:
        self.shadow_tables: dict[str, str] = {}
        self.visible_schema: VisibleSchema | None = None
        self._build = _inspect_build()
        self.begin(Mode.INTERNAL)

    def begin(self, mode: Mode) -> None:
        """Forget what was asked about, and allow from now on what `mode` allows."""
        self.mode = mode
        self.denial: Denial | None = None
        self.tables_written: dict[str, str | None] = {}
        self.columns_read: dict[tuple[str, str], None] = {}
        self.masked_columns_read: dict[str, None] = {}
        self._changed_objects: set[str] = set()
        self.changes_schema = False
        self.revealing_column = ""

    @property
    def may_change_schema(self) -> bool:
        """Whether the statement is there to change the schema."""
        return self.mode in (Mode.SCHEMA, Mode.MIGRATE)

    @property
    def denied_rows(self) -> bool:
        """Whether the statement was refused because rows would change."""
        return self.denial is not None and self.denial.action in _ROW_ACTIONS

    def __call__(
        self, action: int, first: str | None, second: str | None, schema: str | None, source: str | None
    ) -> int:
        """Answer SQLite's question whether the statement may do one thing."""
        if self.mode is Mode.INTERNAL:
            return sqlite3.SQLITE_OK
        access = Access(action, first or "", second or "", schema or "", source)
        if self._allows(access):
            return sqlite3.SQLITE_OK
        if self.denial is None:
            self.denial = _describe_denial(access)
        return sqlite3.SQLITE_DENY

    def _allows(self, access: Access) -> bool:
        match access.action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                return True
            case sqlite3.SQLITE_READ:
                return self._allows_read(access)
            case sqlite3.SQLITE_FUNCTION:
                return self._allows_function(access.second.lower())
            case sqlite3.SQLITE_PRAGMA:
                return self._allows_pragma(access)
            case sqlite3.SQLITE_INSERT | sqlite3.SQLITE_UPDATE | sqlite3.SQLITE_DELETE:
                return self._allows_rows(access)
            case _:
                return self._allows_schema_change(access)

    def _allows_schema_change(self, access: Access) -> bool:
        match access.action:
            case sqlite3.SQLITE_ALTER_TABLE:
                # This action has the schema as its first name and the table as its second.
                self._note_schema_change(access.second)
                return self.may_change_schema and access.first == "main" and self._may_change(access.second)
            case sqlite3.SQLITE_CREATE_VTABLE:
                self._note_schema_change(access.first)
                return self._may_change_main(access) and access.second.lower() in CREATABLE_MODULES
            case sqlite3.SQLITE_ANALYZE | sqlite3.SQLITE_REINDEX:
                self.changes_schema = True
                return self._may_change_main(access)
            case action if action in _SCHEMA_ACTIONS:
                self._note_schema_change(access.first)
                may_change_both = self._may_change(access.first) and self._may_change(access.second)
                return self._may_change_main(access) and may_change_both
            case _:
                return False

    def _may_change_main(self, access: Access) -> bool:
        return self.may_change_schema and access.schema == "main"

    def _allows_read(self, access: Access) -> bool:
        table = access.first
        column = access.second
        self.columns_read[table, column] = None
        if table.lower() in self._build.closed_modules:
            return False
        if self.visible_schema is None:
            return True
        if access.schema == "temp" and self.visible_schema.is_masked(table, column):
            self.masked_columns_read[f"{table}.{column}"] = None
        changes_rows = self.mode not in (Mode.READ, Mode.EXPLAIN)
        return self.visible_schema.may_read(table, column, access.schema, access.source, changes_rows=changes_rows)

    def _allows_function(self, name: str) -> bool:
        if name in self._build.functions or name.startswith("geopoly_"):
            return True
        # ALTER rewrites definitions by functions that only SQLite itself can call.
        return self.may_change_schema and name.startswith("sqlite_") and name not in _CLOSED_FUNCTIONS

    def _allows_pragma(self, access: Access) -> bool:
        name = access.first.lower()
        has_argument = bool(access.second)
        if has_argument and name in SET_PRAGMAS and self.may_change_schema:
            self.changes_schema = True
            return True
        if name in _SCHEMA_PRAGMAS:
            if self.visible_schema is None:
                return True
            return name in _TABLE_PRAGMAS and access.schema != "main"
        return not has_argument and name in _PLAIN_PRAGMAS

    def _note_schema_change(self, name: str) -> None:
        self._changed_objects.add(name)
        self.changes_schema = True

    def _may_change(self, name: str) -> bool:
        """Return whether `name` is no table that a virtual one keeps, or the statement is about that one."""
        owner = self.shadow_tables.get(name.lower())
        return owner is None or owner in self._changed_objects or owner in self.tables_written

    def _allows_rows(self, access: Access) -> bool:
        name = access.first.lower()
        if name == "sqlite_master":
            # Up to 3.50 the first use of a virtual table asks for this, whoever uses it. A real UPDATE of the schema
            # table is refused by SQLite, unless `writable_schema` is on; that pragma is closed.
            return self.may_change_schema or access.action == sqlite3.SQLITE_UPDATE
        if name == "sqlite_temp_master":
            return self.may_change_schema and access.action == sqlite3.SQLITE_UPDATE and self.changes_schema
        if self.may_change_schema and self._belongs_to_schema_change(access):
            return True
        match self.mode:
            case Mode.EXPLAIN:
                return True
            case Mode.WRITE | Mode.MIGRATE:
                return self._allows_write(access)
            case _:
                return False

    def _allows_write(self, access: Access) -> bool:
        name = access.first.lower()
        if access.schema != "main" or name.startswith("sqlite_") or not self._may_change(name):
            return False
        if self._reveals_masked(access):
            return False
        self.tables_written.setdefault(access.first, access.source)
        return True

    def _reveals_masked(self, access: Access) -> bool:
        """Return whether a constraint would tell of a masked column by whether the change succeeds."""
        if self.visible_schema is None or access.action != sqlite3.SQLITE_UPDATE:
            return False
        if not self.visible_schema.is_bound_to_masked(access.first, access.second):
            return False
        self.revealing_column = f"{access.first}.{access.second}"
        return True

    def _belongs_to_schema_change(self, access: Access) -> bool:
        """Return whether rows change as a part of what the statement does to the schema."""
        if access.schema != "main":
            return False
        if access.first in self._changed_objects:
            return True
        name = access.first.lower()
        is_internal = name == "sqlite_sequence" or name.startswith("sqlite_stat")
        return is_internal and self.changes_schema


def _describe_denial(access: Access) -> Denial:
    name = access.second if access.action == sqlite3.SQLITE_FUNCTION else access.first
    if access.action in _ROW_ACTIONS and name == "sqlite_master":
        return Denial(access.action, name, SCHEMA_CHANGE)
    verbs = {**_OTHER_ACTIONS, **_SCHEMA_ACTIONS, **_ROW_ACTIONS}
    return Denial(access.action, name, f"{verbs.get(access.action, 'do')} `{name[:100]}`")


_MAX_VALUE_BYTES = 64_000_000
_LIMITS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_LENGTH: _MAX_VALUE_BYTES,
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
_MAX_HEAP_BYTES = 512 * 1024 * 1024
_FULL = re.compile(r"\bFULL\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d][\w$]*")


class _Build(NamedTuple):
    """What this build of SQLite has.

    Attributes:
        functions: those that may be called, in lower case.
        closed_modules: those that may not be read as tables, in lower case.
    """

    functions: frozenset[str]
    closed_modules: frozenset[str]


@cache
def _inspect_build() -> _Build:
    """Return what this build has, where what is built in is SQLite's and all else somebody's.

    See https://sqlite.org/pragma.html#pragma_function_list.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        builtin = connection.execute("SELECT DISTINCT lower(name) FROM pragma_function_list WHERE builtin").fetchall()
        modules = {str(name).lower() for (name,) in connection.execute("SELECT name FROM pragma_module_list")}
    functions = {str(name) for (name,) in builtin} | _EXTENSION_FUNCTIONS
    closed_modules = [
        name
        for name in modules - CREATABLE_MODULES - _READABLE_MODULES
        if not name.startswith(("fts3", "fts4", "fts5", "pragma_"))
    ]
    return _Build(frozenset(functions - _CLOSED_FUNCTIONS), frozenset(closed_modules))


@cache
def _can_distrust_schemas() -> bool:
    """Return whether this build still reads full-text tables through views and triggers when it trusts no schema.

    Up to 3.41 it does not, and the authorizer sees what views and triggers do anyway.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.executescript("CREATE VIRTUAL TABLE f USING fts5 (x); CREATE VIEW v AS SELECT x FROM f")
            connection.executescript("PRAGMA trusted_schema = OFF; SELECT x FROM v")
        except sqlite3.Error:
            return False
    return True


def closed_modules() -> frozenset[str]:
    """Return the modules of this build that may not be read as tables, in lower case."""
    return _inspect_build().closed_modules


def find_closed_module_in_full_join(sql: str) -> str | None:
    """Return a module that may not be read as a table, and that `sql` names and has FULL in it.

    SQLite does not ask the authorizer about columns of virtual tables that FULL JOIN ... USING merges with others.
    """
    if not _FULL.search(sql):
        return None
    words = {word.lower() for word in _WORD.findall(sql)}
    return next((name for name in closed_modules() if name in words), None)


def set_defensive(connection: sqlite3.Connection, on: bool) -> None:
    """Have SQLite defend what virtual tables keep, or not."""
    _switch(connection, "SQLITE_DBCONFIG_DEFENSIVE", on)


def _switch(connection: sqlite3.Connection, name: str, on: bool) -> None:
    """Turn a switch of SQLite's on or off, where Python can: from 3.12 on."""
    setconfig = getattr(connection, "setconfig", None)
    if setconfig is not None:
        setconfig(getattr(sqlite3, name), on)


def apply_limits(connection: sqlite3.Connection, authorizer: Authorizer, *, read_only: bool) -> None:
    """Close on `connection` what SQLite lets one close, and have it ask `authorizer` for as long as it is open."""
    for limit, maximum in _LIMITS.items():
        connection.setlimit(limit, maximum)
    for name, on in _SWITCHES.items():
        _switch(connection, name, on)
    if _can_distrust_schemas():
        connection.execute("PRAGMA trusted_schema = OFF").close()
    connection.execute(f"PRAGMA hard_heap_limit = {_MAX_HEAP_BYTES}").close()
    connection.execute("PRAGMA cell_size_check = ON").close()
    if read_only:
        connection.execute("PRAGMA query_only = ON").close()
    else:
        connection.execute("PRAGMA foreign_keys = ON").close()
        # Some builds flush less in WAL mode; what is acknowledged must outlive a power cut.
        connection.execute("PRAGMA synchronous = FULL").close()
    connection.set_authorizer(authorizer)
