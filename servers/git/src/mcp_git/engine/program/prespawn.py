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

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_git.engine.program.git_binary import GitBinary
from mcp_git.engine.program.process import (
    Command,
    PipeReader,
    Process,
    StandbyProcess,
    limit_memory,
    open_unnamed_file,
    start,
    terminate,
)

__all__ = ["Prespawner", "RunningGit"]

_MAX_STANDBYS = 4
# Bytes, which a pipe takes at once.
_MAX_STDIN_BYTES = 4096


class RunningGit:
    """A git at work.

    Args:
        link: the name under which it knows the git directory, if it was started ahead.

    Attributes:
        stderr: what it says besides.
    """

    def __init__(self, process: Process, stderr: IO[bytes], link: str = "") -> None:
        assert process.stdout is not None
        self._process = process
        self.stderr = stderr
        self.link = link
        self._pipe = PipeReader(process.stdout)

    def stream(self, cancel: CancelToken, meanwhile: Callable[[], None] | None = None) -> Generator[bytes]:
        """Return what it prints, as `PipeReader.stream`."""
        return self._pipe.stream(cancel, meanwhile)

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        return self._process.wait()

    def close(self) -> None:
        """End it, unless it has ended."""
        terminate(self._process)
        self._pipe.close()
        self.stderr.close()
        if self.link:
            with suppress(FileNotFoundError):  # whoever tidies up temporary folders was faster
                os.unlink(self.link)


@dataclass(frozen=True, slots=True)
class _Standby:
    command: Command
    process: StandbyProcess
    stderr: IO[bytes]
    link: str

    def end(self) -> None:
        self.process.terminate()
        self.stderr.close()


class Prespawner:
    """Starts gits; every method may be called by any thread."""

    def __init__(self, installed: GitBinary) -> None:
        self._binary = installed
        self._standbys: OrderedDict[tuple[str, ...], _Standby] = OrderedDict()
        self._lock = threading.Lock()
        self._started_count = 0
        self._can_prespawn = sys.platform == "linux"
        weakref.finalize(self, _end_all, self._standbys)

    def start(self, command: Command, stdin: bytes, *, new_session: bool = False) -> RunningGit:
        """Start one now.

        Args:
            stdin: what it reads.
            new_session: as `process.start`.
        """
        with ExitStack() as files:
            stderr = files.enter_context(open_unnamed_file(self._binary.scratch_folder))
            process = self._start(command, stdin, stderr, new_session)
            files.pop_all()
        limit_memory(process.pid)
        return RunningGit(process, stderr)

    def _start(self, command: Command, stdin: bytes, stderr: IO[bytes], new_session: bool) -> Process:
        if not stdin:
            return start(command, stdin=None, stderr=stderr, new_session=new_session)
        with open_unnamed_file(self._binary.scratch_folder) as file:
            file.write(stdin)
            file.seek(0)
            return start(command, stdin=file, stderr=stderr, new_session=new_session)

    def take(self, command: Command, stdin: bytes) -> RunningGit | None:
        """Return the one that waits for this command, let go; None if none does.

        Call it when the repository was looked at.
        """
        with self._lock:
            waiting = self._standbys.pop(_key(command), None)
        if waiting is None:
            return None
        if waiting.process.process.poll() is not None:
            self._can_prespawn = False  # This git reads no pipe.
        if not self._can_prespawn or waiting.command != command or len(stdin) > _MAX_STDIN_BYTES:
            waiting.end()
            return None
        try:
            os.symlink(command.environment["GIT_DIR"], waiting.link)
        except OSError:  # no room for it, or its folder is gone
            waiting.end()
            return None
        waiting.process.release(stdin)
        return RunningGit(waiting.process.process, waiting.stderr, waiting.link)

    def prespawn(self, command: Command, *, has_stdin: bool) -> None:
        """Start one for the next call with this command, unless one waits."""
        key = _key(command)
        with self._lock:
            if not self._can_prespawn or key in self._standbys:
                return
            self._started_count += 1
            link = os.path.join(self._binary.scratch_folder, f"ahead{self._started_count}")
            unseen = replace(command, environment={**command.environment, "GIT_DIR": link})
            try:
                with ExitStack() as files:
                    stderr = files.enter_context(open_unnamed_file(self._binary.scratch_folder))
                    standby = StandbyProcess(unseen, stderr, has_stdin=has_stdin)
                    files.pop_all()
            except OSError:
                return  # The call at hand needs none of this.
            limit_memory(standby.process.pid)
            self._standbys[key] = _Standby(command, standby, stderr, link)
            oldest = self._standbys.popitem(last=False)[1] if len(self._standbys) > _MAX_STANDBYS else None
        if oldest is not None:
            oldest.end()


def _end_all(waiting: Mapping[tuple[str, ...], _Standby]) -> None:
    for each in waiting.values():
        each.end()


def _key(command: Command) -> tuple[str, ...]:
    return command.environment["GIT_DIR"], *command.arguments
