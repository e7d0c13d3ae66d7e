"""Tries a way back where nobody sees it, and reports in its place what fails and what it leaves behind."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import psycopg

from mcp_postgres.engine.change.catalog_diff import look_again
from mcp_postgres.engine.change.objects import Look, Object
from mcp_postgres.engine.change.undo.schema_undo import After
from mcp_postgres.engine.change.undo.sql_comments import remark
from mcp_postgres.engine.connection.pool import Session
from mcp_postgres.statement_splitter import begin_of, split

__all__ = ["UNTRIED", "rehearsed"]

UNTRIED = "-- nobody has tried these statements"
"""Where the change takes long, does more than define, or is a role's that code of others may meet."""

_SECONDS = 3.0
"""What it takes at most."""
_WAIT = 100
"""Milliseconds that it waits for somebody's lock."""
_DEFINING = re.compile(r"(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE)\b")
_ELSEWHERE = re.compile("55P04|55006|55P03|40|53|54|57|XX")
"""States of errors that say nothing of what comes in a transaction of its own.

XX is PostgreSQL's own: 18 lets no savepoint come right behind ALTER DOMAIN ... DROP CONSTRAINT.
"""
_MISSING = ("42704", "42P01", "42883", "3F000")
_NO_SUCH = "nothing is there"
_COMPARED = {
    "c": (1, 2, 3, 4, 5, 8, 11), "a": (1, 3, 4, 5, 6, 7, 8, 9), "k": (0, 1), "t": (0, 2), "r": (0,), "s": (0,),
    "f": (2,), "y": (0, 1, 3), "n": (1,), "d": (0,), "g": (0, 1), "e": (), "p": (), "l": (), "x": (0,),
}  # fmt: skip
"""Parts of a value that are the same in another object of that name: no numbers of objects."""


async def rehearsed(session: Session, statements: Sequence[str], seen: After, lines: Sequence[str]) -> Sequence[str]:
    """The way back with what fails of it as a remark, and remarks for what it leaves; as it was where that takes long.

    The transaction is rolled back behind this.

    Args:
        statements: the change, which is not there now, and is made once more.
        lines: the way back.
    """
    end = time.monotonic() + _SECONDS
    try:
        await _bounded(session, end)
        for statement in statements:
            await session.together((statement, ()))
        await session.simple("SET CONSTRAINTS ALL IMMEDIATE")
        found = await _tried(session, lines, end)
        now = await look_again(session, {_number(key) for key in {*seen.was, *seen.now}})
    except (psycopg.Error, TimeoutError, LookupError, ValueError):  # nor does a mistake of ours fail the dry run
        return [*lines, UNTRIED]
    return [*found, *_left(seen, now, found)]


async def _tried(session: Session, lines: Sequence[str], end: float) -> list[str]:
    """Those that work, in an order that works, and remarks why the others fail."""
    found, failed = list[str](), dict.fromkeys(lines, "")
    while failed:
        before = len(failed)
        for line in [*failed]:
            # What comes back behind a drop that found nothing must not be met by it.
            if failed[line] and line.startswith("DROP ") and _NO_SUCH in failed[line]:
                continue
            why = await _failure(session, line, end)
            if why is None:
                found.append(line)
                del failed[line]
            else:
                failed[line] = why
        if len(failed) == before:
            break
    return found + [remark(f"not undone, for {why}: {line}") for line, why in failed.items()]


async def _failure(session: Session, line: str, end: float) -> str | None:
    """Why it fails; None where it works."""
    statements = split(line)
    if not all(_DEFINING.match(begin_of(statement)) for statement in statements):
        return "it defines nothing"
    await _bounded(session, end)
    await session.simple("SAVEPOINT mcp_line")
    try:
        for statement in statements:
            # By the protocol that takes one statement only.
            await session.together((statement, ()))
    except psycopg.Error as error:
        if _ELSEWHERE.match(error.sqlstate or "57"):
            raise
        await session.simple("ROLLBACK TO SAVEPOINT mcp_line; RELEASE SAVEPOINT mcp_line")
        said = error.diag.message_primary or "an error without a word"
        return f"{_NO_SUCH}: {said}" if error.sqlstate in _MISSING else said
    await session.simple("RELEASE SAVEPOINT mcp_line")
    return None


async def _bounded(session: Session, end: float) -> None:
    left = int(1000 * (end - time.monotonic()))
    if left <= 0:
        raise TimeoutError
    await session.simple(f"SET LOCAL statement_timeout = {left}; SET LOCAL lock_timeout = {_WAIT}")


def _number(key: str) -> str:
    """The oid in it; of a comment, of what it is on."""
    found = re.search(r"\d+", key.partition("/")[2] if key[0] == "d" else key)
    return found[0] if found else "0"


def _left(seen: After, now: Look, lines: Sequence[str]) -> list[str]:
    """Remarks for what is another than it was, and no line tells of."""
    was, there = ({thing.label: thing for thing in look.values() if thing.label} for look in (seen.was, now))
    fresh = {thing.label for thing in seen.now.values() if thing.label} - {*was}
    found = [(thing, "dropped") for label, thing in was.items() if label not in there]
    found += [(thing, "changed") for label, thing in was.items() if label in there and _differs(thing, there[label])]
    found += [(there[label], "new") for label in fresh if label in there]
    gone = {thing.key for thing, _ in found}
    left = [(f"{thing.label}, {how}", thing) for thing, how in found if thing.parent not in gone]
    ordered, others = _columns(seen.was), _columns(now)
    for label, names in ordered.items():
        if label in others and names != others[label] and {*names} == {*others[label]}:
            left.append((f"{label}, the order of its columns", was[label]))
    known = seen.was | seen.now
    unsaid = [remark(f"not undone: {said}") for said, thing in left if not _told(thing, known, lines)]
    return [line for line in unsaid if line not in lines]


def _differs(one: Object, other: Object) -> bool:
    if one.key[0] != other.key[0]:
        return True
    has = [(thing.value[2] is not None) if one.key[0] == "a" else False for thing in (one, other)]
    return has[0] != has[1] or any(one.value[at] != other.value[at] for at in _COMPARED.get(one.key[0], ()))


def _columns(look: Look) -> dict[str, list[str]]:
    """The names of the columns of each table, in their order, by its label."""
    found: dict[str, list[str]] = {}
    columns = [thing for thing in look.values() if thing.key[0] == "a" and thing.parent in look]
    for thing in sorted(columns, key=lambda thing: int(thing.key.partition(".")[2])):
        found.setdefault(look[thing.parent].label or "", []).append(thing.name)
    return found


def _told(thing: Object, known: Look, lines: Sequence[str]) -> bool:
    """Whether a remark names it, or what it is on."""
    if thing.key[0] in "dg":
        return thing.parent in known and _told(known[thing.parent], known, lines)
    name = re.compile(rf"(?<![\w\"]){re.escape(thing.name)}(?![\w\"])")
    heads = ("-- not undone",) if thing.kind.endswith("table") else ("--",)
    return any(
        name.search(line) for line in lines if line.startswith(heads) or (thing.key[0] == "a" and " ADD " in line)
    )
