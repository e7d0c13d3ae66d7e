"""A server that can be started: what the command, `--check` and the contract need to know."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_batteries.settings import Settings

__all__ = ["Demonstration", "Probe", "Program", "program_of"]

# A URI and a harmless way to cause an update of it; None if there is none.
Demonstration = tuple[str, Callable[[], None]] | None

# A call of a tool, with its arguments, that reaches what the server is for.
Probe = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Program:
    """One server.

    Attributes:
        words: the command line that starts it as a process, before its arguments.
        settings: the class of its settings; like the rest below, imported on first access.
        build: the `Assembled` server for such settings.
        demonstration: how `--check` triggers an update.
        probe: the call with which `--check` tries the server; None for the first tool that reads without arguments.
        confinement: says what confines the server's processes, in one line; None if it has nothing to say.
    """

    words: tuple[str, ...]
    settings: Callable[[], type[Settings]]
    build: Callable[[Any], Any]
    demonstration: Callable[[Any], Demonstration]
    probe: Callable[[Any], Probe | None] = lambda settings: None
    confinement: Callable[[Any], str | None] = lambda settings: None


def program_of(package: str) -> Program:
    """Return the server in `package`: `<package>.settings.Settings`, `<package>.server.build(settings)`,
    `<package>.changes.demonstration(settings)`, and where there are some `<package>.changes.probe(settings)` and
    `<package>.server.confinement(settings)`."""

    def load(module: str) -> Any:
        return importlib.import_module(f"{package}.{module}")

    def probe(settings: Any) -> Probe | None:
        call = getattr(load("changes"), "probe", None)
        return None if call is None else call(settings)

    def confinement(settings: Any) -> str | None:
        describe = getattr(load("server"), "confinement", None)
        return None if describe is None else describe(settings)

    return Program(
        words=(sys.executable, "-m", package),
        settings=lambda: load("settings").Settings,
        build=lambda settings: load("server").build(settings),
        demonstration=lambda settings: load("changes").demonstration(settings),
        probe=probe,
        confinement=confinement,
    )
