"""The part of a database that is served: other tables do not exist, and masked columns hold `•••`.

SQLite's authorizer is not asked about all that is read: not about columns that USING and NATURAL compare, not about
rows that INSERT ... SELECT copies as they lie; and it takes a WITH for the view of its name. So names decide, which
SQLite looks up among temporary objects first (https://sqlite.org/lang_naming.html): of each table that is not served
there is a temporary view that fails as if there were none, of each with masked columns one that has `•••` in their
place. No value reaches a statement, whatever it does, nor their order: where the planner would walk an index with a
masked column, the table is read without indexes. What could pass a view by is refused for its words.

So this program's own queries name tables without `main.` where they show rows, and PRAGMAs with it; lists ask
`Database.is_visible`; and callers' statements go through `statements.execute`. All of it is proved by
`tests/sqlite/prove_visible_schema.py`.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import BLANK, EXPLAIN_PREFIX, TOKEN, list_checks

__all__ = ["MASK", "VisibleSchema", "temporary_objects_allowed"]

# Runs a statement of this program's, and returns its rows.
RunInternal = Callable[..., list[tuple[Any, ...]]]
MASK = "•••"
_HOW_TO_LIST = "`list_tables` lists what is served."
# Behind a name it makes one that no table has.
_MISSING_SUFFIX = f" {secrets.token_hex(8)}"
_NAME = r"""(?:"(?:[^"]|"")*"|\[[^]]*\]|`(?:[^`]|``)*`|'(?:[^']|'')*'|[^\W\d][\w$]*)"""
_ALLOWED_SQLITE_FUNCTIONS = "version|source_id|compileoption_get|compileoption_used"
# Virtual tables that are there without being made, and tell of all tables.
_REVEALING_MODULES = {"bytecode", "dbstat", "tables_used"}
# What SQLite keeps of every view begins so.
_CREATE_VIEW = "CREATE VIEW "
# How a statement begins that changes rows, up to the name of their table.
_ROW_CHANGE = (
    rf"(?P<before>{BLANK}(?:EXPLAIN\b{BLANK}(?:QUERY\b{BLANK}PLAN\b{BLANK})?)?"
    rf"(?:(?:INSERT(?:{BLANK}\bOR\b{BLANK}\w+)?|REPLACE){BLANK}\bINTO|UPDATE(?:{BLANK}\bOR\b{BLANK}\w+)?"
    rf"|DELETE{BLANK}\bFROM)(?!\w){BLANK})"
)
_TARGET = re.compile(rf"{_ROW_CHANGE}(?P<name>{_NAME})", re.IGNORECASE | re.DOTALL)
# The same as `rewrite` gives it, with the alias the table may have, where NOT INDEXED may follow.
_REAL_TARGET = re.compile(
    rf"(?!{BLANK}(?:INSERT|REPLACE)){_ROW_CHANGE}main\.{_NAME}(?:{BLANK}\bAS\b{BLANK}{_NAME})?",
    re.IGNORECASE | re.DOTALL,
)
_NOT_NULL = re.compile(r"\bNOT\s+NULL\b", re.IGNORECASE)
_QUOTES = re.compile(r"[\"'`\[\]\s]+")
_TO_LOWER = {number: number + 32 for number in range(ord("A"), ord("Z") + 1)}


def fold_name(name: str) -> str:
    """Return a name as SQLite compares it: the case of ASCII letters aside."""
    return name.translate(_TO_LOWER)


class _Object(NamedTuple):
    """A table or view.

    Attributes:
        columns: those that SELECT * shows, by their names as they are spelled, and whether they are generated.
    """

    name: str
    kind: str
    sql: str
    columns: dict[str, bool]

    @property
    def folded_name(self) -> str:
        return fold_name(self.name)

    @property
    def generated_columns(self) -> set[str]:
        """The folded names of columns that are generated."""
        return {fold_name(column) for column, is_generated in self.columns.items() if is_generated}

    @property
    def is_virtual(self) -> bool:
        return fold_name(self.sql[:14]) == "create virtual"


class _MaskingView(NamedTuple):
    """The temporary view that masks columns of a table, as SQL: one that uses no index, and one that does."""

    without_indexes: str
    with_indexes: str


