"""MCP on standard input and output, hardened against everything else that uses them.

`claim` takes the two descriptors away from the process before anything heavy is imported, so that no print, C library
or child process can write between messages or wait on stdin. `serve` then runs a server on them.

Only the standard library is imported at module level: `claim` must be able to run first.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mcp_batteries.transports.stdio.stderr import StderrPump

if sys.platform == "win32":
    from mcp_batteries.transports.stdio import windows as system
else:
    from mcp_batteries.transports.stdio import posix as system

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.models import InitializationOptions

    from mcp_batteries.observability.wire_log import WireLog
    from mcp_batteries.transports.stdio.cached_handshake.store import AnswerStore
    from mcp_batteries.transports.stdio.reader import Reader
    from mcp_batteries.transports.stdio.writer import Writer

__all__ = ["Claim", "claim", "serve"]

_CLEANUP_SECONDS = 2.0
_EXIT_SECONDS = 0.5
_HARD_SECONDS = _CLEANUP_SECONDS + 1.0
_CHECK_SECONDS = 0.5


class Claim:
    """The descriptors that carry the protocol.

    Args:
        stdin: the source of messages.
        stdout: the target of messages.
        stderr: keeps standard error from blocking, if set.
        process: whether they are the process's own, so that the process ends with them.
    """

    def __init__(self, stdin: int, stdout: int, *, stderr: StderrPump | None = None, process: bool = False) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.process = process
        self.parent = system.Parent()
        self._was_blocking = False
        self._exits: SimpleQueue[tuple[float, int]] = SimpleQueue()
        if process:
            threading.Thread(target=self._await_exit, name="exit deadline", daemon=True).start()

    def unblock(self) -> None:
        """Make writes return instead of waiting for the reader, until `reblock`."""
        # A terminal's flags are shared with the shell, and a terminal is read: it may as well block.
        if os.get_blocking(self.stdout) and not os.isatty(self.stdout):
            os.set_blocking(self.stdout, False)
            self._was_blocking = True

    def reblock(self) -> None:
        """Restore the flags, which other processes may share."""
        if self._was_blocking:
            os.set_blocking(self.stdout, True)
            self._was_blocking = False

    def exit_within(self, seconds: float, status: int) -> None:
        """End the process with `status` within `seconds`, whatever still runs in it.

        A handler that swallows its cancellation and a thread that never returns would hold it for ever. The
        earliest of several calls decides. May be called by a signal handler. Without effect on descriptors
        that aren't the process's own.
        """
        self._exits.put((time.monotonic() + seconds, status))

    def exit(self, status: int) -> None:
        """End the process now, without any further clean-up but the log's."""
        if self.process:
            self.reblock()
            with suppress(Exception):  # A signal handler may have interrupted the very stream this flushes.
                self.silence()
            os._exit(status)

    def _await_exit(self) -> None:
        """Wait for the earliest end that `exit_within` was called for, and end the process."""
        due, status = self._exits.get()
        while True:
            remaining = due - time.monotonic()
            if remaining <= 0:
                break
            with suppress(Empty):
                due, status = min((due, status), self._exits.get(timeout=remaining))
        self.exit(status)

    def silence(self) -> None:
        """Flush standard error, and drop everything written later."""
        if sys.stdout is not None:
            sys.stdout.flush()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
        if self.stderr is not None:
            self.stderr.close(restore=False)

    def close(self) -> None:
        """Restore descriptors 0, 1 and 2."""
        global _claimed
        if not self.process:
            return
        if sys.stdout is not None:
            sys.stdout.flush()
        self.reblock()
        os.dup2(self.stdin, 0)
        os.dup2(self.stdout, 1)
        os.close(self.stdin)
        os.close(self.stdout)
        if self.stderr is not None:
            self.stderr.close()
        self.process = False
        atexit.unregister(self.silence)
        _claimed = None


_claimed: Claim | None = None


