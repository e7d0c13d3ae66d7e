"""One server under test: which package, started how, and what may be asked of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_batteries.server.assemble import Assembled
from mcp_batteries.settings import Settings, load

__all__ = ["Case"]


@dataclass(frozen=True)
class Case:
    """A server as the contract meets it.

    Attributes:
        package: the import name; `<package>.settings` and `<package>.server` follow the house's conventions.
        arguments: a command line that starts it on harmless data.
        read: a read tool and arguments that succeed on that data.
        refused: calls that must fail with a helpful error.
        uri: a resource that can be read and subscribed to.
        foreign: strings (paths, secrets) that no answer may contain.
    """

    package: str
    arguments: list[str]
    read: tuple[str, Mapping[str, Any]]
    uri: str
    refused: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    foreign: list[str] = field(default_factory=list[str])

    @property
    def kind(self) -> type[Settings]:
        return importlib.import_module(f"{self.package}.settings").Settings

    @property
    def command(self) -> list[str]:
        """The words that start it as a process."""
        return [sys.executable, "-m", self.package, *self.arguments]

    def settings(self, *more: str) -> Settings:
        return load(self.kind, [*more, *self.arguments])

    def build(self, *more: str) -> Assembled:
        """A fresh server: the lifespan is entered once per in-memory client."""
        return importlib.import_module(f"{self.package}.server").build(self.settings(*more))
