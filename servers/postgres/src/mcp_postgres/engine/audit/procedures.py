"""Functions that are not PostgreSQL's own, and which of them may run what they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass

from mcp_postgres.engine.audit.extensions import ExtensionFunction, extension_rules

__all__ = ["CALLED", "FIRST_OWN", "RUNS_TEXT", "Procedure", "functions_in", "input_runners", "objects_in"]

FIRST_OWN = 16384
"""The first number of an object that is not PostgreSQL's own."""


_FUNCTION = re.compile(r":\w*(?:func|funcid|fnoid|handler) (\d+)", re.IGNORECASE)
_NO_OBJECT = re.compile(
    r":(?:\w*typmods?|\w*location\w*|stmt_len|list_(?:start|end)|queryId|constvalue \d+)"
    r" (?:-?\d+|\(i[ \d-]*\)|\[[ \d-]*\])"
)
"""Numbers of a tree that are known not to be an object's."""
_NUMBER = re.compile(r"\b\d{5,10}\b")
RUNS_TEXT = re.compile(r"\bexecute\b|_to_xml|\bpg_input_|\bdblink|\bts_stat\b|\bts_rewrite\b|u&\"", re.IGNORECASE)
CALLED = re.compile(r"([\w$]+)\"?\s*\(")
"""A name in a body that is followed by arguments."""


def functions_in(tree: str) -> set[int]:
    """The functions that a tree of PostgreSQL's calls by name, as numbers of `pg_proc`."""
    return {int(number) for number in _FUNCTION.findall(tree)} - {0}


def objects_in(text: str) -> set[int]:
    """Every number in a tree that may be an object's which is not PostgreSQL's own."""
    return {found for number in _NUMBER.findall(_NO_OBJECT.sub("", text)) if (found := int(number)) >= FIRST_OWN}


@dataclass(frozen=True)
class Procedure:
    """A function that is not PostgreSQL's own.

    Attributes:
        body: its language and source, where that is text.
        calls: numbers of the functions that its parsed body calls, or that an aggregate is made of.
        vouched: whether the operator vouches for it.
        is_overload: whether PostgreSQL has functions of that name too.
    """

    function: ExtensionFunction
    schema: str
    body: str | None = None
    calls: frozenset[int] = frozenset()
    vouched: bool = False
    is_overload: bool = False

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def is_listed(self) -> bool:
        """Whether people have read what it does."""
        rules = extension_rules().get(self.function.extension)
        return rules is not None and rules.names(self.function)

    @property
    def reads_named_table(self) -> bool:
        """Whether it tells of a table that it is given by name."""
        rules = extension_rules().get(self.function.extension)
        return rules is not None and self.name in rules.tables

    def changes(self) -> bool:
        """Return whether it may do more than read, by its label."""
        if self.vouched or self.function.volatility in ("i", "s"):
            return False
        return not (self.function.extension and self.runs_input() is None)

    def runs_input(self) -> str | None:
        """Return what is known against it, if it may run the text or the object that it is given."""
        if self.vouched or not self.function.is_callable:
            return None
        if extension := self.function.extension:
            rules = extension_rules().get(extension)
            if rules is None:
                return f"what functions of the extension {extension} do is not known"
            refusal = rules.refusal(self.function)
            if refusal is not None or rules.names(self.function):
                return refusal
        return self._runs_text()

    def _runs_text(self) -> str | None:
        if self.body is None:
            return None
        language, _, source = self.body.partition("\n")
        if language not in ("sql", "plpgsql"):
            return f"it is written in {language}, which can't be looked into"
        found = RUNS_TEXT.search(source)
        return f"its body has `{found[0]}`" if found else None


def input_runners(procs: Mapping[int, Procedure]) -> dict[int, str]:
    """The functions that may run what they are given, by themselves or through others that they call; and why."""
    runners = {oid: why for oid, proc in procs.items() if (why := proc.runs_input())}
    callers = {
        oid: frozenset(CALLED.findall((proc.body or "").casefold()))
        for oid, proc in procs.items()
        if (proc.body is not None or proc.calls) and not proc.vouched and not proc.is_listed
    }
    while True:
        harmless = {proc.name for oid, proc in procs.items() if oid not in runners}
        names = {proc.name.casefold() for oid in runners if not _is_ambiguous(proc := procs[oid], harmless)}
        more: dict[int, str] = {}
        for oid, called in callers.items():
            if oid in runners:
                continue
            by_name = called & names
            by_number = procs[oid].calls & runners.keys()
            if by_name:
                more[oid] = f"it calls {min(by_name)}(), which may run what it is given"
            elif by_number:
                more[oid] = f"it calls {procs[min(by_number)].name}(), which may run what it is given"
        if not more:
            return runners
        runners |= more


def _is_ambiguous(proc: Procedure, harmless: Set[str]) -> bool:
    # Extensions overload `length` and the like for types of their own, and a body that calls that means another.
    return bool(proc.function.extension) and (proc.is_overload or proc.name in harmless)
