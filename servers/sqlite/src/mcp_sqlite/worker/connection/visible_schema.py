"""The part of a database that is served: other tables do not exist, and masked columns hold `•••`.

SQLite's authorizer is not asked about all that is read: not about columns that USING and NATURAL compare, not about
rows that INSERT ... SELECT copies as they lie; and it takes a WITH for the view of its name. So names decide, which
SQLite looks up among temporary objects first (https://sqlite.org/lang_naming.html): of each table that is not served
there is a temporary view that fails as if there were none, of each with masked columns one that has `•••` in their
place. No value reaches a statement, whatever it does, nor their order: where the planner would walk an index with a
masked column, the table is read without indexes. What could pass a view by is refused for its words.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from mcp_batteries.sql.identifiers import identifier
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.tokens import BLANK, EXPLAIN_PREFIX, TOKEN

__all__ = ["VisibleSchema", "temporary_objects_allowed"]

Own = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement of this program's."""
_MASK = "•••"
_LIST = "`list_tables` lists what is served."
_GONE = f" {secrets.token_hex(8)}"
"""Behind a name it makes one that no table has."""
_NAME = r"""(?:"(?:[^"]|"")*"|\[[^]]*\]|`(?:[^`]|``)*`|'(?:[^']|'')*'|[^\W\d][\w$]*)"""
_ALLOWED = "version|source_id|compileoption_get|compileoption_used"
_TELLING = {"bytecode", "dbstat", "tables_used"}
"""Virtual tables that are there without being made, and tell of all tables."""
_VIEW = "CREATE VIEW "
"""What SQLite keeps of every view begins so."""
_CHANGE = (
    rf"(?P<before>{BLANK}(?:EXPLAIN\b{BLANK}(?:QUERY\b{BLANK}PLAN\b{BLANK})?)?"
    rf"(?:(?:INSERT(?:{BLANK}\bOR\b{BLANK}\w+)?|REPLACE){BLANK}\bINTO|UPDATE(?:{BLANK}\bOR\b{BLANK}\w+)?"
    rf"|DELETE{BLANK}\bFROM)(?!\w){BLANK})"
)
_TARGET = re.compile(rf"{_CHANGE}(?P<name>{_NAME})", re.IGNORECASE | re.DOTALL)
_REAL_TARGET = re.compile(
    rf"(?!{BLANK}(?:INSERT|REPLACE)){_CHANGE}main\.{_NAME}(?:{BLANK}\bAS\b{BLANK}{_NAME})?",
    re.IGNORECASE | re.DOTALL,
)
"""The same as `checked` gives it, with another name the table may have in it, where NOT INDEXED may follow."""
"""How a statement begins that changes rows, up to the name of their table."""
_UPPER = {number: number + 32 for number in range(ord("A"), ord("Z") + 1)}


def fold_name(name: str) -> str:
    """A name as SQLite compares it: the case of ASCII letters aside."""
    return name.translate(_UPPER)


