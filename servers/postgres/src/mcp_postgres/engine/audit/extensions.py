"""Which functions of extensions a query may call although its role could do harm: the list in `extensions.toml`.

A function's label says that it changes nothing, and not that it won't run a text or an object that it is given. Nothing
in the catalog tells the two apart where a function is written in C, so people have read what those in the list do.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

__all__ = ["ExtensionFunction", "ExtensionRules", "load_extension_rules"]

# Types of arguments that name an object. A number (oid) is a value like others, and only superusers can bring the code
# of dictionaries for text search.
_NAMES_OF_OBJECTS = {
    "name", "refcursor", "regclass", "regcollation", "regnamespace", "regoper", "regoperator", "regproc",
    "regprocedure", "regrole", "regtype",
}  # fmt: skip
# A type of arguments with which PostgreSQL lets no statement call a function.
_NOT_CALLABLE = "internal"


@dataclass(frozen=True)
class ExtensionFunction:
    """A function of an extension, as the catalog describes it.

    Attributes:
        arguments: the names of its arguments' types, those of arrays with an underscore before.
        volatility: `i`, `s` or `v`.
    """

    extension: str
    version: str
    name: str
    arguments: Sequence[str]
    volatility: str

    @property
    def is_callable(self) -> bool:
        """Whether a statement could call it by its name."""
        return _NOT_CALLABLE not in self.arguments

    @property
    def signature(self) -> str:
        """The name with the types of the arguments."""
        return f"{self.name}({','.join(self.arguments)})"


@dataclass(frozen=True)
class ExtensionRules:
    """What is known of one extension.

    Attributes:
        versions: beginnings of the versions that this holds for; empty for every version.
        functions: names of functions; None for all that are not volatile and take no name of an object.
        volatile: names of volatile functions that may be called too.
        tables: names of functions that tell of the table which they are given by name, and run nothing of it.
        relations: tables that the functions look up by a name without a schema.
        excluded: names or signatures of functions that may not be called, and why.
    """

    versions: tuple[str, ...]
    functions: frozenset[str] | None
    volatile: frozenset[str]
    tables: frozenset[str]
    relations: tuple[str, ...]
    excluded: Mapping[str, str]

    def explain_refusal(self, function: ExtensionFunction) -> str | None:
        """Return why a function of this extension may not be called; None if it may."""
        for name in (function.signature, function.name):
            if name in self.excluded:
                return f"it {self.excluded[name]}"
        if self.versions and not function.version.startswith(self.versions):
            return f"what version {function.version} of the extension {function.extension} does is not known"
        if self.lists(function):
            return None
        if self.functions is None and function.volatility != "v":
            return "it takes the name of an object" if _takes_object_name(function) else None
        return f"it is not among the known functions of the extension {function.extension}"

    def lists(self, function: ExtensionFunction) -> bool:
        """Return whether the function is listed by its own name."""
        if function.volatility == "v":
            listed_names = self.volatile
        else:
            listed_names = (self.functions or frozenset()) | self.tables
        return function.name in listed_names


def _takes_object_name(function: ExtensionFunction) -> bool:
    return any(name.removeprefix("_") in _NAMES_OF_OBJECTS for name in function.arguments)


@cache
def load_extension_rules() -> Mapping[str, ExtensionRules]:
    """Return the rules for each extension that is known, by its name."""
    text = files("mcp_postgres.engine.audit").joinpath("extensions.toml").read_text("utf-8")
    rules_by_extension: dict[str, ExtensionRules] = {}
    for entry in cast("list[dict[str, Any]]", tomllib.loads(text)["entry"]):
        functions = entry["functions"]
        rules = ExtensionRules(
            versions=tuple(entry.get("versions", ())),
            functions=None if functions == "all" else frozenset(functions),
            volatile=frozenset(entry.get("volatile", ())),
            tables=frozenset(entry.get("tables", ())),
            relations=tuple(entry.get("relations", ())),
            excluded=entry.get("excluded", {}),
        )
        for extension in entry["extensions"]:
            rules_by_extension[extension] = rules
    return rules_by_extension
