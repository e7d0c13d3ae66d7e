"""Functions that are not PostgreSQL's own, and which of them may run what they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from mcp_postgres.engine.audit.builtin_functions import INPUT_RUNNING_FUNCTIONS
from mcp_postgres.engine.audit.extensions import ExtensionFunction, load_extension_rules

__all__ = [
    "CALLED",
    "FIRST_OWN",
    "RUNS_TEXT",
    "Cause",
    "Harm",
    "KnownFunctions",
    "Procedure",
    "find_functions",
    "find_input_runners",
    "find_objects",
]

# The first number of an object that is not PostgreSQL's own.
FIRST_OWN = 16384

_SEQUENCE_FUNCTIONS = ("nextval", "setval")
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
    objects: set[int] = set()
    for digits in _OBJECT_NUMBER.findall(_PLAIN_NUMBER.sub("", text)):
        number = int(digits)
        if number >= FIRST_OWN:
            objects.add(number)
    return objects


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

    @property
    def has_known_calls(self) -> bool:
        """Whether what it calls says anything of it, and can be seen."""
        is_visible = self.body is not None or bool(self.called_functions)
        return is_visible and not self.is_vouched and not self.is_listed

    def called_names(self) -> frozenset[str]:
        """Return the names, in lower case, that its body calls."""
        return frozenset(CALLED.findall((self.body or "").casefold()))

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
    runners: dict[int, str] = {}
    for oid, procedure in procedures.items():
        reason = procedure.explain_running_input()
        if reason:
            runners[oid] = reason
    called_names = {oid: procedure.called_names() for oid, procedure in procedures.items() if procedure.has_known_calls}
    while True:
        new_runners = _find_callers(procedures, runners, called_names)
        if not new_runners:
            return runners
        runners |= new_runners


def _find_callers(
    procedures: Mapping[int, Procedure], runners: Mapping[int, str], called_names: Mapping[int, frozenset[str]]
) -> dict[int, str]:
    """Return the functions that call one of the runners, by its name or by its number, and why."""
    dangerous_names = _find_dangerous_names(procedures, runners)
    callers: dict[int, str] = {}
    for oid, names in called_names.items():
        if oid in runners:
            continue
        by_name = names & dangerous_names
        by_number = procedures[oid].called_functions & runners.keys()
        if by_name:
            callers[oid] = f"it calls {min(by_name)}(), which may run what it is given"
        elif by_number:
            callers[oid] = f"it calls {procedures[min(by_number)].name}(), which may run what it is given"
    return callers


def _find_dangerous_names(procedures: Mapping[int, Procedure], runners: Mapping[int, str]) -> set[str]:
    """Return the names, in lower case, that mean functions which may run what they are given."""
    harmless_names = {procedure.name for oid, procedure in procedures.items() if oid not in runners}
    dangerous = [procedures[oid] for oid in runners]
    return {procedure.name.casefold() for procedure in dangerous if not _is_ambiguous(procedure, harmless_names)}


def _is_ambiguous(procedure: Procedure, harmless: Set[str]) -> bool:
    # Extensions overload `length` and the like for types of their own, and a body that calls that means another.
    return bool(procedure.function.extension) and (procedure.is_overload or procedure.name in harmless)


class Cause(Enum):
    """Why a statement is not run."""

    STRANGER = "it could run another role's code"
    EFFECT = "it may do more than read"
    INPUT = "it may run what it is given"


class Harm(NamedTuple):
    """What a statement could do beside reading.

    Attributes:
        description: the function, type or other object.
        reason: for `Cause.INPUT`, what is known of it.
        vouch: how the operator can vouch for it.
    """

    cause: Cause
    description: str
    reason: str = ""
    vouch: str = ""


@dataclass(frozen=True)
class KnownFunctions:
    """The functions that there are, and what is known of them.

    Attributes:
        built_in: names of PostgreSQL's own that do more than read.
        procedures: all others.
        input_runners: those that may run what they are given, and why.
    """

    built_in: Mapping[int, str] = field(default_factory=dict[int, str])
    procedures: Mapping[int, Procedure] = field(default_factory=dict[int, Procedure])
    input_runners: Mapping[int, str] = field(default_factory=dict[int, str])

    def find_harm(self, oid: int, *, sequences: bool, planned: bool = False) -> Harm | None:
        """Return what a function may do beside reading.

        Args:
            oid: its number.
            sequences: functions that advance a sequence are fine.
            planned: it will be planned only, which runs no volatile function.
        """
        if oid < FIRST_OWN:
            return self._find_harm_of_built_in(oid, sequences=sequences, planned=planned)
        procedure = self.procedures.get(oid)
        if procedure is None:
            return Harm(Cause.EFFECT, f"function {oid}")
        if planned and procedure.function.volatility == "v":
            return None
        vouch = f"{procedure.schema}.{procedure.name}"
        if procedure.may_change_data():
            return Harm(Cause.EFFECT, f"{procedure.name}()", vouch=vouch)
        if oid in self.input_runners:
            return Harm(Cause.INPUT, f"{procedure.name}()", self.input_runners[oid], vouch)
        return None

    def _find_harm_of_built_in(self, oid: int, *, sequences: bool, planned: bool) -> Harm | None:
        name = self.built_in.get(oid)
        if name is None or (sequences and name in _SEQUENCE_FUNCTIONS):
            return None
        if planned and name not in INPUT_RUNNING_FUNCTIONS:
            return None
        return Harm(Cause.EFFECT, f"{name}()")