class VisibleSchema:
    """What of one database is served, as its schema is now.

    Args:
        tables: tables and views, all if there are none.
        masked_columns: columns, as table and column.
        closed_modules: modules of virtual tables that no statement may name, beside those that tell of all tables.
    """

    def __init__(
        self, tables: Iterable[str], masked_columns: Iterable[Sequence[str]], closed_modules: Iterable[str]
    ) -> None:
        self._configured_tables = frozenset(map(fold_name, tables))
        self._configured_columns = [(table, column) for table, column in masked_columns]
        modules = "|".join(map(re.escape, sorted({*_REVEALING_MODULES, *closed_modules})))
        # Words that lead past the temporary views.
        self._forbidden_words = re.compile(
            rf"""(?<![^\W\d])(?:main["'`\]]?{BLANK}(?:\.|--|/\*)|(?:{modules})(?!\w)"""
            rf"""|sqlite_(?!(?:{_ALLOWED_SQLITE_FUNCTIONS})(?!\w))\w*)""",
            re.IGNORECASE | re.DOTALL,
        )
        self._schema_version: Any = None
        self._hiding_views: list[str] = []
        self._masking_views: dict[str, _MaskingView] = {}
        self._uses_indexes = False
        # Indexes in which rows have the order of masked values.
        self._masked_indexes: set[str] = set()
        # All names from here on are folded.
        self._hidden: set[str] = set()
        # Tables in which virtual ones that are served keep what they hold: those read them.
        self._shadow_tables: set[str] = set()
        # Tables, and no views, of which columns are masked.
        self._masked_tables: set[str] = set()
        # Those of them that have no column of that name.
        self._tables_without_rowid: set[str] = set()
        self._masked: dict[str, set[str]] = {}
        # Columns that a constraint compares with a masked one, by table: to set one tells what the other is.
        self._bound: dict[str, set[str]] = {}

    def refresh(self, run_internal: RunInternal, set_defensive: Callable[[bool], None]) -> None:
        """Be as the schema is now.

        Args:
            run_internal: runs statements of this program.
            set_defensive: turns SQLite's defence of what virtual tables keep on and off: it lets nothing have such a
                name.

        Raises:
            Failure: a masked column is not there.
        """
        self._set_defensive = set_defensive
        schema_version = run_internal("PRAGMA main.schema_version")
        if schema_version == self._schema_version:
            self._use_indexes(run_internal, use=False)
            return
        self._schema_version = None
        self._uses_indexes = False
        with temporary_objects_allowed(run_internal, set_defensive):
            for name in (*self._hiding_views, *self._masking_views):
                run_internal(f"DROP VIEW IF EXISTS temp.{quote_identifier(name)}")
            self._hiding_views = []
            self._masking_views = {}
            self._make_views(run_internal)
        self._schema_version = schema_version

    def _use_indexes(self, run_internal: RunInternal, *, use: bool) -> None:
        if use is self._uses_indexes:
            return
        self._uses_indexes = use
        with temporary_objects_allowed(run_internal, self._set_defensive):
            for name, view in self._masking_views.items():
                run_internal(f"DROP VIEW temp.{quote_identifier(name)}")
                run_internal(view.with_indexes if use else view.without_indexes)

    def hide_masked_order(self, run_internal: RunInternal, plan: Callable[[str], list[Any]], sql: str) -> str:
        """Have rows that a statement meets come in an order that masked values don't give; return it for that.

        Args:
            plan: returns what EXPLAIN QUERY PLAN says of a statement of the caller's.
        """
        if not self._masked_indexes:
            return sql
        self._use_indexes(run_internal, use=True)
        if EXPLAIN_PREFIX.match(sql) or not self._walks_masked_index(plan(sql)):
            return sql
        self._use_indexes(run_internal, use=False)
        target = _REAL_TARGET.match(sql)
        if target is not None and self._walks_masked_index(plan(sql)):
            return f"{target[0]} NOT INDEXED{sql[target.end() :]}"
        return sql

    def _walks_masked_index(self, steps: list[Any]) -> bool:
        details = "\n".join(str(detail) for _, _, _, detail in steps)
        return any(f"INDEX {name}" in details for name in self._masked_indexes)

    def _make_views(self, run_internal: RunInternal) -> None:
        objects = _read_objects(run_internal)
        self._find_masked(run_internal, objects)
        dependents = self._find_dependents(objects)
        self._find_hidden(objects, dependents)
        for item in objects:
            self._cover(run_internal, item, depends_on_masked=item.folded_name in dependents)

    def _find_masked(self, run_internal: RunInternal, objects: Sequence[_Object]) -> None:
        """Find the masked columns, those generated from them, and the indexes that have one."""
        self._masked = {}
        self._bound = {}
        self._masked_indexes = set()
        columns: dict[str, set[str]] = {}
        for item in objects:
            columns[item.folded_name] = {fold_name(column) for column in item.columns}
        for table, column in self._configured_columns:
            if fold_name(column) not in columns.get(fold_name(table), ()):
                raise Failure(
                    "refused",
                    f"The operator masks `{table}.{column}`, which is not there: nothing is served until that is so.",
                    "The operator can mend `--mask`.",
                )
            self._masked.setdefault(fold_name(table), set()).add(fold_name(column))
        for item in objects:
            masked = self._masked.get(item.folded_name)
            if masked:
                _mask_generated_columns(item, masked)
                self._masked_indexes |= _find_indexes_with(run_internal, item.name, masked)
                self._bound[item.folded_name] = _find_bound_columns(run_internal, item, masked)
        tables = {item.folded_name for item in objects if item.kind == "table"}
        self._masked_tables = tables & self._masked.keys()
        self._tables_without_rowid = {table for table in self._masked_tables if "rowid" not in columns[table]}

    def _find_dependents(self, objects: Sequence[_Object]) -> set[str]:
        """Return views and virtual tables that lead to masked columns: who does not name a table doesn't reach it."""
        dependents: set[str] = set()
        while True:
            names = [_remove_quotes(name) for name in (*self._masked, *dependents)]
            more: set[str] = set()
            for item in objects:
                if item.kind == "view" or item.is_virtual:
                    definition = _remove_quotes(item.sql[len(_CREATE_VIEW) + len(item.name) :])
                    if any(name in definition for name in names):
                        more.add(item.folded_name)
            if more <= dependents:
                return dependents
            dependents |= more

    def _find_hidden(self, objects: Sequence[_Object], dependents: set[str]) -> None:
        """Find the tables that are not served, and those that virtual ones keep for themselves."""
        names = {item.folded_name for item in objects}
        virtual = {item.folded_name for item in objects if item.is_virtual}
        hidden: set[str] = set()
        if self._configured_tables:
            hidden = names - self._configured_tables
        # What a virtual table keeps has the values that it has.
        unserved_owners = virtual & (dependents | self._masked.keys())
        for name in names:
            leads_to_masked = name in dependents and (name in virtual or name in self._masked)
            if leads_to_masked or _is_owned(name, unserved_owners):
                hidden.add(name)
        self._hidden = hidden
        self._shadow_tables = {name for name in names if _is_owned(name, virtual - hidden)}

    def _cover(self, run_internal: RunInternal, item: _Object, *, depends_on_masked: bool) -> None:
        """Make the temporary view that stands before a table or view which is not served as it is."""
        name = item.folded_name
        if name not in self._hidden and name in self._masked:
            self._cover_masked(run_internal, item)
            return
        if name not in self._hidden and not depends_on_masked:
            return
        if name not in self._hidden:
            # Made again as a temporary one it means the temporary views of what it names.
            if item.sql.startswith(_CREATE_VIEW) and not self._forbidden_words.search(item.sql):
                try:
                    run_internal(f"CREATE TEMP VIEW {item.sql[len(_CREATE_VIEW) :]}")
                    self._hiding_views.append(item.name)
                    return
                except sqlite3.Error:
                    pass
            self._hidden.add(name)
        missing = quote_identifier(item.name + _MISSING_SUFFIX)
        run_internal(f"CREATE TEMP VIEW {quote_identifier(item.name)} AS SELECT * FROM main.{missing}")
        self._hiding_views.append(item.name)

    def _cover_masked(self, run_internal: RunInternal, item: _Object) -> None:
        masked = self._masked[item.folded_name]
        columns: list[str] = []
        for column in item.columns:
            if fold_name(column) in masked:
                columns.append(f"'{MASK}' AS {quote_identifier(column)}")
            else:
                columns.append(quote_identifier(column))
        name = quote_identifier(item.name)
        with_indexes = f"CREATE TEMP VIEW {name} AS SELECT {', '.join(columns)} FROM main.{name}"
        without_indexes = with_indexes
        if item.folded_name in self._masked_tables:
            without_indexes = f"{with_indexes} NOT INDEXED"
        self._masking_views[item.name] = _MaskingView(without_indexes, with_indexes)
        run_internal(without_indexes)

    def has_masked_order(self, index: str) -> bool:
        """Return whether an index has masked values in it, whose statistics would tell of them."""
        return index in self._masked_indexes

    def is_visible(self, name: str) -> bool:
        """Return whether a table or view is served."""
        return fold_name(name) not in self._hidden and not fold_name(name).startswith("sqlite_")

    def is_masked(self, table: str, column: str | None = None) -> bool:
        """Return whether a column of a table is masked, or any."""
        masked = self._masked.get(fold_name(table))
        if masked is None:
            return False
        return column is None or fold_name(column) in masked

    def is_bound_to_masked(self, table: str, column: str) -> bool:
        """Return whether a CHECK or a unique index compares a column with a masked one."""
        return fold_name(column) in self._bound.get(fold_name(table), ())

    def lacks_rowid(self, table: str, column: str, schema: str) -> bool:
        """Return whether a column is the rowid of a table with masked columns, of which the view knows nothing."""
        return schema == "temp" and fold_name(column) == "rowid" and fold_name(table) in self._tables_without_rowid

    def may_read(self, table: str, column: str, schema: str, source: str | None, *, changes_rows: bool) -> bool:
        """Return whether a statement may read a column, as far as SQLite asks: behind the views a second wall.

        What a change puts into other rows is never a mask.
        """
        if self.lacks_rowid(table, column, schema):
            return False
        if schema == "temp":
            return not (changes_rows and self.is_masked(table, column))
        if self.is_masked(table, column):
            return False
        name = fold_name(table)
        return name not in self._hidden or name in self._shadow_tables or source is not None or not column

    def rewrite(self, sql: str) -> str:
        """Return a caller's statement as SQLite is to compile it: the table that it changes is the real one.

        Raises:
            Failure: it has words that lead past the temporary views.
        """
        forbidden = self._forbidden_words.search(sql)
        if forbidden is not None:
            raise Failure(
                "refused",
                f"Where a part of the database is served no statement may say `{forbidden[0].rstrip()[:20]}`.",
                f"{_HOW_TO_LIST} Names of tables stand alone; texts can be bound as `parameters`.",
            )
        target = _TARGET.match(sql)
        if target is None or fold_name(_unquote(target["name"])) not in self._masked_tables - self._hidden:
            return sql
        return f"{target['before']}main.{sql[target.start('name') :]}"

    def redact_error(self, message: str, sql: str) -> str:
        """Return SQLite's words on `sql`, as if there were no more than is served."""
        before, is_missing, _ = message.rpartition(_MISSING_SUFFIX)
        if is_missing:
            return f"no such table: {before.rpartition('main.')[2]}"
        view = re.match("cannot modify (.*) because it is a view", message)
        function = re.match("'(.*)' is not a function", message)
        for named in (view, function):
            if named is not None and not self.is_visible(named[1]):
                return f"no such table: {named[1]}"
        new_words = set(re.findall(r"\w+", fold_name(message))) - set(re.findall(r"\w+", fold_name(sql)))
        if new_words & self._hidden:
            return "what it leads to is not served"
        return message


