"""Tries a way back where nobody sees it, and reports in its place what fails and what it leaves behind."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from mcp_postgres.engine.change.catalog_diff import read_current_objects
from mcp_postgres.engine.change.database_object import (
    ColumnState,
    DatabaseObject,
    ObjectKind,
    ObjectsByKey,
    has_kind,
)
from mcp_postgres.engine.change.undo.schema_change import SchemaChange
from mcp_postgres.engine.change.undo.sql_comments import remark
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.statement_splitter import split_statements, strip_leading_comments

__all__ = ["UNTRIED", "try_undo"]

# Where the change takes long, does more than define, or is a role's that code of others may meet.
UNTRIED = "-- nobody has tried these statements"

# What it takes at most.
_MAX_SECONDS = 3.0
# Milliseconds that it waits for somebody's lock.
_LOCK_MILLISECONDS = 100
_DEFINING = re.compile(r"(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE)\b")
# States of errors that say nothing of what comes in a transaction of its own.
#
# XX is PostgreSQL's own: 18 lets no savepoint come right behind ALTER DOMAIN ... DROP CONSTRAINT.
_UNRELATED_STATES = re.compile("55P04|55006|55P03|40|53|54|57|XX")
_MISSING = ("42704", "42P01", "42883", "3F000")
_NO_SUCH = "nothing is there"
# Parts of a state that are the same in another object of that name: no numbers of objects.
_COMPARED_PARTS: dict[str, tuple[int, ...]] = {
    ObjectKind.RELATION: (1, 2, 3, 4, 5, 8, 11),
    ObjectKind.COLUMN: (1, 3, 4, 5, 6, 7, 8, 9),
    ObjectKind.CONSTRAINT: (0, 1),
    ObjectKind.TRIGGER: (0, 2),
    ObjectKind.RULE: (0,),
    ObjectKind.STATISTICS: (0,),
    ObjectKind.FUNCTION: (2,),
    ObjectKind.TYPE: (0, 1, 3),
    ObjectKind.SCHEMA: (1,),
    ObjectKind.COMMENT: (0,),
    ObjectKind.GRANT: (0, 1),
    ObjectKind.EXTENSION: (0,),
}


async def try_undo(
    session: Session, statements: Sequence[str], change: SchemaChange, lines: Sequence[str]
) -> Sequence[str]:
    """Return the way back with what fails of it as a remark, and remarks for what it leaves.

    As it was where that takes long.

    The transaction is rolled back behind this.

    Args:
        statements: the change, which is not there now, and is made once more.
        lines: the way back.
    """
    end = time.monotonic() + _MAX_SECONDS
    try:
        await _limit_time(session, end)
        for statement in statements:
            await session.run_pipeline((statement, ()))
        await session.run("SET CONSTRAINTS ALL IMMEDIATE")
        tried = await _try_lines(session, lines, end)
        now = await read_current_objects(session, {_oid_of_key(key) for key in {*change.was, *change.now}})
    except (psycopg.Error, TimeoutError, LookupError, ValueError):  # nor does a mistake of ours fail the dry run
        return [*lines, UNTRIED]
    return [*tried, *_find_leftovers(change, now, tried)]


async def _try_lines(session: Session, lines: Sequence[str], end: float) -> list[str]:
    """Return those that work, in an order that works, and remarks why the others fail."""
    working: list[str] = []
    failures = dict.fromkeys(lines, "")
    while failures:
        works_now = await _try_remaining(session, failures, end)
        if not works_now:
            break
        working += works_now
    return working + [remark(f"not undone, for {failure}: {line}") for line, failure in failures.items()]


async def _try_remaining(session: Session, failures: dict[str, str], end: float) -> list[str]:
    """Return the lines that work now, which are failures no more; the others get their present reasons."""
    working: list[str] = []
    for line, failure in [*failures.items()]:
        # What comes back behind a drop that found nothing must not be met by it.
        if line.startswith("DROP ") and _NO_SUCH in failure:
            continue
        error = await _try_line(session, line, end)
        if error is None:
            working.append(line)
            del failures[line]
        else:
            failures[line] = error
    return working


async def _try_line(session: Session, line: str, end: float) -> str | None:
    """Return why it fails; None where it works."""
    statements = split_statements(line)
    if not all(_DEFINING.match(strip_leading_comments(statement)) for statement in statements):
        return "it defines nothing"
    await _limit_time(session, end)
    await session.run("SAVEPOINT mcp_line")
    try:
        for statement in statements:
            # By the protocol that takes one statement only.
            await session.run_pipeline((statement, ()))
    except psycopg.Error as error:
        if _UNRELATED_STATES.match(error.sqlstate or "57"):
            raise
        await session.run("ROLLBACK TO SAVEPOINT mcp_line; RELEASE SAVEPOINT mcp_line")
        message = error.diag.message_primary or "an error without a word"
        if error.sqlstate in _MISSING:
            return f"{_NO_SUCH}: {message}"
        return message
    await session.run("RELEASE SAVEPOINT mcp_line")
    return None


async def _limit_time(session: Session, end: float) -> None:
    milliseconds = int(1000 * (end - time.monotonic()))
    if milliseconds <= 0:
        raise TimeoutError
    await session.run(f"SET LOCAL statement_timeout = {milliseconds}; SET LOCAL lock_timeout = {_LOCK_MILLISECONDS}")


def _oid_of_key(key: str) -> str:
    """Return the oid in it; of a comment, of what it is on."""
    identity = key
    if has_kind(key, ObjectKind.COMMENT):
        identity = key.partition("/")[2]
    match = re.search(r"\d+", identity)
    if match:
        return match[0]
    return "0"


class _Leftover(NamedTuple):
    """An object that is another than it was.

    Attributes:
        difference: its name, and what is different.
    """

    difference: str
    item: DatabaseObject


def _find_leftovers(change: SchemaChange, now: ObjectsByKey, lines: Sequence[str]) -> list[str]:
    """Return remarks for what is another than it was, and no line tells of."""
    objects = change.was | change.now
    remarks: list[str] = []
    for difference, item in [*_find_differences(change, now), *_find_reordered_tables(change.was, now)]:
        line = remark(f"not undone: {difference}")
        if not _is_mentioned(item, objects, lines) and line not in lines:
            remarks.append(line)
    return remarks


def _find_differences(change: SchemaChange, now: ObjectsByKey) -> list[_Leftover]:
    """Return what is dropped, changed and new, but for parts of such objects."""
    was = _by_label(change.was)
    current = _by_label(now)
    new_labels = {*_by_label(change.now)} - {*was}
    differences = [_Leftover("dropped", item) for label, item in was.items() if label not in current]
    for label, item in was.items():
        if label in current and _differs(item, current[label]):
            differences.append(_Leftover("changed", item))
    differences += [_Leftover("new", current[label]) for label in new_labels if label in current]
    differing_keys = {item.key for _, item in differences}
    return [
        _Leftover(f"{item.label}, {difference}", item)
        for difference, item in differences
        if item.parent not in differing_keys
    ]


def _find_reordered_tables(was: ObjectsByKey, now: ObjectsByKey) -> list[_Leftover]:
    """Return tables with the same columns in another order."""
    tables = _by_label(was)
    current_columns = _columns_by_table(now)
    leftovers: list[_Leftover] = []
    for label, columns in _columns_by_table(was).items():
        current = current_columns.get(label)
        if current is not None and columns != current and {*columns} == {*current}:
            leftovers.append(_Leftover(f"{label}, the order of its columns", tables[label]))
    return leftovers


def _by_label(objects: ObjectsByKey) -> ObjectsByKey:
    """Return the objects that have labels, by these."""
    return {item.label: item for item in objects.values() if item.label}


def _differs(one: DatabaseObject, other: DatabaseObject) -> bool:
    kind = one.key[0]
    if kind != other.key[0] or _has_default(one) != _has_default(other):
        return True
    return any(one.state[part] != other.state[part] for part in _COMPARED_PARTS.get(kind, ()))


def _has_default(item: DatabaseObject) -> bool:
    return item.has_kind(ObjectKind.COLUMN) and item.state[ColumnState.DEFAULT] is not None


def _columns_by_table(objects: ObjectsByKey) -> dict[str, list[str]]:
    """Return the names of the columns of each table, in their order, by its label."""
    columns = [item for item in objects.values() if item.has_kind(ObjectKind.COLUMN) and item.parent in objects]
    names: dict[str, list[str]] = {}
    for column in sorted(columns, key=_column_number):
        names.setdefault(objects[column.parent].label or "", []).append(column.name)
    return names


def _column_number(column: DatabaseObject) -> int:
    return int(column.key.partition(".")[2])


def _is_mentioned(item: DatabaseObject, objects: ObjectsByKey, lines: Sequence[str]) -> bool:
    """Return whether a remark names it, or what it is on."""
    if item.has_kind(ObjectKind.COMMENT, ObjectKind.GRANT):
        return item.parent in objects and _is_mentioned(objects[item.parent], objects, lines)
    name = re.compile(rf"(?<![\w\"]){re.escape(item.name)}(?![\w\"])")
    return any(name.search(line) for line in lines if _tells_of(line, item))


def _tells_of(line: str, item: DatabaseObject) -> bool:
    """Return whether a line with the name of the object is about it."""
    if item.has_kind(ObjectKind.COLUMN) and " ADD " in line:
        return True
    if item.kind.endswith("table"):
        return line.startswith("-- not undone")
    return line.startswith("--")