class VisibleSchema:
    """What of one database is served, as its schema is now.

    Args:
        only: tables and views, all if there are none.
        masked: columns, as table and column.
        closed: modules of virtual tables that no statement may name, beside those that tell of all tables.
    """

    def __init__(self, only: Iterable[str], masked: Iterable[Sequence[str]], closed: Iterable[str]) -> None:
        self._only = frozenset(map(fold_name, only))
        self._said = [(table, column) for table, column in masked]
        words = "|".join(map(re.escape, sorted({*_TELLING, *closed})))
        self._around = re.compile(
            rf"""(?<![^\W\d])(?:main["'`\]]?{BLANK}(?:\.|--|/\*)|(?:{words})(?!\w)|sqlite_(?!(?:{_ALLOWED})(?!\w))\w*)""",
            re.IGNORECASE | re.DOTALL,
        )
        self._version: Any = None
        self._shadows: list[str] = []
        self._masks: dict[str, tuple[str, str]] = {}
        """The temporary views that mask, by name: without indexes, and with them."""
        self._ordering: set[str] = set()
        """Indexes in which rows have the order of masked values."""
        self._indexed = False
        self._hidden: set[str] = set()
        self._kept: set[str] = set()
        """Tables in which virtual ones that are served keep what they hold: those read them."""
        self._tables: set[str] = set()
        """Tables of which columns are masked."""
        self.masked: dict[str, set[str]] = {}
        """Masked columns by table, all folded."""

    def refresh(self, own: Own, defend: Callable[[bool], None]) -> None:
        """Be as the schema is now, where `own` runs statements of this program.

        Args:
            defend: turns SQLite's defence of what virtual tables keep on and off: it lets nothing have such a name.

        Raises:
            Failure: a masked column is not there.
        """
        self._defend = defend
        version = own("PRAGMA main.schema_version")
        if version == self._version:
            self._use_indexes(own, False)
            return
        self._version, self._indexed = None, False
        with temporary_objects_allowed(own, self._defend):
            for name in (*self._shadows, *self._masks):
                own(f"DROP VIEW IF EXISTS temp.{identifier(name)}")
            self._shadows, self._masks = [], {}
            self._load(own)
        self._version = version

    def _use_indexes(self, own: Own, use: bool) -> None:
        if use is self._indexed:
            return
        self._indexed = use
        with temporary_objects_allowed(own, self._defend):
            for name, views in self._masks.items():
                own(f"DROP VIEW temp.{identifier(name)}")
                own(views[use])

    def hide_masked_order(self, own: Own, plan: Callable[[str], list[Any]], sql: str) -> str:
        """Have rows that a statement meets come in an order that masked values don't give; the statement for that.

        Args:
            plan: what EXPLAIN QUERY PLAN says of a statement of the caller's.
        """
        if not self._ordering:
            return sql
        self._use_indexes(own, True)
        if not EXPLAIN_PREFIX.match(sql) and self._walks_masked_index(plan(sql)):
            self._use_indexes(own, False)
            if (target := _REAL_TARGET.match(sql)) and self._walks_masked_index(plan(sql)):
                return f"{target[0]} NOT INDEXED{sql[target.end() :]}"
        return sql

    def _walks_masked_index(self, steps: list[Any]) -> bool:
        return any(f"INDEX {name}" in str(step[3]) for step in steps for name in self._ordering)

    def _load(self, own: Own) -> None:
        objects = [
            (str(name), str(kind), str(sql or ""))
            for name, kind, sql in own("SELECT name, type, sql FROM main.sqlite_master WHERE type IN ('table', 'view')")
            if not fold_name(str(name)).startswith("sqlite_")
        ]
        columns = {fold_name(name): _columns(own, name) for name, _, _ in objects}
        self.masked, self._ordering = {}, set()
        for table, column in self._said:
            if fold_name(column) not in {fold_name(name) for name, _ in columns.get(fold_name(table), ())}:
                raise Failure(
                    "refused",
                    f"The operator masks `{table}.{column}`, which is not there: nothing is served until that is so.",
                    "The operator can mend `--mask`.",
                )
            self.masked.setdefault(fold_name(table), set()).add(fold_name(column))
        for name, _, sql in objects:
            if masked := self.masked.get(fold_name(name)):
                _mask_generated(sql, columns[fold_name(name)], masked)
                self._ordering |= _indexes_with(own, name, masked)
        self._tables = {fold_name(name) for name, kind, _ in objects if kind == "table"} & self.masked.keys()
        leading = self._leading(objects)
        self._hidden = {fold_name(name) for name, _, _ in objects if self._only and fold_name(name) not in self._only}
        virtual = {fold_name(name) for name, _, sql in objects if _is_virtual(sql)}
        # What a virtual table keeps has the values that it has.
        unseen = virtual & (leading | self.masked.keys())
        self._hidden |= {
            fold_name(name)
            for name, _, _ in objects
            if (fold_name(name) in leading and (fold_name(name) in virtual or fold_name(name) in self.masked))
            or any(fold_name(name).startswith(f"{owner}_") for owner in unseen)
        }
        self._kept = {
            fold_name(name) for name, _, _ in objects for owner in virtual - self._hidden
            if fold_name(name).startswith(f"{owner}_")
        }  # fmt: skip
        for name, _, sql in objects:
            self._cover(own, name, sql, [column for column, _ in columns[fold_name(name)]], fold_name(name) in leading)

    def _leading(self, objects: Sequence[tuple[str, str, str]]) -> set[str]:
        """Views and virtual tables that lead to masked columns: who does not name a table doesn't reach it."""
        found: set[str] = set()
        while True:
            names = [_bare(name) for name in (*self.masked, *found)]
            more = {
                fold_name(name)
                for name, kind, sql in objects
                if (kind == "view" or _is_virtual(sql))
                and any(word in _bare(sql[len(_VIEW) + len(name) :]) for word in names)
            }
            if more <= found:
                return found
            found |= more

    def _cover(self, own: Own, name: str, sql: str, columns: Sequence[str], leads: bool) -> None:
        word = fold_name(name)
        view = ""
        if word in self._hidden:
            pass
        elif masked := self.masked.get(word):
            listed = (f"'{_MASK}' AS {identifier(c)}" if fold_name(c) in masked else identifier(c) for c in columns)
            view = f"CREATE TEMP VIEW {identifier(name)} AS SELECT {', '.join(listed)} FROM main.{identifier(name)}"
            self._masks[name] = (f"{view} NOT INDEXED" if word in self._tables else view, view)
            own(self._masks[name][0])
            return
        elif leads:
            # Made again as a temporary one it means the temporary views of what it names.
            if sql.startswith(_VIEW) and not self._around.search(sql):
                view = f"CREATE TEMP VIEW {sql[len(_VIEW) :]}"
            else:
                self._hidden.add(word)
        else:
            return
        try:
            own(view or f"CREATE TEMP VIEW {identifier(name)} AS SELECT * FROM main.{identifier(name + _GONE)}")
        except sqlite3.Error:
            self._hidden.add(word)
            own(f"CREATE TEMP VIEW {identifier(name)} AS SELECT * FROM main.{identifier(name + _GONE)}")
        self._shadows.append(name)

    def has_masked_order(self, index: str) -> bool:
        """Whether an index has masked values in it, whose statistics would tell of them."""
        return index in self._ordering

    def is_visible(self, name: str) -> bool:
        """Whether a table or view is served."""
        return fold_name(name) not in self._hidden and not fold_name(name).startswith("sqlite_")

    def is_masked(self, table: str, column: str | None = None) -> bool:
        """Whether a column of a table is masked, or any."""
        return fold_name(table) in self.masked and (
            column is None or fold_name(column) in self.masked[fold_name(table)]
        )

    def may_read(self, table: str, column: str, schema: str, inner: str | None, *, changes: bool) -> bool:
        """Whether a statement may read a column, as far as SQLite asks: behind the views a second wall.

        What a change puts into other rows is never a mask.
        """
        if schema == "temp":
            return not (changes and self.is_masked(table, column))
        if self.is_masked(table, column):
            return False
        return fold_name(table) not in self._hidden or fold_name(table) in self._kept or inner is not None or not column

    def rewrite(self, sql: str) -> str:
        """A caller's statement as SQLite is to compile it: the table that it changes is the real one.

        Raises:
            Failure: it has words that lead past the temporary views.
        """
        if found := self._around.search(sql):
            raise Failure(
                "refused",
                f"Where a part of the database is served no statement may say `{found[0].rstrip()[:20]}`.",
                f"{_LIST} Names of tables stand alone; texts can be bound as `parameters`.",
            )
        target = _TARGET.match(sql)
        if target is None or fold_name(_unquoted(target["name"])) not in self._tables - self._hidden:
            return sql
        return f"{target['before']}main.{sql[target.start('name') :]}"

    def redact_error(self, said: str, sql: str) -> str:
        """SQLite's words on `sql`, as if there were no more than is served."""
        if found := re.search(f"(?:main\\.)?(.*){_GONE}", said):
            return f"no such table: {found[1].rpartition('main.')[2]}"
        found = re.match("cannot modify (.*) because it is a view", said) or re.match("'(.*)' is not a function", said)
        if found and not self.is_visible(found[1]):
            return f"no such table: {found[1]}"
        words = set(re.findall(r"\w+", fold_name(said))) - set(re.findall(r"\w+", fold_name(sql)))
        return "what it leads to is not served" if words & self._hidden else said