def _read_objects(run_internal: RunInternal) -> list[_Object]:
    objects: list[_Object] = []
    for name, kind, sql in run_internal(
        "SELECT name, type, sql FROM main.sqlite_master WHERE type IN ('table', 'view')"
    ):
        if not fold_name(str(name)).startswith("sqlite_"):
            objects.append(_Object(str(name), str(kind), str(sql or ""), _read_columns(run_internal, str(name))))
    return objects


def _is_owned(name: str, owners: Collection[str]) -> bool:
    """Return whether a table is called like one that a virtual table keeps for itself."""
    return any(name.startswith(f"{owner}_") for owner in owners)


def _mask_generated_columns(item: _Object, masked: set[str]) -> None:
    """Add to a table's masked columns those that are generated from them; where nobody can tell, all generated."""
    definitions = _split_definitions(item.sql)
    generated = item.generated_columns
    while True:
        more: set[str] = set()
        for name in generated - masked:
            definition = _remove_quotes(definitions.get(name, ""))
            if name not in definitions or any(_remove_quotes(column) in definition for column in masked):
                more.add(name)
        if not more:
            return
        masked |= more


_DEPTH_CHANGES = {"(": 1, ")": -1}
# A token and the depth of parentheses behind it.
_LIST_START = ("(", 1)
_DEFINITION_ENDS = ((",", 1), (")", 0))


