"""Confinement by Seatbelt, the sandbox of macOS, whose program `sandbox-exec` starts another program confined."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from mcp_batteries.processes.confinement import Confinement

__all__ = ["SANDBOX_EXEC", "Seatbelt", "seatbelt_profile"]

T = TypeVar("T")

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
# Every program needs these to start at all, by the system's own `system.sb`: its loader, its libraries.
_SYSTEM_RULES = """\
(version 1)
(deny default)
(import "system.sb")
(allow process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(deny network*)
"""
# Services of the system resolve names, check certificates and find keys.
_NETWORK_RULES = """\
(allow network*)
(allow system-socket)
(allow mach-lookup)
(allow ipc-posix-shm)
"""


class Seatbelt:
    """Starts processes that Seatbelt confines."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return "Seatbelt"

    def start(self, confinement: Confinement, words: Sequence[str], spawn: Callable[[Sequence[str]], T]) -> T:
        """Return what `spawn` returns, which starts the process of the command that it is given."""
        return spawn(self.wrap(confinement, words))

    def wrap(self, confinement: Confinement, words: Sequence[str]) -> list[str]:
        """Return the command that starts the command `words` confined."""
        return [SANDBOX_EXEC, "-p", seatbelt_profile(confinement), *words]


def seatbelt_profile(confinement: Confinement) -> str:
    """Return the profile, in Seatbelt's language, that enforces a confinement."""
    writable = confinement.writable | {os.devnull}
    everything = confinement.executable | confinement.readable | writable
    rules = [
        _rule("file-read*", everything),
        _rule("process-exec", confinement.executable),
        _rule("file-write*", writable),
    ]
    profile = _SYSTEM_RULES + "".join(rules)
    if confinement.network:
        profile += _NETWORK_RULES
    return profile


def _rule(operation: str, paths: Iterable[str]) -> str:
    """Return the rule that allows an operation on what is at each path, and below."""
    filters = [f"(subpath {_quote(path)})" for path in sorted(paths)]
    if not filters:
        return ""
    return f"(allow {operation} {' '.join(filters)})\n"


def _quote(path: str) -> str:
    path = path.rstrip(os.sep) or os.sep
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
