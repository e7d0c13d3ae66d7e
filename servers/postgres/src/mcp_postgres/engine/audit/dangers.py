"""Finds what leads to the code of other roles, from rows of the catalog and the bodies of functions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcp_postgres.engine.audit.procedures import CALLED, RUNS_TEXT, KnownFunctions

__all__ = ["CatalogRow", "describe_own_code", "find_dangers", "spread_to_referrers"]

_WORD = re.compile(r"[\w$]+")
# Kinds that are code, or lead to some, whatever they are made of.
_CODE_KINDS = {"operator", "class", "foreign", "function"}


@dataclass(frozen=True)
class CatalogRow:
    """A row of the catalog that hangs on an object.

    Attributes:
        oid: the object's number.
        only_for_changes: it counts only where rows are changed.
        description: what it is, for people.
        owner: whose it is; None where that is trusted.
        references: numbers of the objects that it leads to.
        calls: numbers of the functions that its expression calls.
        body: of a function, its language and source.
    """

    oid: int
    name: str
    kind: str
    only_for_changes: bool
    description: str
    owner: str | None
    references: frozenset[int]
    calls: frozenset[int]
    body: str | None = None


@dataclass(frozen=True)
class _DangerousNames:
    """Names by which a body could mean what leads to a stranger's code.

    Attributes:
        words: of strangers' functions, of types and of relations.
        signs: the same, where they are no words.
        called: of trusted functions.
        operators: that are trusted.
    """

    words: set[str] = field(default_factory=set[str])
    signs: set[str] = field(default_factory=set[str])
    called: set[str] = field(default_factory=set[str])
    operators: set[str] = field(default_factory=set[str])

    def add_word(self, name: str) -> None:
        """Add the name of a type, a relation or a stranger's function."""
        if _WORD.fullmatch(name):
            self.words.add(name)
        else:
            self.signs.add(name)


def find_dangers(rows: Sequence[CatalogRow], functions: KnownFunctions) -> dict[int, str]:
    """Return objects that lead to a stranger's code, and why."""
    dangers: dict[int, str] = {}
    for row in rows:
        reason = describe_own_code(row, functions)
        if reason:
            dangers[row.oid] = reason
    bodies = [row for row in rows if row.body is not None and row.oid not in dangers]
    while True:
        dangers = spread_to_referrers(rows, dangers)
        if not dangers:
            return dangers
        new_dangers = _find_dangerous_bodies(rows, bodies, dangers, functions)
        if not new_dangers:
            return dangers
        dangers |= new_dangers


def describe_own_code(row: CatalogRow, functions: KnownFunctions) -> str | None:
    """Return why an object is no good by itself."""
    if row.owner is None:
        return None
    if row.kind in _CODE_KINDS:
        return f"{row.description} of {row.owner}"
    for oid in row.calls:
        # A stranger's expression may well call what the superuser laid, with what the stranger chose.
        harm = functions.find_harm(oid, sequences=row.only_for_changes)
        if harm is not None:
            return f"{row.description} of {row.owner}, which calls {harm.description}"
    return None


def spread_to_referrers(rows: Iterable[CatalogRow], dangers: Mapping[int, str]) -> dict[int, str]:
    """Return the dangers, with everything that leads to one of them."""
    referrers: defaultdict[int, list[CatalogRow]] = defaultdict(list)
    for row in rows:
        for oid in row.references:
            referrers[oid].append(row)
    reasons = dict(dangers)
    pending = list(dangers)
    while pending:
        oid = pending.pop()
        for row in referrers[oid]:
            if row.oid not in reasons:
                reasons[row.oid] = _extend_reason(row, reasons[oid])
                pending.append(row.oid)
    return reasons


def _extend_reason(row: CatalogRow, reason: str) -> str:
    if row.description:
        return f"{row.description}: {reason}"
    return reason


def _find_dangerous_bodies(
    rows: Sequence[CatalogRow], bodies: Iterable[CatalogRow], dangers: Mapping[int, str], functions: KnownFunctions
) -> dict[int, str]:
    """Return the functions whose bodies may mean one of the dangers, and why."""
    names = _collect_names(rows, dangers, functions)
    new_dangers: dict[int, str] = {}
    for row in bodies:
        if row.oid in dangers:
            continue
        procedure = functions.procedures.get(row.oid)
        is_listed = procedure is not None and procedure.is_listed
        reason = _find_mention(row.body or "", names, is_listed=is_listed)
        if reason is not None:
            new_dangers[row.oid] = f"{row.description}, whose body may reach what belongs to others: {reason}"
    return new_dangers


def _collect_names(
    rows: Iterable[CatalogRow], dangers: Mapping[int, str], functions: KnownFunctions
) -> _DangerousNames:
    """Return the names by which a body could mean one of the dangers."""
    names = _DangerousNames()
    harmless = {procedure.name.casefold() for oid, procedure in functions.procedures.items() if oid not in dangers}
    for row in rows:
        name = row.name.casefold()
        if not name or row.oid not in dangers:
            continue
        is_trusted = row.owner is None
        if is_trusted and row.kind == "function":
            # PostGIS has a `geometry()` of a topology, and many that only convert.
            is_of_extension = bool(functions.procedures[row.oid].function.extension)
            if not is_of_extension or name not in harmless:
                names.called.add(name)
        elif is_trusted and row.kind == "operator":
            names.operators.add(name)
        else:
            names.add_word(name)
    return names


def _find_mention(body: str, names: _DangerousNames, *, is_listed: bool) -> str | None:
    """Return what in the source of a function could lead to one of these names.

    PostgreSQL knows no more of it than its text. Its author is trusted, so nothing hides in it.

    Args:
        body: its language and source.
        names: what it may not mention.
        is_listed: people have read what it does. Still another role's function could fit a call in it better.
    """
    language, _, source = body.partition("\n")
    if language not in ("sql", "plpgsql"):
        return f"it is written in {language}"
    text = source.casefold()
    mentions = names.words & set(_WORD.findall(text)) | _find_signs(names.signs, text)
    if not is_listed:
        runner = RUNS_TEXT.search(text)
        if runner:
            return f"`{runner[0]}`"
        mentions |= names.called & set(CALLED.findall(text)) | _find_signs(names.operators, text)
    if mentions:
        return f"`{min(mentions)}`"
    return None


def _find_signs(signs: Iterable[str], text: str) -> set[str]:
    return {sign for sign in signs if sign in text}