def _split_definitions(sql: str) -> dict[str, str]:
    """Return the definition of each column in a CREATE TABLE, by its folded name."""
    definitions: dict[str, str] = {}
    depth = 0
    tokens: list[str] = []
    for match in TOKEN.finditer(sql):
        token = " " if match.lastgroup == "skip" else match[0]
        depth += _DEPTH_CHANGES.get(token, 0)
        if (token, depth) in _DEFINITION_ENDS:
            _add_definition(definitions, tokens)
            tokens = []
        elif token == ")" or (depth >= 1 and (token, depth) != _LIST_START):
            tokens.append(token)
    return definitions


def _add_definition(definitions: dict[str, str], tokens: Sequence[str]) -> None:
    name = next(filter(str.strip, tokens), "")
    definitions.setdefault(fold_name(_unquote(name)), "".join(tokens))


def _read_columns(run_internal: RunInternal, table: str) -> dict[str, bool]:
    """Return the columns of a table that SELECT * shows, and whether they are generated."""
    try:
        rows = run_internal(f"PRAGMA main.table_xinfo({quote_identifier(table)})")
    except sqlite3.Error:
        return {}  # a view over what is gone, a module that this build has not
    return {str(name): hidden in (2, 3) for _, name, _, _, _, _, hidden in rows if hidden != 1}