def claim() -> Claim:
    """Take standard input and output for the protocol.

    From here on descriptor 0 reads as empty, what is written to descriptor 1 comes out on standard error, and
    standard error blocks nobody. This lasts until the process ends, including its last unflushed print, unless
    `Claim.close` is called.

    Raises:
        RuntimeError: They are taken already.
    """
    global _claimed
    if _claimed is not None:
        raise RuntimeError("standard input and output are claimed already")
    # A stream that was closed would hand its number to the next file opened here.
    null = os.open(os.devnull, os.O_RDWR)
    while null <= 2:
        null = os.open(os.devnull, os.O_RDWR)
    try:
        pump = StderrPump()
    except OSError:
        pump = None
    _claimed = Claim(system.take(0), system.take(1), stderr=pump, process=True)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    atexit.register(_claimed.silence)
    return _claimed


async def serve(
    server: Server[Any],
    options: InitializationOptions,
    claim: Claim,
    first: AnswerStore | None = None,
    wire: WireLog | None = None,
    *,
    max_line: int = 64 * 1024 * 1024,
    max_in_flight: int = 2048,
    drain_seconds: float = 5.0,
    pollable: bool = system.POLLABLE,
) -> int:
    """Serve `server` on the claimed descriptors until the client leaves, and return the exit status.

    It ends at the end of input, once the calls in flight are answered; at SIGTERM (143) and SIGINT (130), on Windows
    at Ctrl-C (130) and Ctrl-Break (149); and when nobody reads the output any more or the parent process is gone. Each
    time the server's lifespan ends properly, within a few seconds. A second signal ends the process at once.

    Args:
        claim: from `claim()`.
        first: has read and answered the beginning, and stores first answers.
        wire: sees every line, in both directions.
        max_line: longest message in bytes; longer ones are skipped and answered with an error.
        max_in_flight: the maximum of concurrent calls; more are answered with an error.
        drain_seconds: how long calls in flight may continue after the end of input.
        pollable: whether the event loop can wait for pipes; otherwise threads read and write them.

    Raises:
        Exception: What the server's lifespan raised.
    """
    import asyncio

    import anyio

    from mcp_batteries.transports.stdio.in_flight import Calls
    from mcp_batteries.transports.stdio.reader import Reader
    from mcp_batteries.transports.stdio.requests import serve_requests
    from mcp_batteries.transports.stdio.writer import Writer

    status = 0
    loop = asyncio.get_running_loop()
    calls = Calls(max_in_flight)
    writer = Writer(claim.stdout, calls, lambda: reader.stop(), first, wire, pollable=pollable)
    reader = Reader(
        claim.stdin, writer, calls, first, wire, max_line=max_line, drain_seconds=drain_seconds, pollable=pollable
    )

    def leave() -> None:
        writer.hurried = True
        reader.stop()

    def on_signal(number: int, _: object) -> None:
        nonlocal status
        if status:
            claim.exit(status)
        status = 128 + number
        # Runs between two byte codes of whatever blocks the loop, should something block it.
        claim.exit_within(_HARD_SECONDS, status)
        loop.call_soon_threadsafe(leave)

    failure: Exception | None = None
    if pollable:
        claim.unblock()
    try:
        with _signals(on_signal):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch_client, claim, reader, writer, tasks.cancel_scope)
                try:
                    await serve_requests(server, options, reader, writer)
                except Exception as exc:  # noqa: BLE001 - raised below, outside the group that would wrap it
                    failure = exc
                tasks.cancel_scope.cancel()
        if failure is not None:
            status = status or 1
            raise failure
    finally:
        claim.reblock()
        if first is not None:
            first.save()
        # The interpreter's end remains, which waits for every worker thread.
        claim.exit_within(_EXIT_SECONDS, status)
    return status


async def _watch_client(claim: Claim, reader: Reader, writer: Writer, scope: Any) -> None:
    """Stop the reader when nobody is left to serve, then make sure that the server ends."""
    import anyio

    while not reader.is_ended.is_set():
        with anyio.move_on_after(_CHECK_SECONDS):
            await reader.is_ended.wait()
        if not writer.is_read() or not claim.parent.is_alive():
            writer.hurried = True
            reader.stop()
    claim.exit_within(_HARD_SECONDS, 0)
    await anyio.sleep(_CLEANUP_SECONDS)
    scope.cancel()


@contextmanager
def _signals(handler: Callable[[int, Any], None]) -> Generator[None]:
    """Let `handler` handle the signals that end a process, for as long as the block lasts."""
    previous: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        previous = {number: signal.signal(number, handler) for number in system.SIGNALS}
    try:
        yield
    finally:
        for number, handled_before in previous.items():
            signal.signal(number, handled_before)
