"""Functions that are not PostgreSQL's own, and which of them may run what they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass

from mcp_postgres.engine.audit.extensions import ExtensionFunction, load_extension_rules

__all__ = ["CALLED", "FIRST_OWN", "RUNS_TEXT", "Procedure", "find_functions", "find_input_runners", "find_objects"]

# The first number of an object that is not PostgreSQL's own.
FIRST_OWN = 16384


_FUNCTION_NUMBER = re.compile(r":\w*(?:func|funcid|fnoid|handler) (\d+)", re.IGNORECASE)
# Numbers of a tree that are known not to be an object's.
_PLAIN_NUMBER = re.compile(
    r":(?:\w*typmods?|\w*location\w*|stmt_len|list_(?:start|end)|queryId|constvalue \d+)"
    r" (?:-?\d+|\(i[ \d-]*\)|\[[ \d-]*\])"
)
_OBJECT_NUMBER = re.compile(r"\b\d{5,10}\b")
RUNS_TEXT = re.compile(r"\bexecute\b|_to_xml|\bpg_input_|\bdblink|\bts_stat\b|\bts_rewrite\b|u&\"", re.IGNORECASE)
# A name in a body that is followed by arguments.
CALLED = re.compile(r"([\w$]+)\"?\s*\(")


def find_functions(tree: str) -> set[int]:
    """Return the functions that a tree of PostgreSQL's calls by name, as numbers of `pg_proc`."""
    return {int(number) for number in _FUNCTION_NUMBER.findall(tree)} - {0}


def find_objects(text: str) -> set[int]:
    """Return every number in a tree that may be an object's which is not PostgreSQL's own."""
    return {
        found for number in _OBJECT_NUMBER.findall(_PLAIN_NUMBER.sub("", text)) if (found := int(number)) >= FIRST_OWN
    }


@dataclass(frozen=True)
class Procedure:
    """A function that is not PostgreSQL's own.

    Attributes:
        body: its language and source, where that is text.
        called_functions: numbers of the functions that its parsed body calls, or that an aggregate is made of.
        is_vouched: whether the operator vouches for it.
        is_overload: whether PostgreSQL has functions of that name too.
    """

    function: ExtensionFunction
    schema: str
    body: str | None = None
    called_functions: frozenset[int] = frozenset()
    is_vouched: bool = False
    is_overload: bool = False

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def is_listed(self) -> bool:
        """Whether people have read what it does."""
        rules = load_extension_rules().get(self.function.extension)
        return rules is not None and rules.lists(self.function)

    @property
    def reads_named_table(self) -> bool:
        """Whether it tells of a table that it is given by name."""
        rules = load_extension_rules().get(self.function.extension)
        return rules is not None and self.name in rules.tables

    def may_change_data(self) -> bool:
        """Return whether it may do more than read, by its label."""
        if self.is_vouched or self.function.volatility in ("i", "s"):
            return False
        return not (self.function.extension and self.explain_running_input() is None)

    def explain_running_input(self) -> str | None:
        """Return what is known against it, if it may run the text or the object that it is given."""
        if self.is_vouched or not self.function.is_callable:
            return None
        if extension := self.function.extension:
            rules = load_extension_rules().get(extension)
            if rules is None:
                return f"what functions of the extension {extension} do is not known"
            refusal = rules.explain_refusal(self.function)
            if refusal is not None or rules.lists(self.function):
                return refusal
        return self._explain_running_text()

    def _explain_running_text(self) -> str | None:
        if self.body is None:
            return None
        language, _, source = self.body.partition("\n")
        if language not in ("sql", "plpgsql"):
            return f"it is written in {language}, which can't be looked into"
        match = RUNS_TEXT.search(source)
        if match:
            return f"its body has `{match[0]}`"
        return None


def find_input_runners(procedures: Mapping[int, Procedure]) -> dict[int, str]:
    """Return the functions that may run what they are given, by themselves or through others that they call.

    And why.
    """
    runners = {oid: why for oid, proc in procedures.items() if (why := proc.explain_running_input())}
    called_names = {
        oid: frozenset(CALLED.findall((proc.body or "").casefold()))
        for oid, proc in procedures.items()
        if (proc.body is not None or proc.called_functions) and not proc.is_vouched and not proc.is_listed
    }
    while True:
        harmless_names = {proc.name for oid, proc in procedures.items() if oid not in runners}
        dangerous_names = {
            proc.name.casefold() for oid in runners if not _is_ambiguous(proc := procedures[oid], harmless_names)
        }
        new_runners: dict[int, str] = {}
        for oid, called in called_names.items():
            if oid in runners:
                continue
            by_name = called & dangerous_names
            by_number = procedures[oid].called_functions & runners.keys()
            if by_name:
                new_runners[oid] = f"it calls {min(by_name)}(), which may run what it is given"
            elif by_number:
                new_runners[oid] = f"it calls {procedures[min(by_number)].name}(), which may run what it is given"
        if not new_runners:
            return runners
        runners |= new_runners


def _is_ambiguous(procedure: Procedure, harmless: Set[str]) -> bool:
    # Extensions overload `length` and the like for types of their own, and a body that calls that means another.
    return bool(procedure.function.extension) and (procedure.is_overload or procedure.name in harmless)