def _find_indexes_with(run_internal: RunInternal, table: str, masked: set[str]) -> set[str]:
    """Return indexes of a table that have a masked column in them, or may have one in an expression or condition."""
    indexes: set[str] = set()
    for _, index, _, _, is_partial in run_internal(f"PRAGMA main.index_list({quote_identifier(table)})"):
        name = str(index)
        rows = run_internal(f"PRAGMA main.index_xinfo({quote_identifier(name)})")
        # The rowid has the number -1, an expression no name.
        columns = [column for _, number, column, *_ in rows if number != -1]
        definition = ""
        if is_partial or None in columns:
            definition = _remove_quotes(_read_index_sql(run_internal, name))
        has_masked_column = any(fold_name(str(column)) in masked for column in columns)
        names_masked_column = any(_remove_quotes(column) in definition for column in masked)
        if has_masked_column or names_masked_column:
            indexes.add(name)
    return indexes


def _find_bound_columns(run_internal: RunInternal, item: _Object, masked: set[str]) -> set[str]:
    """Return columns whose change tells of a masked one that a CHECK, a unique index or a NOT NULL has too."""
    parts = list_checks(item.sql)
    for _, index, is_unique, *_ in run_internal(f"PRAGMA main.index_list({quote_identifier(item.name)})"):
        if is_unique:
            columns = run_internal(f"PRAGMA main.index_info({quote_identifier(str(index))})")
            names = [str(column) for _, _, column in columns if column is not None]
            parts.append(" ".join([_read_index_sql(run_internal, str(index)), *map(quote_identifier, names)]))
    definitions = _split_definitions(item.sql)
    generated = item.generated_columns
    parts += [definitions[column] for column in generated if _NOT_NULL.search(definitions.get(column, ""))]
    bound: set[str] = set()
    for part in parts:
        columns = _find_named_columns(part, item, definitions)
        if columns & masked:
            bound |= columns - masked
            stored_masked = columns & masked - generated
            # Set alone it tells nothing of others.
            if len(stored_masked) > 1:
                bound |= stored_masked
    return bound


def _find_named_columns(part: str, item: _Object, definitions: dict[str, str]) -> set[str]:
    """Return the columns that a part of a definition names; what a generated one is made of counts as named with it."""
    named: set[str] = set()
    words = part
    while True:
        more = {column for column in map(fold_name, item.columns) if _names_column(words, column)} - named
        if not more:
            return named
        named |= more
        words = " ".join(definitions.get(column, "") for column in more & item.generated_columns)


def _names_column(sql: str, column: str) -> bool:
    """Return whether a part of a definition has the name of a column in it, in any quotes."""
    words = _QUOTES.sub(" ", fold_name(column)).strip()
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", _QUOTES.sub(" ", fold_name(sql))) is not None


def _read_index_sql(run_internal: RunInternal, index: str) -> str:
    rows = run_internal("SELECT coalesce(sql, '') FROM main.sqlite_master WHERE type = 'index' AND name = ?", [index])
    return str(rows[0][0]) if rows else ""


@contextmanager
def temporary_objects_allowed(run_internal: RunInternal, set_defensive: Callable[[bool], None]) -> Generator[None]:
    """Let temporary objects be made where nothing else can be changed, while the block lasts."""
    ((query_only,),) = run_internal("PRAGMA query_only")
    run_internal("PRAGMA query_only = OFF")
    set_defensive(False)
    try:
        yield
    finally:
        set_defensive(True)
        run_internal(f"PRAGMA query_only = {query_only}")


def _remove_quotes(text: str) -> str:
    """Return a text folded and without quotes: however a name is spelled in SQL, it is in this."""
    return re.sub("[\"'`]", "", fold_name(text))


def _unquote(word: str) -> str:
    quote = word[:1]
    if quote == "[":
        return word[1:-1]
    if quote in ('"', "'", "`"):
        return word[1:-1].replace(quote * 2, quote)
    return word
