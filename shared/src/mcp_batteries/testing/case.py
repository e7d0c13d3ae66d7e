"""One server under test: its package, how to start it, and which calls to make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_batteries.program import Program, program_of
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.settings import Settings, load

__all__ = ["Case"]


@dataclass(frozen=True)
class Case:
    """A server as the contract meets it.

    Attributes:
        package: the import name of a server in rooms, or the `program` of one in one file.
        arguments: a command line that starts it on harmless data.
        read: a read tool and arguments that succeed on that data.
        refused: calls that must fail with a helpful error.
        uri: a resource that can be read and subscribed to; empty if there is none.
        foreign: strings (paths, secrets) that no answer may contain.
        prefixes: the prefixes of tool names if several servers are mounted.
    """

    package: str | Program
    arguments: list[str]
    read: tuple[str, Mapping[str, Any]]
    uri: str = ""
    refused: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    foreign: list[str] = field(default_factory=list[str])
    prefixes: tuple[str, ...] = ()

    @property
    def program(self) -> Program:
        return program_of(self.package) if isinstance(self.package, str) else self.package

    @property
    def kind(self) -> type[Settings]:
        return self.program.settings()

    @property
    def command(self) -> list[str]:
        """The command that starts it as a process."""
        return [*self.program.words, *self.arguments]

    def settings(self, *more: str) -> Settings:
        return load(self.kind, [*more, *self.arguments])

    def build(self, *more: str) -> Assembled:
        """Return a fresh server: the lifespan is entered once per in-memory client."""
        return self.program.build(self.settings(*more))
