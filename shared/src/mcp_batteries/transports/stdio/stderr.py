"""A standard error that can never block the process, whether or not anybody reads it.

Hosts start servers with standard error on a pipe, and some never read it. Once the pipe is full (64 KiB on
Linux) the next log line, `print` or C library message blocks its thread for good. So descriptor 2 becomes a
pipe of our own, and two threads carry it to the real one as fast as that is read, dropping the excess.

Only the standard library is imported: this runs before everything else in the process.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress

from mcp_batteries.transports.stdio.sink import Sink

if sys.platform == "win32":
    from mcp_batteries.transports.stdio import windows as system
else:
    from mcp_batteries.transports.stdio import posix as system

__all__ = ["StderrPump"]

_BACKLOG = 256 * 1024
_PIPE_BYTES = 1024 * 1024


class StderrPump:
    """Descriptor 2 on a pipe that is always drained; `close` undoes it.

    Attributes:
        real: the standard error that the process was started with.

    Raises:
        OSError: Descriptor 2 is closed, or there are no descriptors left; nothing has changed then.
    """

    def __init__(self) -> None:
        self.real = system.take(2)
        # Room for native code that writes a lot while it holds the GIL, which stops the pump.
        self._source, sink = system.make_pipe(_PIPE_BYTES)
        os.dup2(sink, 2)
        os.close(sink)
        self._sink = Sink(self.real, _BACKLOG)
        self._thread = threading.Thread(target=self._pump, name="stderr pump", daemon=True)
        self._thread.start()

    def close(self, seconds: float = 0.25, *, restore: bool = True) -> None:
        """Forward what is still in the pipe, for at most `seconds`, and end.

        Args:
            restore: True points descriptor 2 back at the real one; False at the null device, so that nothing
                the interpreter says while it ends can block either.
        """
        if sys.stderr is not None:
            sys.stderr.flush()
        until = time.monotonic() + seconds
        successor = self.real if restore else os.open(os.devnull, os.O_WRONLY)
        os.dup2(successor, 2)
        # The pipe ends when its last writer does. A child that inherited it may live on: hence the bound.
        self._thread.join(seconds)
        self._sink.flush(until - time.monotonic())

    def _pump(self) -> None:
        dropped = 0
        while data := os.read(self._source, 65536):
            notice = b""
            if dropped:
                notice = b"[%d bytes of log were dropped: nobody read them]\n" % dropped
            if self._sink.pending + len(notice) + len(data) > _BACKLOG:
                dropped += len(data)
                continue
            with suppress(BrokenPipeError):
                self._sink.offer(notice + data)
            dropped = 0
