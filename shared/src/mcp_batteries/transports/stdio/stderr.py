"""A standard error that can never block the process, whoever reads it or doesn't.

Hosts start servers with standard error on a pipe, and some never read it. Once the pipe is full (64 KiB on
Linux) the next log line, `print` or C library message blocks its thread for good. So descriptor 2 becomes a
pipe of our own, and a thread carries it to the real one as fast as that is read, dropping the excess.

Only the standard library is imported: this runs before everything else in the process.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading

__all__ = ["StderrPump"]

_BACKLOG = 256 * 1024
_PIPE_BYTES = 1024 * 1024


class StderrPump:
    """Descriptor 2 on a pipe that is always drained; `close` undoes it. POSIX only.

    Raises:
        OSError: Descriptor 2 is closed, or there are no descriptors left; nothing has changed then.
    """

    def __init__(self) -> None:
        import fcntl

        self.real = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 3)
        """The standard error the process was started with."""
        self._source, sink = os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):
                # Room for native code that writes a lot while it holds the GIL, which stops the pump.
                fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.dup2(sink, 2)
        os.close(sink)
        self._thread = threading.Thread(target=self._carry, name="stderr pump", daemon=True)
        self._thread.start()

    def close(self, seconds: float = 0.25, *, restore: bool = True) -> None:
        """Carry what is still in the pipe, for at most `seconds`, and end.

        Args:
            restore: True points descriptor 2 back at the real one; False at the null device, so that nothing
                the interpreter says while it ends can block either.
        """
        if sys.stderr is not None:
            sys.stderr.flush()
        successor = self.real if restore else os.open(os.devnull, os.O_WRONLY)
        os.dup2(successor, 2)
        # The pipe ends when its last writer does. A child that inherited it may live on: hence the bound.
        self._thread.join(seconds)

    def _carry(self) -> None:
        backlog, dropped, open_ends = bytearray(), 0, {self._source, self.real}
        while self._source in open_ends or (backlog and self.real in open_ends):
            sinks = [self.real] if backlog and self.real in open_ends else []
            readable, writable, _ = select.select(open_ends & {self._source}, sinks, [])
            if readable:
                data = os.read(self._source, 65536)
                if not data:
                    open_ends.discard(self._source)
                excess = len(backlog) + len(data) - _BACKLOG
                if excess > 0:
                    dropped += len(data)
                elif data:
                    if dropped:
                        backlog += b"[%d bytes of log were dropped: nobody read them]\n" % dropped
                        dropped = 0
                    backlog += data
            if writable:
                try:
                    # A ready pipe takes this much without blocking (POSIX, PIPE_BUF), and no more for sure.
                    del backlog[: os.write(self.real, backlog[: select.PIPE_BUF])]
                except BlockingIOError:
                    pass
                except OSError:
                    open_ends.discard(self.real)
            if self.real not in open_ends:
                backlog.clear()