def _mask_generated(sql: str, columns: Sequence[tuple[str, bool]], masked: set[str]) -> None:
    """Add to a table's masked columns those that are generated from them; where nobody can tell, all generated."""
    definitions = _definitions(sql)
    names = {fold_name(name) for name, generated in columns if generated}
    while True:
        more = {
            name
            for name in names - masked
            if name not in definitions or any(_bare(word) in _bare(definitions[name]) for word in masked)
        }
        if not more:
            return
        masked |= more


def _definitions(sql: str) -> dict[str, str]:
    """The definition of each column in a CREATE TABLE, by its folded name."""
    found: dict[str, str] = {}
    depth = 0
    item: list[str] = []
    for match in TOKEN.finditer(sql):
        token = match[0]
        if match.lastgroup == "skip":
            token = " "
        depth += {"(": 1, ")": -1}.get(token, 0)
        if (token == "," and depth == 1) or (token == ")" and depth == 0):
            name = next((word for word in item if word.strip()), "")
            found.setdefault(fold_name(_unquoted(name)), "".join(item))
            item = []
        elif depth > 1 or (depth == 1 and token != "(") or token == ")":
            item.append(token)
    return found


def _columns(own: Own, table: str) -> list[tuple[str, bool]]:
    """Columns of a table that SELECT * shows, and whether they are generated."""
    try:
        rows = own(f"PRAGMA main.table_xinfo({identifier(table)})")
    except sqlite3.Error:
        return []  # a view over what is gone, a module that this build has not
    return [(str(row[1]), row[6] in (2, 3)) for row in rows if row[6] != 1]


