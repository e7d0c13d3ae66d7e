"""Counts the rows that a statement removes to make room for others: REPLACE tells nobody of them."""

from __future__ import annotations

import re
import sqlite3
import time
from dataclasses import dataclass
from itertools import islice

from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_sqlite.worker.connection.database import Database
from mcp_sqlite.worker.language.tokens import TOKEN

__all__ = ["CountBudget", "ReplacedRows"]

_NAME = r"""(?:"(?P<quoted>(?:[^"]|"")*)"|[\[`](?P<bracketed>[^]`]*)[]`]|(?P<plain>\w+))"""
_TARGET = re.compile(
    rf"(?P<verb>INSERT|REPLACE|UPDATE)(?:\s+OR\s+(?P<conflict>\w+))?(?:\s+INTO)?\s*(?:\bmain\s*\.\s*)?{_NAME}",
    re.IGNORECASE,
)
_VERBS = ("INSERT", "REPLACE", "UPDATE")
# From the verb to the table there are at most so many tokens, with blanks between them.
_MAX_TARGET_TOKENS = 16
_UPSERT = re.compile(r"\bDO\s+UPDATE\b", re.IGNORECASE)
_DEFINITION = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
_TRIGGERS = "SELECT name, tbl_name = ? COLLATE NOCASE, sql FROM sqlite_master WHERE type = 'trigger'"
_DELETE_TRIGGER = re.compile(r"\bDELETE\s+ON\b", re.IGNORECASE)
_REPLACES = re.compile(r"\bON\s+CONFLICT\s+REPLACE\b", re.IGNORECASE)


@dataclass
class CountBudget:
    """How long the rows of tables may still be counted in one change; of what takes longer nothing is said."""

    seconds: float = 0.2


class ReplacedRows:
    """The rows of the table that a statement is about, counted before it runs where it may replace some."""

    def __init__(self, database: Database, sql: str, budget: CountBudget) -> None:
        self._database = database
        self._budget = budget
        self._table = ""
        self._inserts = False
        self._count_before: int | None = None
        self._delete_triggers: list[str] = []
        target = _find_target(sql)
        if target is None or _UPSERT.search(sql):
            return
        name = target["plain"] or target["bracketed"] or (target["quoted"] or "").replace('""', '"')
        if not _says_replace(target) and not self._is_defined_to_replace(name):
            return
        triggers = database.run_internal(_TRIGGERS, [name])
        self._delete_triggers = [trigger for trigger, is_own, sql in triggers if is_own and _DELETE_TRIGGER.search(sql)]
        # A trigger may add and remove rows of the table itself.
        adds_or_removes = re.compile(rf"\b(?:INTO|DELETE\s+FROM)\s+[\"\[`]?{re.escape(name)}\b", re.IGNORECASE)
        if not any(adds_or_removes.search(sql) for _, _, sql in triggers):
            self._table = name
            self._inserts = target["verb"].upper() != "UPDATE"
            self._count_before = self._count_rows()

    def count(self, changed_rows: int) -> int | None:
        """Return how many rows made room for those that the statement has changed; None where that is not known."""
        if self._count_before is None:
            return None
        count_after = self._count_rows()
        if count_after is None:
            return None
        inserted = changed_rows if self._inserts else 0
        return max(0, self._count_before + inserted - count_after)

    def describe_skipped_triggers(self, count: int | None) -> str:
        """Return which triggers did not run for the rows that made room; empty if there are none, or no such row.

        Where it is not known whether there was such a row, it says what goes for one.

        SQLite runs them only with `recursive_triggers`, by which a trigger that updates its own table would not end.
        """
        if count == 0 or not self._delete_triggers:
            return ""
        names = ", ".join(self._delete_triggers)
        verb = "runs" if count is None else "ran"
        return f"REPLACE {verb} no DELETE trigger ({names}) for rows that were there; DELETE, then INSERT, does"

    def _is_defined_to_replace(self, table: str) -> bool:
        rows = self._database.run_internal(_DEFINITION, [table])
        return any(_REPLACES.search(str(sql)) for (sql,) in rows)

    def _count_rows(self) -> int | None:
        if self._budget.seconds <= 0:
            return None
        started = time.monotonic()
        try:
            with self._database.interrupt.shorten(self._budget.seconds):
                return self._database.read_internal(f"SELECT count(*) FROM main.{quote_identifier(self._table)}")
        except sqlite3.Error:
            self._database.interrupt.check()
            return None
        finally:
            self._budget.seconds -= time.monotonic() - started


def _find_target(sql: str) -> re.Match[str] | None:
    """Return the verb of a statement and the table that it is about; comments, texts and subqueries have neither."""
    depth = 0
    for token in TOKEN.finditer(sql):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0 and token["word"] is not None and token["word"].upper() in _VERBS:
            tokens = islice(TOKEN.finditer(sql, token.start()), _MAX_TARGET_TOKENS)
            return _TARGET.match("".join(" " if part.lastgroup == "skip" else part[0] for part in tokens))
    return None


def _says_replace(target: re.Match[str]) -> bool:
    """Return whether a statement itself says that rows are replaced."""
    return "REPLACE" in (target["verb"].upper(), (target["conflict"] or "").upper())
