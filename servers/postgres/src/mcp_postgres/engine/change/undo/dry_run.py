"""Tries a way back where nobody sees it, and reports in its place what fails and what it leaves behind."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import psycopg

from mcp_postgres.engine.change.catalog_diff import read_current_objects
from mcp_postgres.engine.change.objects import DatabaseObject, ObjectsByKey
from mcp_postgres.engine.change.undo.schema_undo import SchemaChange
from mcp_postgres.engine.change.undo.sql_comments import remark
from mcp_postgres.engine.connection.pool import Session
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
# Parts of a value that are the same in another object of that name: no numbers of objects.
_COMPARED_PARTS = {
    "c": (1, 2, 3, 4, 5, 8, 11), "a": (1, 3, 4, 5, 6, 7, 8, 9), "k": (0, 1), "t": (0, 2), "r": (0,), "s": (0,),
    "f": (2,), "y": (0, 1, 3), "n": (1,), "d": (0,), "g": (0, 1), "e": (), "p": (), "l": (), "x": (0,),
}  # fmt: skip


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
    working = list[str]()
    failed = dict.fromkeys(lines, "")
    while failed:
        before = len(failed)
        for line in [*failed]:
            # What comes back behind a drop that found nothing must not be met by it.
            if failed[line] and line.startswith("DROP ") and _NO_SUCH in failed[line]:
                continue
            error = await _try_line(session, line, end)
            if error is None:
                working.append(line)
                del failed[line]
            else:
                failed[line] = error
        if len(failed) == before:
            break
    return working + [remark(f"not undone, for {why}: {line}") for line, why in failed.items()]


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
    match = re.search(r"\d+", key.partition("/")[2] if key[0] == "d" else key)
    if match:
        return match[0]
    return "0"


def _find_leftovers(change: SchemaChange, now: ObjectsByKey, lines: Sequence[str]) -> list[str]:
    """Return remarks for what is another than it was, and no line tells of."""
    was, current = ({thing.label: thing for thing in look.values() if thing.label} for look in (change.was, now))
    fresh = {thing.label for thing in change.now.values() if thing.label} - {*was}
    differing = [(thing, "dropped") for label, thing in was.items() if label not in current]
    differing += [
        (thing, "changed") for label, thing in was.items() if label in current and _differs(thing, current[label])
    ]
    differing += [(current[label], "new") for label in fresh if label in current]
    differing_keys = {thing.key for thing, _ in differing}
    leftovers = [(f"{thing.label}, {how}", thing) for thing, how in differing if thing.parent not in differing_keys]
    ordered = _columns_by_table(change.was)
    others = _columns_by_table(now)
    for label, names in ordered.items():
        if label in others and names != others[label] and {*names} == {*others[label]}:
            leftovers.append((f"{label}, the order of its columns", was[label]))
    objects = change.was | change.now
    unsaid = [remark(f"not undone: {said}") for said, thing in leftovers if not _is_mentioned(thing, objects, lines)]
    return [line for line in unsaid if line not in lines]


def _differs(one: DatabaseObject, other: DatabaseObject) -> bool:
    if one.key[0] != other.key[0]:
        return True
    has = [(thing.state[2] is not None) if one.key[0] == "a" else False for thing in (one, other)]
    return has[0] != has[1] or any(one.state[at] != other.state[at] for at in _COMPARED_PARTS.get(one.key[0], ()))


def _columns_by_table(objects: ObjectsByKey) -> dict[str, list[str]]:
    """Return the names of the columns of each table, in their order, by its label."""
    columns = [thing for thing in objects.values() if thing.key[0] == "a" and thing.parent in objects]
    names: dict[str, list[str]] = {}
    for column in sorted(columns, key=lambda thing: int(thing.key.partition(".")[2])):
        names.setdefault(objects[column.parent].label or "", []).append(column.name)
    return names


def _is_mentioned(thing: DatabaseObject, objects: ObjectsByKey, lines: Sequence[str]) -> bool:
    """Return whether a remark names it, or what it is on."""
    if thing.key[0] in "dg":
        return thing.parent in objects and _is_mentioned(objects[thing.parent], objects, lines)
    name = re.compile(rf"(?<![\w\"]){re.escape(thing.name)}(?![\w\"])")
    if thing.kind.endswith("table"):
        heads = ("-- not undone",)
    else:
        heads = ("--",)
    return any(
        name.search(line) for line in lines if line.startswith(heads) or (thing.key[0] == "a" and " ADD " in line)
    )