def _indexes_with(own: Own, table: str, masked: set[str]) -> set[str]:
    """Indexes of a table that have a masked column in them, or may have one in an expression or condition."""
    found: set[str] = set()
    for _, name, _, _, partial in own(f"PRAGMA main.index_list({identifier(table)})"):
        parts = [row[2] for row in own(f"PRAGMA main.index_xinfo({identifier(str(name))})") if row[1] != -1]
        sql = own("SELECT coalesce(sql, '') FROM main.sqlite_master WHERE type = 'index' AND name = ?", [name])
        words = _bare(str(sql[0][0])) if sql and (partial or None in parts) else ""
        if any(fold_name(str(part)) in masked for part in parts) or any(_bare(word) in words for word in masked):
            found.add(str(name))
    return found


@contextmanager
def temporary_objects_allowed(own: Own, defend: Callable[[bool], None]) -> Generator[None]:
    """Let temporary objects be made where nothing else can be changed."""
    before = own("PRAGMA query_only")[0][0]
    own("PRAGMA query_only = OFF")
    defend(False)
    try:
        yield
    finally:
        defend(True)
        own(f"PRAGMA query_only = {before}")


def _is_virtual(sql: str) -> bool:
    return fold_name(sql[:14]) == "create virtual"


def _bare(text: str) -> str:
    """Folded, without quotes: however a name is spelled in SQL, it is in this."""
    return re.sub("[\"'`]", "", fold_name(text))


def _unquoted(word: str) -> str:
    if word[:1] not in ('"', "'", "`", "["):
        return word
    return word[1:-1] if word[0] == "[" else word[1:-1].replace(word[0] * 2, word[0])
