"""The sandbox that this system has."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol, TypeVar

from mcp_batteries.processes.confinement import Confinement
from mcp_batteries.processes.landlock import OLDEST_ABI, Landlock, landlock_abi
from mcp_batteries.processes.seatbelt import SANDBOX_EXEC, Seatbelt

__all__ = ["NoSandbox", "Sandbox", "find_sandbox"]

T = TypeVar("T")


class NoSandbox(Exception):
    """Raised where this system confines no process; says why in half a sentence."""


class Sandbox(Protocol):
    """What starts processes that the kernel confines."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        ...

    def start(self, confinement: Confinement, words: Sequence[str], spawn: Callable[[Sequence[str]], T]) -> T:
        """Return what `spawn` returns, which starts the process of the command that it is given.

        `spawn` may run in a thread that is confined as the process will be, so it only starts the process.

        Raises:
            OSError: The process could not be started, or not confined.
        """
        ...


@cache
def find_sandbox() -> Sandbox:
    """Return the sandbox of this system.

    Raises:
        NoSandbox: There is none.
    """
    if sys.platform == "linux":
        abi = landlock_abi()
        if abi == 0:
            raise NoSandbox("this kernel, or the container around it, offers no Landlock")
        if abi < OLDEST_ABI:
            raise NoSandbox("the Landlock of this kernel is too old, Linux 5.19 has what is needed")
        return Landlock(abi)
    if sys.platform == "darwin":
        if not os.access(SANDBOX_EXEC, os.X_OK):
            raise NoSandbox(f"{SANDBOX_EXEC} is missing")
        return Seatbelt()
    raise NoSandbox("this system has no sandbox that a program may use for its children")
