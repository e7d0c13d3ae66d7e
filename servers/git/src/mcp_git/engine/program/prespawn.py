"""Running gits, and gits that start ahead of time: half the time of a small answer is the start of a process.

While one works, another is started with the same words and the same environment, and waits for the next call like this
one. It has seen nothing of the repository, as its `GIT_DIR` does not exist yet: that link is made when the repository
was looked at for the call that takes it. Should this server be killed, it finds no repository and ends.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import IO

from mcp_batteries.limits import Stop
from mcp_git.engine.program.git_binary import Installed
from mcp_git.engine.program.process import Command, Held, Pipe, Process, end, limit_memory, start, unnamed

__all__ = ["Run", "Starter"]

_MOST = 4
_MOST_GIVEN = 4096
"""Bytes, which a pipe takes at once."""


class Run:
    """A git at work.

    Args:
        link: the name under which it knows the git directory, if it was started ahead.

    Attributes:
        said: what it says besides.
    """

    def __init__(self, process: Process, said: IO[bytes], link: str = "") -> None:
        assert process.stdout is not None
        self._process, self.said, self.link = process, said, link
        self._pipe = Pipe(process.stdout)

    def pieces(self, stop: Stop, meanwhile: Callable[[], None] | None = None) -> Generator[bytes]:
        """What it prints, as `Pipe.pieces`."""
        return self._pipe.pieces(stop, meanwhile)

    def wait(self) -> int:
        """How it ended."""
        return self._process.wait()

    def close(self) -> None:
        """End it, unless it has ended."""
        end(self._process)
        self._pipe.leave()
        self.said.close()
        if self.link:
            with suppress(FileNotFoundError):  # whoever tidies up temporary folders was faster
                os.unlink(self.link)


@dataclass(frozen=True, slots=True)
class _Waiting:
    command: Command
    held: Held
    said: IO[bytes]
    link: str

    def end(self) -> None:
        self.held.end()
        self.said.close()


class Starter:
    """Starts gits; every method may be called by any thread."""

    def __init__(self, installed: Installed) -> None:
        self._installed = installed
        self._waiting: OrderedDict[tuple[str, ...], _Waiting] = OrderedDict()
        self._turn = threading.Lock()
        self._number = 0
        self._waits = sys.platform == "linux"
        weakref.finalize(self, _end_all, self._waiting)

    def start(self, command: Command, given: bytes, *, apart: bool = False) -> Run:
        """Start one now.

        Args:
            given: what it reads.
            apart: as `process.start`.
        """
        with ExitStack() as files:
            said = files.enter_context(unnamed(self._installed.scratch))
            reads = None
            if given:
                reads = unnamed(self._installed.scratch)
                with reads:
                    reads.write(given)
                    reads.seek(0)
                    process = start(command, reads=reads, said=said, apart=apart)
            else:
                process = start(command, reads=None, said=said, apart=apart)
            files.pop_all()
        limit_memory(process.pid)
        return Run(process, said)

    def take(self, command: Command, given: bytes) -> Run | None:
        """The one that waits for this command, let go; None if none does.

        Call it when the repository was looked at.
        """
        with self._turn:
            waiting = self._waiting.pop(_key(command), None)
        if waiting is None:
            return None
        if waiting.held.process.poll() is not None:
            self._waits = False  # This git reads no pipe.
        if not self._waits or waiting.command != command or len(given) > _MOST_GIVEN:
            waiting.end()
            return None
        try:
            os.symlink(command.environment["GIT_DIR"], waiting.link)
        except OSError:  # no room for it, or its folder is gone
            waiting.end()
            return None
        waiting.held.release(given)
        return Run(waiting.held.process, waiting.said, waiting.link)

    def prepare(self, command: Command, *, fed: bool) -> None:
        """Start one for the next call with this command, unless one waits."""
        key = _key(command)
        with self._turn:
            if not self._waits or key in self._waiting:
                return
            self._number += 1
            link = os.path.join(self._installed.scratch, f"ahead{self._number}")
            unseen = replace(command, environment={**command.environment, "GIT_DIR": link})
            try:
                with ExitStack() as files:
                    said = files.enter_context(unnamed(self._installed.scratch))
                    held = Held(unseen, said, fed=fed)
                    files.pop_all()
            except OSError:
                return  # The call at hand needs none of this.
            limit_memory(held.process.pid)
            self._waiting[key] = _Waiting(command, held, said, link)
            oldest = self._waiting.popitem(last=False)[1] if len(self._waiting) > _MOST else None
        if oldest is not None:
            oldest.end()


def _end_all(waiting: Mapping[tuple[str, ...], _Waiting]) -> None:
    for each in waiting.values():
        each.end()


def _key(command: Command) -> tuple[str, ...]:
    return command.environment["GIT_DIR"], *command.words
